"""Signatures as they are meant: through wrappers and ``*args, **kwargs``, annotations resolved."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
import typing
from typing import Any

if typing.TYPE_CHECKING:
    import types
    from collections.abc import Callable

Parameter = inspect.Parameter
VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def constructor(cls: type) -> dict[str, Parameter]:
    """The parameters of ``cls(...)`` by name, variadic ones last.

    Where ``__init__`` passes ``*args`` or ``**kwargs`` on, the parameters of the next class's ``__init__`` are added.
    """
    found: dict[str, Parameter] = {}
    variadic: dict[str, Parameter] = {}
    given: set[str] = set()
    positional = 0
    for base in cls.__mro__:
        init = vars(base).get("__init__")
        if init is None:
            continue
        if base is object or (base.__name__ == "Module" and base.__module__.startswith("torch.nn")):
            break
        own = parameters(init, skip=1)
        plain = [parameter for parameter in own.values() if parameter.kind not in VARIADIC]
        for parameter in plain[positional:]:
            if parameter.name not in given:
                found.setdefault(parameter.name, parameter)
        variadic = {name: parameter for name, parameter in own.items() if parameter.kind in VARIADIC}
        if not variadic:
            break
        names, positional = _passed_on(init)
        given |= names
    return {**found, **variadic}


def parameters(function: Callable[..., Any], skip: int = 0) -> dict[str, Parameter]:
    """The parameters of ``function`` after the first ``skip``, by name, annotations resolved as far as they can be."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return {}
    hints = _hints(inspect.unwrap(function))
    items = list(signature.parameters.items())[skip:]
    return {name: parameter.replace(annotation=hints.get(name, parameter.annotation)) for name, parameter in items}


def forward_parameters(kind: type) -> dict[str, Parameter]:
    """The parameters that a call of a module of this class gives to its forward, be that static or not."""
    static = isinstance(inspect.getattr_static(kind, "forward", None), staticmethod)
    forward: Callable[..., Any] = getattr(kind, "forward", object)
    return parameters(forward, skip=0 if static else 1)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:
        pass
    hints = {}
    space = getattr(function, "__globals__", {})
    for name, text in getattr(function, "__annotations__", {}).items():
        try:
            hints[name] = eval(text, dict(space)) if isinstance(text, str) else text
        except Exception:
            hints[name] = text
    return hints


def _passed_on(function: Callable[..., Any]) -> tuple[set[str], int]:
    """What ``super().__init__(...)`` is given in ``function``: keywords, and how many positional arguments."""
    tree = source_tree(inspect.unwrap(function))
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "__init__":
            positional = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
            return {keyword.arg for keyword in node.keywords if keyword.arg is not None}, len(positional)
    return set(), 0


@functools.lru_cache(maxsize=512)
def source_tree(thing: Any) -> ast.Module | None:
    """The syntax tree of a function's or class's source, or None where there is none."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return None


def compared_constants(owner: Any, name: str) -> list[Any]:
    """Constants that ``__init__`` of a class, or a function, compares its parameter ``name`` with, in source order."""
    function = vars(owner).get("__init__") if isinstance(owner, type) else owner
    tree = source_tree(inspect.unwrap(function)) if function is not None else None
    found: list[Any] = []
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == name:
            for right in node.comparators:
                parts = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right]
                found += [part.value for part in parts if isinstance(part, ast.Constant) and part.value is not None]
        if isinstance(node, ast.Match) and isinstance(node.subject, ast.Name) and node.subject.id == name:
            found += [
                pattern.pattern.value.value
                for pattern in node.cases
                if isinstance(pattern.pattern, ast.MatchValue) and isinstance(pattern.pattern.value, ast.Constant)
            ]
    return list(dict.fromkeys(found))


def namespace_of(thing: Any) -> types.ModuleType | None:
    """The module that defines a class or function, if it is loaded."""
    return sys.modules.get(getattr(thing, "__module__", "") or "")
