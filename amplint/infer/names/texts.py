"""Strings that choose: names under which registries hold layers, modes that a constructor compares with."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.templated import Template
from amplint.infer.lattice.values import (
    UNKNOWN,
    Builtin,
    Const,
    Mapping,
    Number,
    Partial,
    Sequence,
    Text,
    TorchName,
    Value,
)
from amplint.infer.names.definitions import Class, Function
from amplint.infer.syntax.templates import ANY, formatted, interpolated, is_family, names_family

if TYPE_CHECKING:
    from amplint.infer.lattice.arguments import Arguments

_CHANGES = frozenset(("lower", "upper", "strip", "lstrip", "rstrip", "replace", "removeprefix", "removesuffix"))
_PARTS = frozenset(("split", "rsplit", "partition", "rpartition"))
_ASKS = frozenset(("startswith", "endswith", "isdigit", "isupper", "islower"))
MAX_TEXT = 1_000
"""Characters up to which strings are put together: what selects is a name."""


def spelled(node: ast.expr) -> str:
    """An expression as source text; ``…`` for one that Python itself cannot write."""
    try:
        return ast.unparse(node)
    except ValueError:
        return "…"


def text_of(value: Value) -> str | None:
    """The string that a value is, or is unless a caller says otherwise."""
    if isinstance(value, Text):
        return value.usual
    return value.value if isinstance(value, Const) and isinstance(value.value, str) else None


def call_method(receiver: Value, name: str, arguments: Arguments) -> Value:
    """``text.name(...)`` for the methods that give strings or an answer; a default stays one, and answers nothing."""
    text = text_of(receiver)
    given = [text_of(argument) for argument in arguments.positional]
    if name == "format" and isinstance(receiver, Const) and text is not None and len(text) <= MAX_TEXT:
        form = formatted(text)
        return UNKNOWN if form is None else Template("str", None, form)
    if name in ("startswith", "endswith") and isinstance(receiver, Const) and len(given) == 1 and None in given:
        return _alike(receiver, name, arguments.positional[0])
    if text is None or arguments.keywords or None in given or name not in (_CHANGES | _ASKS | _PARTS):
        return UNKNOWN
    try:
        made = getattr(text, name)(*given)
    except (TypeError, ValueError):
        return UNKNOWN
    if isinstance(made, str) and len(made) > MAX_TEXT:
        return UNKNOWN
    if name in _PARTS:
        kind = Const if isinstance(receiver, Const) else Text
        return Sequence(tuple(map(kind, made)), mutable=isinstance(made, list))
    if isinstance(receiver, Const):
        return Const(made)
    return Text(made) if name in _CHANGES else UNKNOWN


def _alike(receiver: Const, name: str, asked: Value) -> Value:
    """What a string answers where it is asked for one of several, or for any in a tuple; unknown where that differs."""
    several = asked.items if isinstance(asked, Sequence) and asked.items is not None else options_of(asked)
    answers = {getattr(receiver.value, name)(text_of(one)) for one in several if text_of(one) is not None}
    known = len(answers) == 1 and all(isinstance(one, Const) and isinstance(one.value, str) for one in several)
    return Const(answers.pop()) if known else UNKNOWN


def usual_answer(receiver: Value, name: str, arguments: list[Value]) -> bool | None:
    """What ``text.name(...)`` answers where a caller chooses what is usual; None where it is no such question."""
    given = [text_of(argument) for argument in arguments]
    if not isinstance(receiver, Text) or name not in _ASKS or None in given:
        return None
    return bool(getattr(receiver.usual, name)(*given))


def attribute_name(value: Value | None) -> str | None:
    """The attribute that a string names, or the form that names a family; None where it is not known."""
    if isinstance(value, Template):
        return value.form if names_family(value.form) else None
    name = value.value if isinstance(value, Const) else None
    return name if isinstance(name, str) and not is_family(name) else None


def form_of(value: Value) -> str | None:
    """What is known of a string that a literal begins; None for any other value."""
    if isinstance(value, Template):
        return value.form
    return value.value if isinstance(value, Const) and isinstance(value.value, str) else None


def interpolation(left: Value) -> Value:
    """``left % …``."""
    form = form_of(left)
    return Template("str", None, interpolated(form)) if form is not None and len(form) <= MAX_TEXT else UNKNOWN


def joined(left: Value, right: Value) -> Value:
    """``left + right`` of two strings."""
    a, b = text_of(left), text_of(right)
    form, behind = form_of(left), form_of(right)
    if form is not None and (isinstance(left, Template) or b is None) and len(form) + len(behind or "") <= MAX_TEXT:
        return Template("str", None, form + (ANY if behind is None else behind))
    if a is None or b is None or len(a) + len(b) > MAX_TEXT:
        return UNKNOWN
    return Const(a + b) if isinstance(left, Const) and isinstance(right, Const) else Text(a + b)


def name_of(value: Value) -> Value:
    """``value.__name__`` of a class or a function."""
    if isinstance(value, TorchName):
        return Const(value.name.rsplit(".", 1)[-1])
    return Const(value.name) if isinstance(value, (Class, Function)) else UNKNOWN


def is_callable_kind(value: Value, kind: str) -> bool | None:
    """Whether a class, function or partial is an instance of ``functools.partial``, ``type`` or a function type."""
    if isinstance(value, Number):
        value = Const(0)
    if not isinstance(value, (Class, Function, Partial, TorchName, Const, Text)):
        return None
    if kind == "functools.partial":
        return isinstance(value, Partial)
    if kind == "type":
        return is_class(value)
    if kind == "types.FunctionType":
        return isinstance(value, Function) or (isinstance(value, TorchName) and not is_class(value))
    if kind in ("typing.Iterable", "collections.abc.Iterable") and isinstance(value, (Const, Text)):
        return text_of(value) is not None
    if kind in ("typing.Callable", "collections.abc.Callable"):
        return not isinstance(value, (Const, Text))
    return None


def is_class(value: Value) -> bool:
    """Whether a name of torch or the project is a class; torch's own begin with a capital."""
    return isinstance(value, Class) or (isinstance(value, TorchName) and value.name.rsplit(".", 1)[-1][:1].isupper())


def attribute_of_partial(value: Partial, name: str) -> Value:
    """``func``, ``args`` or ``keywords`` of a ``functools.partial``."""
    if name == "func":
        return value.callee
    if name == "args":
        return Sequence(value.args)
    keywords: dict[object, Value] = dict(value.keywords.items())
    return Mapping(keywords) if name == "keywords" else UNKNOWN


def method(value: Value, name: str) -> Value:
    """A method of a string, not yet called."""
    return Builtin(f"text.{name}", value)
