"""What these tests may ask for."""

from tests.kit.fixtures import service, settings

__all__ = ["service", "settings"]
