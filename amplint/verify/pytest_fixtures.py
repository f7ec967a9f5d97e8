"""Calls a pytest fixture as a plain function, with the fixtures that it asks for, as often as needed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amplint.verify.loading import LoadError, load_file

if TYPE_CHECKING:
    import types

Function = Callable[..., Any]


def fixture_named(module: types.ModuleType, name: str) -> Callable[[], Any] | None:
    """A function without parameters that gives the value of a file's fixture, made anew on every call.

    The fixtures that it asks for come from its own file and the conftest.py files above. What follows a ``yield`` is
    run at once: nothing of the value may depend on it. None if the file has no fixture of that name.
    """
    function = _fixture(module, name)
    if function is None:
        return None
    known = _Known(module)

    @functools.wraps(function)
    def value() -> Any:
        return _value(function, known, ())

    return value


class _Known:
    """The fixtures of a file and of the conftest.py files above it, each imported when no nearer one has the name."""

    def __init__(self, module: types.ModuleType) -> None:
        path = Path(module.__file__ or "")
        files = (folder / "conftest.py" for folder in path.parents)
        self._modules = [module]
        self._waiting = [file for file in files if file.is_file() and file != path]

    def find(self, name: str) -> Function | None:
        for module in self._modules:
            if (function := _fixture(module, name)) is not None:
                return function
        while self._waiting:
            self._modules.append(load_file(self._waiting.pop(0)))
            if (function := _fixture(self._modules[-1], name)) is not None:
                return function
        return None


def _fixture(module: types.ModuleType, name: str) -> Function | None:
    """The function below ``@pytest.fixture``, by the name that the decorator gave it or its own."""
    for attribute, value in vars(module).items():
        unwrap = getattr(type(value), "_get_wrapped_function", None)  # pytest >= 8.4
        if unwrap is not None:
            function, given = unwrap(value), value.name
        else:
            function = getattr(getattr(value, "__pytest_wrapped__", None), "obj", None)
            given = getattr(getattr(value, "_pytestfixturefunction", None), "name", None)
        if function is not None and (given or attribute) == name:
            found: Function = function
            return found
    return None


def _value(function: Function, known: _Known, asking: tuple[str, ...]) -> Any:
    arguments = {}
    for name in inspect.signature(function).parameters:
        if name in asking:
            raise LoadError(f"the pytest fixtures {' and '.join(asking)} ask for each other")
        found = known.find(name)
        if found is None:
            raise LoadError(
                f"the pytest fixture {function.__name__} asks for {name}, which is not a fixture of its file or of a "
                "conftest.py above; name a plain function instead"
            )
        arguments[name] = _value(found, known, (*asking, name))
    result = function(**arguments)
    if isinstance(result, Generator):
        value = next(result)
        result.close()
        return value
    return result
