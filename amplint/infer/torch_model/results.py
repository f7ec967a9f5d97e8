"""The dtypes and dimensions of an operation's result, by the rule that the table has for it.

The rules' names are explained where they are measured, in ``amplint.data._rules``.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import (
    AUTOCASTABLE,
    BITS,
    BOOL,
    COMPLEX,
    FLOAT32,
    FLOATS,
    INTEGERS,
    LOW,
    NAMES,
    UNKNOWN_LANE,
    Ambient,
    Dtypes,
    Lane,
    complex_of,
    real_of,
)
from amplint.infer.lattice.values import Const, Number, Sequence, Tensor, Trait, Value

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence as Items

    from amplint.infer.state.operand import Operand
    from amplint.infer.state.session import Session
    from amplint.infer.torch_model.torch_ops import Op

_INTEGRAL = INTEGERS | BOOL
_HOLDS = {"everything": -1, "real": FLOATS | INTEGERS, "mixed": FLOATS | INTEGERS, "floating": FLOATS}
_INT64 = BITS["int64"]
_OF_ONE_RANK = frozenset(
    f"torch.{name}"
    for name in ("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack", "row_stack")
)
"""Functions whose tensors all have dimensions or, in ``stack``, none: torch refuses others or reshapes them first."""
_SIZES = ("size", "shape", "repeats")
"""Parameters whose numbers say how long each dimension of the result is, or how often it is repeated."""
_DIMENSIONS = ("dim", "dim0", "dim1", "dims", "axis", "axis0", "axis1", "source", "destination")
"""Parameters whose numbers name dimensions of the tensor."""
PYTHON = "py:"
"""What rules begin with whose result is a Python number."""
COMPLEX_NUMBER = "complex"
"""The kind of a Python number such as ``1j``, which makes any tensor complex."""


def dtypes_by_rule(session: Session, op: Op, rule: str, operands: list[Operand], numbers: Items[str | None]) -> Dtypes:
    """The result's dtypes, from those that the kernel sees; ``numbers`` are kinds of Python numbers among them."""
    mask = constant_of(rule)
    if mask is not None:
        return _where_it_holds(op, session.constant(mask), operands)
    if not operands:
        if len(numbers) != len(op.slots) or None in numbers:
            return session.unknown
        made = number_result(numbers) if rule == "promote" else constant_of("default") if rule == "first" else None
        return session.constant(made) if made else session.unknown
    if rule == "first":
        dtypes = operands[0].value.dtypes
    elif rule in _CHANGES:
        if op.even and _uneven(operands):
            return session.unknown
        dtypes = _promoted(session, operands, widest=rule == "widest" or op.name in _OF_ONE_RANK)
        integral = any(lane.mask & _INTEGRAL for lane in dtypes)
        if COMPLEX_NUMBER in numbers:
            dtypes = tuple(_changed(lane, complex_of(lane.mask)) for lane in dtypes)
        elif integral and numbers:
            dtypes = tuple(_with_numbers(lane, numbers) for lane in dtypes)
        change = _CHANGES[rule]
        if change is not None:
            dtypes = tuple(change(lane) for lane in dtypes)
        if len(operands) == 1 and operands[0].value.trait is Trait.COUNT:
            dtypes = tuple(map(_settled, operands[0].value.dtypes, dtypes))
    else:
        named = next((o for o in operands if o.name == rule.rstrip("*")), None)
        if named is None:
            return session.unknown
        dtypes = named.value.dtypes
    return _where_it_holds(op, dtypes, operands)


def _settled(counted: Lane, result: Lane) -> Lane:
    """``arange`` over numbers that are not known is of integers, or of torch's default dtype: floats made of integers
    are of that one too."""
    made = counted.open and counted.mask == _INT64 and result.mask == FLOAT32
    return Lane(FLOAT32) if made else result


def _uneven(operands: list[Operand]) -> bool:
    """Whether tensors of different dtypes stand beside each other of which some have no dimensions."""
    first = operands[0].value
    return any(o.value.dim != first.dim for o in operands) and any(o.value.dtypes != first.dtypes for o in operands)


@cache
def constant_of(rule: str) -> int | None:
    """The dtypes of a rule that does not look at operands."""
    if rule == "default":
        return FLOAT32
    return BITS[rule] if rule in NAMES else None


def _promoted(session: Session, operands: list[Operand], *, widest: bool) -> Dtypes:
    first = operands[0].value
    dtypes, dim = first.dtypes, first.dim
    for operand in operands[1:]:
        value = operand.value
        dtypes = session.promote(dtypes, 1 if widest else dim, value.dtypes, 1 if widest else value.dim)
        if dim != value.dim:
            dim = 1 if 1 in (dim, value.dim) else None
    return dtypes


