"""The user's own functions, found by dotted path and called with what they ask for, for every flow."""

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

Take = Callable[[Any], Any]
Handler = Callable[[Any], Awaitable[object]]


class NoHandler(Exception):
    """A path does not lead to a function that could take letters; says why and what to write."""


def function_at(path: str) -> Callable[..., Any]:
    """The function at `package.module:function`; NoHandler if there is none."""
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
    function: Callable[..., Any] = found
    return function


def find(path: str, kind: type, called: str = "event") -> Handler:
    """The handler at this path, ready for letters of this kind."""
    return handler_of(function_at(path), kind, path, called)


def handler_of(function: Callable[..., Any], kind: type, path: str, called: str) -> Handler:
    """A user's function, ready for letters of this kind; NoHandler if it cannot take them."""
    return Call(function, _asked(function, kind, path, called))


@dataclass(frozen=True, slots=True)
class Call:
    """A user's function, sync or async, and what its parameter asks for."""

    function: Callable[[Any], Any]
    take: Take

    async def __call__(self, letter: object) -> object:
        """Run it to its end; a plain function runs in a thread, so that it holds up nobody."""
        asked = self.take(letter)
        if inspect.iscoroutinefunction(_underneath(self.function)):
            return await self.function(asked)
        ended = await asyncio.to_thread(self._run, asked)
        return await ended if inspect.isawaitable(ended) else ended

    def _run(self, asked: Any) -> Any:
        """A StopIteration would never leave the thread: no future can carry it."""
        try:
            return self.function(asked)
        except StopIteration as end:
            raise RuntimeError("the handler raised StopIteration") from end


def without_values(error: ValidationError) -> str:
    """Where and what, without the values: they may be anybody's."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'body'}: {one['msg']}" for one in found)


def _asked(function: Callable[[Any], Any], kind: type, path: str, called: str) -> Take:
    """What the annotation of the one parameter asks for: the letter, its bytes, or its JSON."""
    try:
        signature = inspect.signature(function, eval_str=True)
        signature.bind(None)
    except (TypeError, ValueError):
        raise NoHandler(f"{path} must take one parameter: the {called}") from None
    except Exception as error:  # noqa: BLE001  # an annotation may be any expression
        raise NoHandler(f"an annotation of {path} cannot be read: {error}") from None
    return _taking(next(iter(signature.parameters.values())).annotation, kind, path)


def _taking(annotation: Any, kind: type, path: str) -> Take:
    if annotation in (inspect.Parameter.empty, Any, kind):
        return lambda letter: letter
    if annotation is bytes:
        return lambda letter: letter.body
    try:
        adapter = TypeAdapter(annotation)
    except PydanticUserError:
        raise NoHandler(
            f"{path} asks for {annotation!r}, which no JSON can be read into:"
            f" annotate it as {kind.__name__}, bytes, dict or a pydantic model"
        ) from None
    return lambda letter: _read(adapter, letter.body)


def _read(adapter: TypeAdapter[Any], body: bytes) -> Any:
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        raise Refuse(f"the body is not what the handler takes: {without_values(error)}") from None


def _underneath(function: Callable[[Any], Any]) -> Any:
    """An object with `__call__` is as async as that is."""
    return function if inspect.isroutine(function) else type(function).__call__
