"""What these tests may ask for."""

from tests.kit.fixtures import service, settings, shop

__all__ = ["service", "settings", "shop"]
