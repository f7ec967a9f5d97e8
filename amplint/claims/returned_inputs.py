"""What a function got, where one of its returns gives it back and another one something in another dtype."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from amplint.claims.surroundings import Surroundings
    from amplint.infer.state.facts import BranchDtypes


@dataclass(frozen=True, slots=True)
class ReturnedInput:
    """What is returned beside an argument that another return gives back, and how that one's dtype is read there.

    ``kept``: an assignment that has to keep the dtype first, and the statement that it stands before, which gives the
    argument's variable another value.
    """

    value: ast.expr
    dtype: str
    kept: tuple[str, ast.stmt] | None = None


def returned_input(found: BranchDtypes, around: Surroundings) -> ReturnedInput | None:
    """The one argument that the other return gives back as it came; None where there are several or none."""
    pairs = zip(_items(found.node), _items(found.other), strict=False)
    inputs = [each for here, there in pairs if (each := _input(here, there, around)) is not None]
    return inputs[0] if len(inputs) == 1 else None


def _items(value: ast.expr) -> list[ast.expr]:
    return value.elts if isinstance(value, ast.Tuple) else [value]


def _input(here: ast.expr, there: ast.expr, around: Surroundings) -> ReturnedInput | None:
    function = around.function(here)
    same = ast.dump(here) == ast.dump(there)
    if same or not isinstance(there, ast.Name) or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    parameters = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    arguments, names = {each.arg for each in parameters}, nodes_of_kind(function, ast.Name)
    stores = [name for name in names if name.id == there.id and not isinstance(name.ctx, ast.Load)]
    if there.id not in arguments:
        return None
    if not stores:
        return ReturnedInput(here, f"{there.id}.dtype")
    statement, _ = around.statement(stores[0])
    block = any(statement is each for each in function.body)
    if len(stores) > 1 or statement is None or not block or not there.lineno < statement.lineno < here.lineno:
        return None
    free = next((n for n in ("dtype", f"{there.id}_dtype") if n not in arguments | {each.id for each in names}), None)
    return ReturnedInput(here, free, (f"{free} = {there.id}.dtype", statement)) if free is not None else None