def _where_it_holds(op: Op, dtypes: Dtypes, operands: list[Operand]) -> Dtypes:
    """Unknown where an operand is of a kind for which the rule was not found to hold."""
    held = _HOLDS[op.holds]
    if held == -1:
        return dtypes
    lanes = []
    for lane, dtype in enumerate(dtypes):
        masks = [o.value.dtypes[lane].mask for o in operands]
        odd = any(mask & ~held for mask in masks) or (op.holds == "mixed" and not any(mask & FLOATS for mask in masks))
        lanes.append(UNKNOWN_LANE if odd else dtype)
    return tuple(lanes)


def _with_numbers(lane: Lane, numbers: Items[str | None]) -> Lane:
    """Python numbers beside an integer or bool tensor."""
    if "float" in numbers:
        return _integers_to(lane, FLOAT32)
    if "int" in numbers and lane.mask & BOOL:
        return _changed(lane, lane.mask & ~BOOL | _INT64)
    return lane


def _changed(lane: Lane, mask: int) -> Lane:
    return lane if mask == lane.mask else Lane(mask, None, lane.assumed, lane.open)


def _integers_to(lane: Lane, mask: int) -> Lane:
    return _changed(lane, lane.mask & ~_INTEGRAL | mask) if lane.mask & _INTEGRAL else lane


def _floated(lane: Lane) -> Lane:
    return _integers_to(lane, FLOAT32)


def _real(lane: Lane) -> Lane:
    return _changed(lane, lane.mask & ~COMPLEX | real_of(lane.mask & COMPLEX)) if lane.mask & COMPLEX else lane


_CHANGES: dict[str, Callable[[Lane], Lane] | None] = {
    "promote": None,
    "widest": None,
    "float": _floated,
    "sum": lambda lane: _integers_to(lane, _INT64),
    "int": lambda lane: _changed(lane, lane.mask & ~BOOL | _INT64) if lane.mask & BOOL else lane,
    "real": _real,
    "float_real": lambda lane: _real(_floated(lane)),
    "complex": lambda lane: Lane(complex_of(lane.mask), None, lane.assumed, lane.open),
}
"""Rules on what the operands promote to."""


# ---- under autocast, where the operands' casts do not tell ------------------------------------------------------


def dtypes_under(
    session: Session, op: Op, rule: str, before: list[Operand], autocast: Items[Ambient], plain: Dtypes
) -> Dtypes:
    """The result where autocast is on, by a rule on what the operands were; ``plain`` where it is off.

    ``a|b``: either. Autocast leaves an operation alone none of whose operands it could cast.
    """
    parts = [_under(session, op, part, before, autocast) for part in rule.split("|")]
    lanes = []
    for number, (state, off) in enumerate(zip(autocast, plain, strict=True)):
        masks = [o.value.dtypes[number].mask for o in before]
        if not state.low or all(mask and not mask & AUTOCASTABLE for mask in masks):
            lanes.append(off)
        elif state.unknown or any(mask & ~AUTOCASTABLE for mask in masks):
            lanes.append(UNKNOWN_LANE)
        else:
            found = [part[number] for part in parts]
            lanes.append(found[0] if len(found) == 1 else _either(found))
    return tuple(lanes)


def _under(session: Session, op: Op, rule: str, before: list[Operand], autocast: Items[Ambient]) -> Dtypes:
    if rule == "low":
        return tuple(Lane(state.low) if state.on else UNKNOWN_LANE for state in autocast)
    return session.unknown if rule == "unknown" else dtypes_by_rule(session, op, rule, before, ())


def _either(lanes: list[Lane]) -> Lane:
    if not all(lane.known for lane in lanes):
        return UNKNOWN_LANE
    mask = 0
    for lane in lanes:
        mask |= lane.mask
    return Lane(mask, None, any(lane.assumed for lane in lanes))


def where_sure(unsure: Items[str], dtypes: Dtypes, before: list[Operand], autocast: Items[Ambient]) -> Dtypes:
    """Unknown where autocast is on and an operand is one for which its effect was not found to follow the policy."""
    if "uneven" in unsure and len({o.value.dim for o in before}) > 1:
        return tuple(UNKNOWN_LANE if state.low else dtype for dtype, state in zip(dtypes, autocast, strict=True))
    integers = ~FLOATS if "integers" in unsure else 0
    other = LOW if "other" in unsure else 0
    lanes = []
    for lane, (dtype, state) in enumerate(zip(dtypes, autocast, strict=True)):
        odd = integers | (other & ~state.low)
        sure = not state.low or not any(o.value.dtypes[lane].mask & odd for o in before)
        lanes.append(dtype if sure else UNKNOWN_LANE)
    return tuple(lanes)


