"""What these tests may ask for."""

from tests.kit.fixtures import lane, service, settings, shop

__all__ = ["lane", "service", "settings", "shop"]
