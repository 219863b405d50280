"""What these tests may ask for."""

from tests.kit.fixtures import lane, service, settings

__all__ = ["lane", "service", "settings"]
