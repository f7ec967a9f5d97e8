"""What a project class is: its bases, its members, its fields."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from amplint.infer.lattice.decorators import Decorated
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.values import UNKNOWN, Builtin, External, TorchName, Value
from amplint.infer.names.definitions import Class, Function

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BASES = 16
_DICTS = frozenset(
    (
        *("collections.OrderedDict", "collections.UserDict", "collections.defaultdict"),
        *("collections.abc.MutableMapping", "collections.abc.Mapping", "typing.MutableMapping", "typing.Mapping"),
    )
)
LIGHTNING = ("lightning", "pytorch_lightning")
_MODULE = TorchName("torch.nn.Module")
_BARE = ("abc.ABC", "typing.Generic")
"""Bases that give an object no attributes."""
_NO_MODULES = ("typing_extensions", "pydantic", "attr", "attrs")
"""Packages besides the standard library whose base classes say nothing about being a layer."""


def ancestry(cls: Class) -> tuple[Value, ...]:
    """The class and its bases, nearest first; unknown bases appear as they are."""
    if cls.lineage is None:
        cls.lineage = tuple(_ancestry(cls))
    return cls.lineage


def _ancestry(cls: Class) -> Iterator[Value]:
    pending: list[Value] = [cls]
    seen: set[int] = set()
    while pending and len(seen) < MAX_BASES:
        value = pending.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        if isinstance(value, Class):
            pending = [*(o for base in value.bases for o in options_of(base)[:1]), *pending]


def torch_base(cls: Class) -> str | None:
    """The torch class that a class derives from: of several the one that makes it a module."""
    if cls.torch_base is None:
        bases = [base.name for base in ancestry(cls) if isinstance(base, TorchName)]
        cls.torch_base = next((name for name in bases if name.startswith("torch.nn.")), bases[0] if bases else "")
    return cls.torch_base or None


def is_module(cls: Class | None) -> bool:
    """Whether there is a class, and it is an ``nn.Module``: by its bases, or by its ``forward`` or what its constructor
    registers where a base is unknown or belongs to another library (``LightningModule``, ``PreTrainedModel``)."""
    base = torch_base(cls) if cls is not None else None
    if cls is None or base is not None:
        return base is not None and base.startswith("torch.nn.")
    bases = ancestry(cls)
    if not any(map(_may_be_module, bases)):
        return False
    return _is_method(find_member(cls, "forward")) or any(map(_makes_module, bases))


def is_optimizer(cls: Class | None) -> bool:
    """Whether there is a class, and it derives from an optimizer of torch: it works between regions of autocast."""
    return cls is not None and (torch_base(cls) or "").startswith("torch.optim.")


def _makes_module(base: Value) -> bool:
    """Whether what derives from a class is a module: Lightning's, or its constructor calls what only modules have."""
    if isinstance(base, External):
        return base.name.endswith(".LightningModule") and base.name.partition(".")[0] in LIGHTNING
    constructor = base.members.get("__init__") if isinstance(base, Class) else None
    if not isinstance(constructor, Function) or isinstance(constructor.node, ast.Lambda):
        return False
    return not {"register_buffer", "register_parameter"}.isdisjoint(constructor.namespace.body(constructor.node).asked)


def may_be_module(cls: Class) -> bool:
    """Whether a class is an ``nn.Module``, or has a base that is not seen and may be one."""
    return is_module(cls) or any(_may_be_module(base) for base in ancestry(cls))


def _is_method(member: Value | None) -> bool:
    """Whether a member is a function, under decorators or not."""
    while isinstance(member, Decorated):
        member = member.function
    return isinstance(member, Function)


def _may_be_module(base: Value) -> bool:
    return is_of_library(base) if isinstance(base, External) else base is UNKNOWN


def is_of_library(base: External) -> bool:
    """Whether something of a library may be a layer, or a class of layers."""
    package = base.name.partition(".")[0]
    return package not in sys.stdlib_module_names and package not in _NO_MODULES


def is_autograd_function(cls: Class) -> bool:
    return torch_base(cls) == "torch.autograd.Function"


def has_unknown_base(cls: Class) -> bool:
    """Whether a class derives from one that is not seen, and may give it attributes."""
    return any(not isinstance(base, (Class, TorchName, Builtin)) and not _is_bare(base) for base in ancestry(cls))


def is_plain(cls: Class) -> bool:
    """Whether a class derives from classes of the project and torch.nn.Module: no other base gives it attributes."""
    return all(isinstance(base, Class) or base.key == _MODULE.key or _is_bare(base) for base in ancestry(cls))


def _is_bare(base: Value) -> bool:
    return isinstance(base, External) and base.name in _BARE


def find_member(cls: Class, name: str, after: Class | None = None) -> Value | None:
    """A member of a class or of its bases; ``after`` starts behind that class, as ``super()`` does."""
    passed = after is None
    for base in ancestry(cls):
        if not isinstance(base, Class):
            continue
        if passed and name in base.members:
            return base.members[name]
        passed = passed or base is after or (after is not None and base.node is after.node)
    return None


def is_dict(cls: Class) -> bool:
    """Whether a class is a mapping."""
    return any(
        (isinstance(base, External) and base.name in _DICTS) or (isinstance(base, Builtin) and base.name == "dict")
        for base in ancestry(cls)
    )


def field_names(cls: Class) -> list[str]:
    """The fields of a dataclass, those of its bases first."""
    names: dict[str, None] = {}
    for base in reversed([base for base in ancestry(cls) if isinstance(base, Class)]):
        for statement in base.node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                names[statement.target.id] = None
    return list(names)


def is_dataclass(cls: Class) -> bool:
    """Whether a decorator writes the constructor: that of the class, or of a base and nothing else does nearer by."""
    for base in ancestry(cls):
        if isinstance(base, Class) and "__init__" in base.members:
            return False
        if isinstance(base, Class) and _decorated_dataclass(base):
            return True
    return False


def _decorated_dataclass(cls: Class) -> bool:
    names = (d.func if isinstance(d, ast.Call) else d for d in cls.node.decorator_list)
    return any((n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "")) == "dataclass" for n in names)


def set_later(cls: Class, name: str) -> bool:
    """Whether something else than the constructors of a class and its bases sets an attribute, in their modules."""
    bases = (base for base in ancestry(cls) if isinstance(base, Class))
    return any(name in base.namespace.attributes_set(base.node)[1] for base in bases)
