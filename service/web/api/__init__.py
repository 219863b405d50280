"""The HTTP API: a router for each noun, put together by `composition.py`."""

from service.web.api.application import LARGEST, create_api

__all__ = ["LARGEST", "create_api"]
