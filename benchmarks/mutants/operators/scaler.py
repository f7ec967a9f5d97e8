"""A training step: what belongs to the scaler dropped, doubled or moved; the borders of its region shifted."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from mutants.operators.operator import Operator
from mutants.operators.regions import is_region
from mutants.operators.spelling import called, in_parentheses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutants.edits import Edit
    from mutants.operators.operator import Edits
    from mutants.sources import File


def _is_scaler(file: File, node: ast.expr) -> bool:
    """Whether a name or attribute is a scaler: the file assigns a GradScaler to it, or scales or unscales by it."""
    return file.text(node) in _scalers(file)


@lru_cache(maxsize=4)
def _scalers(file: File) -> frozenset[str]:
    found = set()
    for call in ast.walk(file.tree):
        if not isinstance(call, ast.Call):
            continue
        if called(call) in ("scale", "unscale_") and isinstance(call.func, ast.Attribute):
            found.add(file.text(call.func.value))
        if called(call).endswith("GradScaler"):
            above = file.parents.get(call)
            if isinstance(above, ast.Assign):
                found |= {file.text(target) for target in above.targets}
    return frozenset(found)


def _steps(file: File, method: str) -> Iterator[tuple[ast.Expr, ast.Call]]:
    """The statements ``scaler.method(...)``."""
    for node in file.nodes:
        if not isinstance(node, (ast.Expr, ast.Assign)) or not isinstance(node.value, ast.Call):
            continue
        call = node.value
        if isinstance(call.func, ast.Attribute) and call.func.attr == method and _is_scaler(file, call.func.value):
            yield node, call  # type: ignore[misc]


def _dropped(file: File, method: str) -> Edits:
    for statement, _ in _steps(file, method):
        yield (file.replace(statement, "pass"),)


def _doubled(file: File, method: str) -> Edits:
    for statement, _ in _steps(file, method):
        text = file.text(statement)
        yield (file.after(statement, f"\n{file.indent(statement)}{text}"),)


def _unscale_dropped(file: File) -> Edits:
    yield from _dropped(file, "unscale_")


def _unscale_doubled(file: File) -> Edits:
    yield from _doubled(file, "unscale_")


def _update_dropped(file: File) -> Edits:
    yield from _dropped(file, "update")


def _update_doubled(file: File) -> Edits:
    yield from _doubled(file, "update")


def _step_doubled(file: File) -> Edits:
    yield from _doubled(file, "step")


def _step_dropped(file: File) -> Edits:
    yield from _dropped(file, "step")


def _plain_step(file: File) -> Edits:
    """``scaler.step(optimizer)`` becomes ``optimizer.step()``."""
    for statement, call in _steps(file, "step"):
        if call.args and not isinstance(call.args[0], ast.Starred):
            rest = ", ".join(file.text(argument) for argument in call.args[1:])
            optimizer = in_parentheses(call.args[0], file.text(call.args[0]))
            yield (file.replace(statement.value, f"{optimizer}.step({rest})"),)


def _scaled(file: File) -> Iterator[ast.Call]:
    """The calls ``scaler.scale(loss)``."""
    for call in file.calls():
        if called(call) != "scale" or not isinstance(call.func, ast.Attribute) or len(call.args) != 1:
            continue
        if _is_scaler(file, call.func.value):
            yield call


def _scale_dropped(file: File) -> Edits:
    """``scaler.scale(loss)`` becomes ``loss``."""
    for call in _scaled(file):
        yield (file.replace(call, in_parentheses(call.args[0], file.text(call.args[0]))),)


def _scale_doubled(file: File) -> Edits:
    for call in _scaled(file):
        yield (file.replace(call.args[0], file.text(call)),)


def _siblings(file: File, statement: ast.stmt) -> list[ast.stmt]:
    above = file.parents[statement]
    for name in ("body", "orelse", "finalbody"):
        found = getattr(above, name, None)
        if isinstance(found, list) and statement in found:
            return found
    return []


def _move(file: File, first: ast.stmt, then: ast.stmt) -> tuple[Edit, ...]:
    """The edits that put ``first`` behind ``then``."""
    return file.replace(first, "pass"), file.after(then, f"\n{file.indent(then)}{file.text(first)}")


def _unscale_moved(file: File) -> Edits:
    """``unscale_`` goes behind the next statement, as behind the clipping."""
    for statement, _ in _steps(file, "unscale_"):
        siblings = _siblings(file, statement)
        index = siblings.index(statement)
        if index + 1 < len(siblings):
            yield _move(file, statement, siblings[index + 1])


def _update_moved(file: File) -> Edits:
    """``update`` goes before the step."""
    for statement, _ in _steps(file, "update"):
        siblings = _siblings(file, statement)
        index = siblings.index(statement)
        if index > 0:
            yield _move(file, siblings[index - 1], statement)


def _is_backward(file: File, node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called(node.value) == "backward"


def _regions(file: File) -> Iterator[ast.With]:
    for node in file.nodes:
        if isinstance(node, ast.With) and any(is_region(item.context_expr, disabled=False) for item in node.items):
            yield node


def _backward_inside(file: File) -> Edits:
    """The backward after a region goes to its end."""
    for region in _regions(file):
        siblings = _siblings(file, region)
        for follower in siblings[siblings.index(region) + 1 :][:4]:
            if _is_backward(file, follower):
                last = region.body[-1]
                text = file.text(follower)
                yield file.replace(follower, "pass"), file.after(last, f"\n{file.indent(last)}{text}")
                break


def _loss_outside(file: File) -> Edits:
    """The last statement of a region goes behind it."""
    for region in _regions(file):
        if len(region.body) >= 2 and not isinstance(region.body[-1], (ast.Return, ast.With, ast.If, ast.For)):
            yield from _out_of(file, region, region.body[-1])


def _out_of(file: File, region: ast.With, statement: ast.stmt) -> Edits:
    lines = file.text(statement).split("\n")
    margin, inner = file.indent(region), file.indent(statement)
    text = "\n".join([lines[0], *(margin + line.removeprefix(inner) for line in lines[1:])])
    yield file.replace(statement, "pass"), file.after(statement, f"\n{margin}{text}")


def _forward_outside(file: File) -> Edits:
    """The first statement of a region goes before it."""
    for region in _regions(file):
        first = region.body[0]
        if len(region.body) >= 2 and isinstance(first, ast.Assign) and first.lineno == first.end_lineno:
            text, margin = file.text(first), file.indent(region)
            yield file.replace(first, "pass"), file.before(region, f"{text}\n{margin}")


def _region_dropped(file: File) -> Edits:
    """The region of a training step becomes a plain block."""
    from mutants.edits import Edit

    for region in _regions(file):
        last = region.items[-1].context_expr
        end = (last.end_lineno or 0, last.end_col_offset or 0)
        if len(region.items) == 1 and file.lines[end[0] - 1][end[1] :].startswith(b":"):
            yield (Edit(region.lineno, region.col_offset, *end, "if True"),)


def _half_model(file: File) -> Edits:
    """The model is halved before a region that a scaler follows."""
    for region in _regions(file):
        for node in ast.walk(region):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("model", "net"):
                yield (file.replace(node.func, f"{node.func.id}.half()"),)


OPERATORS = (
    Operator("unscale-dropped", _unscale_dropped, numeric=True),
    Operator("unscale-doubled", _unscale_doubled, numeric=True),
    Operator("unscale-moved", _unscale_moved, numeric=True),
    Operator("update-dropped", _update_dropped, numeric=True),
    Operator("update-doubled", _update_doubled, numeric=True),
    Operator("update-moved", _update_moved, numeric=True),
    Operator("scaler-step-dropped", _step_dropped, numeric=True),
    Operator("scaler-step-doubled", _step_doubled, numeric=True),
    Operator("plain-step", _plain_step, numeric=True),
    Operator("scale-dropped", _scale_dropped, numeric=True),
    Operator("scale-doubled", _scale_doubled, numeric=True),
    Operator("backward-in-region", _backward_inside, numeric=True),
    Operator("loss-outside-region", _loss_outside, numeric=True),
    Operator("forward-outside-region", _forward_outside, numeric=True),
    Operator("region-dropped", _region_dropped, numeric=True),
    Operator("half-model-in-region", _half_model),
)
