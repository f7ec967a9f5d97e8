"""autograd Functions: their decorators, and the casts of what goes backward."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from mutants.operators.casts import drop
from mutants.operators.operator import Operator
from mutants.operators.spelling import called, in_parentheses, is_cast, operands

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutants.operators.operator import Edits
    from mutants.sources import File, Function

_PAIR = ("custom_fwd", "custom_bwd")


@lru_cache(maxsize=8)
def _methods(file: File) -> tuple[tuple[Function, Function], ...]:
    """``forward`` and ``backward`` of each class that derives from autograd's Function."""
    found = []
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ClassDef) and any(file.name(base).endswith("Function") for base in node.bases):
            named = {item.name: item for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))}
            if "forward" in named and "backward" in named:
                found.append((named["forward"], named["backward"]))
    return tuple(found)


def _decorators(file: File, function: Function) -> dict[str, ast.expr]:
    """The decorators of the pair, by the name of each."""
    found = {}
    for decorator in function.decorator_list:
        name = file.name(decorator.func if isinstance(decorator, ast.Call) else decorator).rpartition(".")[2]
        for one in _PAIR:
            if name.endswith(one):
                found[one] = decorator
    return found


def _removed(file: File, names: tuple[str, ...]) -> Edits:
    for pair in _methods(file):
        found = {name: one for method in pair for name, one in _decorators(file, method).items()}
        if all(name in found for name in names):
            yield tuple(file.without_decorator(found[name]) for name in names)


def _forward_removed(file: File) -> Edits:
    yield from _removed(file, _PAIR[:1])


def _backward_removed(file: File) -> Edits:
    yield from _removed(file, _PAIR[1:])


def _both_removed(file: File) -> Edits:
    yield from _removed(file, _PAIR)


def _added(file: File, which: int, decorator: str) -> Edits:
    """One of the pair on a Function that has none, below ``staticmethod``."""
    if file.torch is None:
        return
    for pair in _methods(file):
        method = pair[which]
        if any(_decorators(file, one) for one in pair) or not method.decorator_list:
            continue
        last = method.decorator_list[-1]
        margin = " " * method.col_offset
        yield (file.after(last, f"\n{margin}@{file.torch}.amp.{decorator}"),)


def _forward_float16(file: File) -> Edits:
    yield from _added(file, 0, f'custom_fwd(device_type="cuda", cast_inputs={file.torch}.float16)')


def _forward_only(file: File) -> Edits:
    yield from _added(file, 0, 'custom_fwd(device_type="cuda")')


def _backward_only(file: File) -> Edits:
    yield from _added(file, 1, 'custom_bwd(device_type="cuda")')


def _gradient_cast(file: File) -> Edits:
    for node, call in _backward_casts(file):
        gradients = {
            argument.arg for argument in [*node.args.args[1:], *([node.args.vararg] if node.args.vararg else [])]
        }
        if any(isinstance(inner, ast.Name) and inner.id in gradients for inner in ast.walk(call.func)):
            yield (drop(file, call),)


def _saved_cast(file: File) -> Edits:
    """A cast in backward of anything else, or of what ``save_for_backward`` takes."""
    for node, call in _backward_casts(file):
        gradients = {argument.arg for argument in node.args.args[1:]}
        if not any(isinstance(inner, ast.Name) and inner.id in gradients for inner in ast.walk(call.func)):
            yield (drop(file, call),)
    for forward, _ in _methods(file):
        for call in ast.walk(forward):
            if isinstance(call, ast.Call) and called(call) == "save_for_backward":
                for argument in call.args:
                    if is_cast(file, argument):
                        yield (drop(file, argument),)  # type: ignore[arg-type]


def _backward_casts(file: File) -> Iterator[tuple[Function, ast.Call]]:
    for _, backward in _methods(file):
        for node in ast.walk(backward):
            if isinstance(node, ast.Call) and is_cast(file, node) and file.function(node) is not None:
                yield backward, node


def _saved_float32(file: File) -> Edits:
    """What is saved for backward becomes float32."""
    for forward, _ in _methods(file):
        for call in ast.walk(forward):
            if isinstance(call, ast.Call) and called(call) == "save_for_backward":
                for argument in call.args:
                    if isinstance(argument, (ast.Name, ast.Attribute)):
                        yield (file.after(argument, ".float()"),)


def _backward_product(file: File) -> Edits:
    """``.float()`` on one operand of a product in backward."""
    for _, backward in _methods(file):
        for node in ast.walk(backward):
            for operand in operands(file, node)[1:2]:
                yield (file.replace(operand, in_parentheses(operand, file.text(operand)) + ".float()"),)


OPERATORS = (
    Operator("custom-fwd-removed", _forward_removed),
    Operator("custom-bwd-removed", _backward_removed),
    Operator("custom-pair-removed", _both_removed),
    Operator("custom-fwd-float16", _forward_float16),
    Operator("custom-fwd-alone", _forward_only),
    Operator("custom-bwd-alone", _backward_only),
    Operator("gradient-cast-dropped", _gradient_cast),
    Operator("saved-cast-dropped", _saved_cast),
    Operator("saved-float32", _saved_float32),
    Operator("float-before-backward-product", _backward_product),
)
