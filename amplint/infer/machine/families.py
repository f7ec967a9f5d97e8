"""Attributes under names that are computed: what is set as ``f"stage_{i}"`` is read back as that, or by a plain name.

A family holds the join of all that was set under it, beside the attributes with names of their own.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.joining import merge, options_of, unite
from amplint.infer.lattice.keying import identity
from amplint.infer.lattice.templated import Template
from amplint.infer.lattice.values import NONE, UNKNOWN, Builtin, Const, Number, Partial, Value
from amplint.infer.names import texts
from amplint.infer.names.classes import ancestry
from amplint.infer.names.definitions import Class, Instance
from amplint.infer.state.dispatch import get_attribute, set_attribute
from amplint.infer.state.meeting import alike, carries_dtype
from amplint.infer.syntax.templates import ANY, DIGITS, is_family, meet
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model import layer_lists

if TYPE_CHECKING:
    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.state.frame import Frame

_BY_NAME = {"__getattr__": "getattr", "__getattribute__": "getattr", "__setattr__": "setattr"}


def template(frame: Frame, node: ast.JoinedStr) -> Value:
    """The string that an f-string is, or its form."""
    form, known = "", True
    for value in node.values:
        written = isinstance(value, ast.Constant)
        part = str(value.value) if isinstance(value, ast.Constant) else _part(frame, value)
        known = known and (written or not is_family(part))
        form += part
    if len(form) > texts.MAX_TEXT:
        return Builtin("str")
    return Const(form) if known else Template("str", None, form)


def _part(frame: Frame, node: ast.expr) -> str:
    """What an expression puts into a string."""
    if not isinstance(node, ast.FormattedValue) or node.conversion != -1:
        return ANY
    part = _computed(frame, node.value)
    return part if node.format_spec is None else DIGITS if part == DIGITS or part.isdigit() else ANY


def _computed(frame: Frame, node: ast.expr) -> str:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)):
        parts = (_computed(frame, node.left), _computed(frame, node.right))
        return DIGITS if all(part == DIGITS or part.isdigit() for part in parts) else ANY
    value: Value | None = UNKNOWN
    if isinstance(node, ast.Constant):
        value = Const(node.value)
    elif isinstance(node, ast.Name):
        value = frame.variables.get(node.id) or frame.closure.get(node.id)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = frame.variables.get(node.value.id)
        value = owner.attributes.get(node.attr) if isinstance(owner, Instance) else UNKNOWN
        frame.reads.add((identity(owner), node.attr))
    if isinstance(value, Const) and type(value.value) in (int, str):
        return str(value.value)
    if isinstance(value, Template):
        return value.form
    return DIGITS if isinstance(value, Number) and value.kind == "int" else ANY


def read_by_name(frame: Frame, arguments: Arguments, node: ast.expr) -> Value:
    """``getattr(value, name)``."""
    value, named = arguments.positional[0], options_of(arguments.positional[1])
    if len(named) > 1:
        each = [replace(arguments, positional=[value, one, *arguments.positional[2:]]) for one in named]
        return unite(*(read_by_name(frame, one, node) for one in each))
    name = texts.attribute_name(named[0])
    if name is None:
        return UNKNOWN
    if not is_family(name):
        return get_attribute(frame, value, name, node)
    found = [member(frame, o, name) if isinstance(o, Instance) else UNKNOWN for o in options_of(value)]
    return unite(*found, *arguments.positional[2:]) if UNKNOWN not in found else UNKNOWN


def set_by_name(frame: Frame, instance: Instance, arguments: Arguments) -> Value:
    """``setattr(instance, name, value)``."""
    name = texts.attribute_name(arguments.positional[1]) if len(arguments.positional) > 2 else None
    if name is not None:
        set_attribute(frame, instance, name, arguments.positional[2])
    else:
        instance.open = True
    return NONE


def method(instance: Instance, name: str) -> Value | None:
    """``instance.__getattr__`` and its like, where no class of the program defines it."""
    return Partial(Builtin(_BY_NAME[name]), (instance,), {}) if name in _BY_NAME else None


def member(frame: Frame, instance: Instance, form: str) -> Value:
    """What is read under a name of a form: any attribute that has one like it.

    What classes define under such a name is not followed, nor is more known than was set under plain names where
    attributes may be set that are not seen.
    """
    frame.reads.add((identity(instance), form))
    names = [name for name in instance.attributes if meet(name, form)]
    frame.reads.update((identity(instance), name) for name in names)
    bases = (base for base in ancestry(instance.cls) if isinstance(base, Class))
    if any(meet(name, form) for base in bases for name in base.members):
        return UNKNOWN
    if not names or (instance.open and not any(map(is_family, names))):
        return UNKNOWN
    return unite(*(instance.attributes[name] for name in names))


def of_family(frame: Frame, instance: Instance, name: str) -> Value | None:
    """What an attribute holds that was set under a computed name; None where there is none such."""
    names = [form for form in instance.attributes if is_family(form) and meet(form, name)]
    frame.reads.update((identity(instance), form) for form in names)
    return unite(*(instance.attributes[form] for form in names)) if names else None


def set_member(frame: Frame, instance: Instance, form: str, new: Value) -> None:
    """Set an attribute whose name has a form: every one that has such a name may hold it now."""
    instance.open = True
    layer_lists.register_any(frame, instance, new)
    for name in [form, *(name for name in instance.attributes if name != form and meet(name, form))]:
        old = instance.attributes.get(name)
        joined = merge(frame.session, old, frame.session.all_lanes, new, frame.live) if old is not None else new
        instance.attributes[name] = joined
        instance.chosen.pop(name, None)
        if carries_dtype(joined) and (old is None or not alike(old, joined)):
            frame.session.changed((identity(instance), name), making=frame.constructing is instance)
