"""The user's own functions, found by their dotted paths, and called with what they ask for."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from service.core.outcome import Refuse
from service.flows.freeflow.event import Event

Take = Callable[[Event], Any]
Handler = Callable[[Event], Awaitable[None]]


class NoHandler(Exception):
    """A path does not lead to a function that could take events; says why and what to write."""


def find(path: str) -> Handler:
    """The handler at `package.module:function`, ready for events; NoHandler if there is none."""
    function = _function(path)
    return Call(function, _asked(function, path))


@dataclass(frozen=True, slots=True)
class Call:
    """A user's function, sync or async, and what its parameter asks for."""

    function: Callable[[Any], Any]
    take: Take

    async def __call__(self, event: Event) -> None:
        """Run it to its end; a plain function runs in a thread, so that it holds up nobody."""
        asked = self.take(event)
        if inspect.iscoroutinefunction(_underneath(self.function)):
            await self.function(asked)
        else:
            await asyncio.to_thread(self._run, asked)

    def _run(self, asked: Any) -> None:
        """A StopIteration would never leave the thread: no future can carry it."""
        try:
            self.function(asked)
        except StopIteration as end:
            raise RuntimeError("the handler raised StopIteration") from end


def _function(path: str) -> Callable[[Any], Any]:
    module, colon, names = path.partition(":")
    if not (module and colon and names):
        raise NoHandler(f"expected package.module:function, given {path!r}")
    try:
        found: Any = import_module(module)
    except Exception as error:  # noqa: BLE001  # whatever a stranger's module raises when it is imported
        raise NoHandler(f"{module} cannot be imported: {type(error).__name__}: {error}") from None
    for name in names.split("."):
        found = getattr(found, name, None)
        if found is None:
            raise NoHandler(f"there is no {names} in {module}")
    if not callable(found) or inspect.isclass(found):
        raise NoHandler(f"{path} is not a function")
    function: Callable[[Any], Any] = found
    return function


def _asked(function: Callable[[Any], Any], path: str) -> Take:
    """What the annotation of the one parameter asks for: the event, its bytes, or its JSON."""
    try:
        signature = inspect.signature(function, eval_str=True)
        signature.bind(None)
    except (TypeError, ValueError):
        raise NoHandler(f"{path} must take one parameter: the event") from None
    except Exception as error:  # noqa: BLE001  # an annotation may be any expression
        raise NoHandler(f"an annotation of {path} cannot be read: {error}") from None
    return _taking(next(iter(signature.parameters.values())).annotation, path)


def _taking(annotation: Any, path: str) -> Take:
    if annotation in (inspect.Parameter.empty, Any, Event):
        return lambda event: event
    if annotation is bytes:
        return lambda event: event.body
    try:
        adapter = TypeAdapter(annotation)
    except PydanticUserError:
        raise NoHandler(
            f"{path} asks for {annotation!r}, which no JSON can be read into:"
            " annotate it as Event, bytes, dict or a pydantic model"
        ) from None
    return lambda event: _read(adapter, event)


def _read(adapter: TypeAdapter[Any], event: Event) -> Any:
    try:
        return adapter.validate_json(event.body)
    except ValidationError as error:
        raise Refuse(f"the body is not what the handler takes: {without_values(error)}") from None


def without_values(error: ValidationError) -> str:
    """Where and what, without the values: they may be anybody's."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'body'}: {one['msg']}" for one in found)


def _underneath(function: Callable[[Any], Any]) -> Any:
    """An object with `__call__` is as async as that is."""
    return function if inspect.isroutine(function) else type(function).__call__
