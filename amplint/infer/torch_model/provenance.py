"""What gave an operand its dtype: autocast, a cast, a constructor, a parameter put beside a layer of a loaded model."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal

from amplint.infer.lattice.dtypes import FLOAT32, LOW, names_of
from amplint.infer.lattice.origins import deciding, lineage
from amplint.infer.lattice.values import Made
from amplint.infer.state.operand import MadeOperand
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.lattice.values import Origin, Tensor
    from amplint.infer.state.frame import Frame
    from amplint.infer.state.operand import Operand

MAX_ORIGINS = 200
"""Places that are looked back through for what made a dtype."""


def autocast_made(operand: Operand, lane: int) -> bool:
    """Whether autocast, on some path, made an operand low precision in a scenario."""
    return any(o.autocast >> lane & 1 and bool(o.dtypes[lane].mask & LOW) for o in behind(operand))


def beside_its_own(pair: tuple[Operand, Operand], lane: int) -> bool:
    """Whether one operand is what a module was passed, and the other was made low precision, by autocast, of that."""
    for given, made in (pair, pair[::-1]):
        origin = given.value.origin
        passed = origin is not None and isinstance(origin.node, ast.arg) and given.value.dtypes[lane].assumed
        if passed and made.value.dtypes[lane].exact and autocast_made(made, lane):
            return any(place.node is origin.node for place in behind(made) if origin is not None)
    return False


def was_added(operand: Operand, lane: int) -> bool:
    """Whether a parameter put beside a layer that was there before is what made an operand float32 in a scenario."""
    return any(o.made is Made.ADDED and o.dtypes[lane].mask == FLOAT32 for o in behind(operand))


def held_by_module(operand: Operand, lane: int) -> bool:
    """Whether an operand has its dtype of a parameter or buffer of a module."""
    decided = deciding(operand.value.origin, lane, through_modules=False)
    return decided is not None and decided.placed


def never_converted(pair: tuple[Operand, Operand], lane: int) -> bool:
    """Whether one operand is what a caller passes in low precision, and the other a weight that is float32 though
    nothing asks for that, because what holds it is made outside of any module: in a scenario with half weights."""
    for given, weight in (pair, pair[::-1]):
        passed, made = deciding(given.value.origin, lane), deciding(weight.value.origin, lane)
        if passed is None or made is None or not isinstance(passed.node, ast.arg):
            continue
        default = weight.value.leaf and made.parameter and made.made is None and not weight.value.explicit
        if default and made.dtypes[lane].mask == FLOAT32 and given.value.dtypes[lane].mask & LOW:
            return True
    return False


def came_with(frame: Frame, operand: Operand) -> bool:
    """Whether a constructor was given something that an operand's dtype depends on: it may be of the same making."""
    return any(id(origin.node) in frame.session.given for origin in behind(operand))


def holds_nothing(origin: Origin | None, lane: int) -> bool:
    """Whether all that makes a tensor float32 in a scenario is that, on some paths, it is one without elements.

    Such a tensor stands for none at all, and its shape keeps it from what would compute with it.
    """
    if origin is None or not origin.parents or origin.parents[0].node is not origin.node:
        return origin is not None and origin.empty
    wide = [parent for parent in origin.parents if parent.dtypes[lane].mask & FLOAT32]
    return bool(wide) and all(holds_nothing(parent, lane) for parent in wide)


def behind(operand: Operand) -> Iterator[Origin]:
    """Every place that an operand's dtype depends on, on any path."""
    pending = [operand.value.origin]
    seen: set[int] = set()
    while pending and len(seen) < MAX_ORIGINS:
        origin = pending.pop()
        if origin is None or id(origin) in seen:
            continue
        seen.add(id(origin))
        yield origin
        pending.extend(origin.parents)


def made_in(pair: tuple[Operand, Operand], lane: int) -> MadeOperand | None:
    """The operand, of two, that got its dtype where it was made, and from no other tensor.

    A parameter is its module's own affair, and what a caller passes the caller's.
    """
    for operand in pair:
        places = list(lineage(operand.value.origin, lane))
        if not places or operand.value.leaf or any(place.placed and not place.kept for place in places):
            continue
        maker = places[-1]
        if maker.made is None and (widener := _widener(operand, lane)) is not None:
            return MadeOperand(operand, widener, None, widener.made is Made.WRITTEN)
        if maker.made is not None and not maker.dtypes[lane].mask & LOW:
            where = next((place for place in places if place.kept), None)
            kept: Literal["buffer", "attribute"] | None = None
            if where is not None:
                kept = "buffer" if where.placed else "attribute"
            return MadeOperand(operand, maker, kept, kept is not None or maker.made is Made.WRITTEN)
    return None


def _widener(operand: Operand, lane: int) -> Origin | None:
    """The constructor that brings float32, on some ways, into what is otherwise low precision; the first of several.

    None where float32 comes in at anything but constructors and what plain attributes keep: operations on one of two
    ways are what widens then, or what a caller passes. None for a variable's first value, which others replace.
    """
    origin, dtype = operand.value.origin, operand.value.dtypes[lane]
    if origin is None or dtype.open or not (dtype.mask & FLOAT32 and dtype.mask & LOW):
        return None
    makers = []
    pending = [origin]
    seen: set[int] = set()
    while pending:
        place = pending.pop()
        if id(place) in seen:
            continue
        if len(seen) == MAX_ORIGINS or (place.placed and not place.kept):
            return None
        seen.add(id(place))
        wide = [parent for parent in place.parents if parent.dtypes[lane].mask & FLOAT32]
        pending += wide
        if not wide:
            makers.append(place)
    made = [maker for maker in makers if maker.made is not None]
    fixed = all(maker.dtypes[lane].mask == FLOAT32 and (maker in made or maker.kept) for maker in makers)
    if not fixed or any(_is_placeholder(maker) for maker in made):
        return None
    return min(made, key=lambda maker: maker.span, default=None)


def _is_placeholder(maker: Origin) -> bool:
    """Whether a tensor is what a variable has until its function, in a branch or a loop, puts another one there."""
    node, tree = maker.node, maker.source.tree
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.If, ast.IfExp, ast.Assign)
    around = [part for part in nodes_of_kind(tree, *kinds) if _holds(part, node)]
    functions = [part for part in around if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))]
    if not functions or any(isinstance(part, (ast.If, ast.IfExp)) for part in around):
        return False
    function = max(functions, key=lambda part: part.lineno)
    bindings = [name for name in nodes_of_kind(function, ast.Name) if isinstance(name.ctx, ast.Store)]
    assigned = [part for part in around if isinstance(part, ast.Assign)]
    names = {name.id for name in bindings if any(_holds(part, name) for part in assigned)}
    return any(name.id in names and name.lineno > (node.end_lineno or 0) for name in bindings)


def _holds(part: ast.AST, node: ast.expr | ast.stmt | ast.arg) -> bool:
    if not isinstance(part, (ast.expr, ast.stmt)):
        return False
    first, last = (part.lineno, part.col_offset), (part.end_lineno or 0, part.end_col_offset or 0)
    return first <= (node.lineno, node.col_offset) and (node.end_lineno or 0, node.end_col_offset or 0) <= last


def is_upcast(tensor: Tensor, lane: int) -> bool:
    """Whether a written cast to float32 or float64, and not of integers, decided the dtype in a scenario."""
    origin = deciding(tensor.origin, lane, through_modules=False)
    if origin is None or not origin.cast or origin.made is Made.CONVERTED:
        return False
    return "float32" in names_of(origin.dtypes[lane].mask) or "float64" in names_of(origin.dtypes[lane].mask)