# ---- results that are no tensors, and dimensions ----------------------------------------------------------------


def python_result(rule: str, operands: list[Operand]) -> Value:
    """A Python number or a size."""
    kind = rule.removeprefix(PYTHON)
    if kind == "ints":
        return Sequence(None, Number("int"))
    if kind != "number":
        return Number(kind)
    mask = 0
    for lane in operands[0].value.dtypes if operands else ():
        mask |= lane.mask if lane.known else FLOATS
    return Number("float" if not mask or mask & ~_INTEGRAL else "int" if mask & INTEGERS else "bool")


def result_dim(op: Op, bound: dict[str, Value], operands: list[Operand]) -> int | None:
    """0 for a full reduction, 1 where an operand has dimensions and the operation keeps them, None where unknown."""
    if gives_dimensions(op, bound):
        return 1
    if not op.keeps_dims:
        if op.scalar is None:
            return None if any(o.value.dim != 0 for o in operands) else 0
        if not any(_is_passed(bound.get(name)) for name in op.scalar):
            return 0
        return 1 if _leaves_dimensions(bound, operands) else None
    shapes = [operand.value.dim for operand in operands]
    if "condition" in bound:
        shapes.append(_dim_of(bound["condition"]))
    if 1 in shapes:
        return 1
    return 0 if shapes and None not in shapes else None


def _dim_of(value: Value) -> int | None:
    return value.dim if isinstance(value, Tensor) else None


def gives_dimensions(op: Op, bound: dict[str, Value]) -> bool:
    """Whether the result has dimensions whatever the operation gets."""
    return op.dimensioned or any(_is_size(bound.get(name)) for name in _SIZES) or _names_second(op, bound)


def _names_second(op: Op, bound: dict[str, Value]) -> bool:
    """Whether the call names a dimension that only a tensor of two has, or one that gets a dimension, and keeps all.

    Of two tensors, ``dims`` are what ``tensordot`` sums over.
    """
    names = [name for name in _DIMENSIONS if name in bound and (name != "dims" or len(op.tensors) == 1)]
    named = itertools.chain.from_iterable(_indices(bound[name]) for name in names)
    return op.keeps_dims and _least_dimensions(list(named)) > 1


def _is_size(value: Value | None) -> bool:
    """Whether a value says how long the dimensions of a result are, of which there is one at least."""
    return (
        isinstance(value, Number)
        or (isinstance(value, Const) and isinstance(value.value, int))
        or bool(isinstance(value, Sequence) and (value.items or value.head or value.tail))
    )


def _leaves_dimensions(bound: dict[str, Value], operands: list[Operand]) -> bool:
    """Whether a reduction over the dimensions that the call names leaves one.

    It does where it keeps what it reduced, and where the numbers themselves need a tensor of more dimensions than they
    are: what has a dimension 1 has a dimension 0 too.
    """
    kept = bound.get("keepdim")
    if isinstance(kept, Const) and kept.value is True:
        return all(o.value.dim != 0 for o in operands)
    indices = _indices(bound.get("dim"))
    return bool(indices) and _least_dimensions(indices) > len(indices)


def _indices(named: Value | None) -> list[int]:
    """The numbers of the dimensions that an argument names; none where one is not known."""
    numbers: tuple[Value | None, ...] = (named.items or ()) if isinstance(named, Sequence) else (named,)
    indices = [v.value for v in numbers if isinstance(v, Const) and isinstance(v.value, int)]
    return indices if len(indices) == len(numbers) else []


def _least_dimensions(indices: list[int]) -> int:
    """The number of dimensions that a tensor needs to have all of ``indices``."""
    return max((index + 1 if index >= 0 else -index for index in indices), default=0)


def _is_passed(value: Value | None) -> bool:
    return value is not None and not (isinstance(value, Const) and value.value is None)


def number_result(kinds: Items[str | None]) -> int | None:
    """The dtype that a constructor, or an operation on nothing else, gives its Python numbers; None where one is not
    known, or complex."""
    if COMPLEX_NUMBER in kinds:
        return None
    if not kinds or None in kinds:
        return FLOAT32 if "float" in kinds else None
    return FLOAT32 if "float" in kinds else _INT64 if "int" in kinds else BOOL
