"""Autocast regions for CUDA in code that runs on any device."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint.claims.cast_receivers import may_be_device
from amplint.claims.on_cuda import asks_for_cuda, on_cuda
from amplint.claims.surroundings import FunctionNode, Surroundings
from amplint.infer.flow.training.roles import is_autocast
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts
    from amplint.infer.syntax.references import Reference

_ACCELERATORS = frozenset({"mps", "tpu", "xla", "xpu", "hpu", "npu", "mlu", "musa", "ipu"})


def _names_cuda(reference: Reference, around: Surroundings) -> bool:
    """Whether a reference opens a region for CUDA that may be on, whatever device there is."""
    call = reference.call
    if call is None or not is_autocast(reference.name):
        return False
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    legacy = reference.name.startswith("torch.cuda.amp.")
    device = given.get("device_type", call.args[0] if call.args else None)
    if not legacy and not (isinstance(device, ast.Constant) and device.value == "cuda"):
        return False
    enabled = switch(reference)
    if isinstance(enabled, ast.Constant) and not enabled.value:
        return False
    return enabled is None or not _asks_for_device(enabled, around)


def switch(reference: Reference) -> ast.expr | None:
    """What a region is given to say whether it is on; None where it always is."""
    call = reference.call
    legacy = (reference.name or "").startswith("torch.cuda.amp.")
    if call is None:
        return None
    first = call.args[0] if legacy and call.args else None
    return next((keyword.value for keyword in call.keywords if keyword.arg == "enabled"), first)


def _other_device(call: ast.Call, around: Surroundings) -> ast.expr | None:
    """The first expression of the function or class around a call that takes its device from elsewhere."""
    excluded = next((test for test, _ in around.tests(call) if _excludes_a_device(test)), None)
    outwards = [a for a in around.ancestors(call) if isinstance(a, FunctionNode | ast.ClassDef)]
    if excluded is not None or not outwards:
        return excluded
    return _device_from_elsewhere(outwards[-1], around)


@lru_cache(maxsize=4)
def _device_from_elsewhere(owner: ast.AST, around: Surroundings) -> ast.expr | None:
    return next(_devices_from_elsewhere(owner, around), None)


def _devices_from_elsewhere(owner: ast.AST, around: Surroundings) -> Iterator[ast.expr]:
    parameters = {
        argument.arg
        for function in nodes_of_kind(owner, ast.FunctionDef, ast.AsyncFunctionDef)
        for argument in (*function.args.args, *function.args.kwonlyargs)
    }
    for node in nodes_of_kind(owner, ast.IfExp, ast.Attribute, ast.Call):
        if isinstance(node, ast.IfExp) and _falls_back(node):
            yield node
        if isinstance(node, ast.Attribute) and node.attr == "device" and isinstance(node.ctx, ast.Load):
            parent = around.parent(node)
            if not (isinstance(parent, ast.Attribute) and parent.value is node.value):
                yield node
        if isinstance(node, ast.Call):
            to = isinstance(node.func, ast.Attribute) and node.func.attr == "to" and node.args[:1]
            moved = [value for value in (node.args[:1] if to else []) if may_be_device(around, value)]
            for value in (*moved, *(k.value for k in node.keywords if k.arg == "device")):
                if isinstance(value, ast.Name) and value.id in parameters:
                    yield value


def _excludes_a_device(test: ast.expr) -> bool:
    """Whether a test rules out one kind of device other than the CPU, and so leaves the CPU in: ``device != "mps"``."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.NotEq):
        return False
    value = test.comparators[0]
    return isinstance(value, ast.Constant) and value.value in _ACCELERATORS


def _chosen_outside(call: ast.Call, around: Surroundings, tree: ast.Module) -> ast.expr | None:
    """The choice of a device by the module that the function around a call reads."""
    function = around.function(call)
    read = {name.id for name in nodes_of_kind(function, ast.Name)} if function is not None else ()
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id in read for t in statement.targets
        ):
            for node in nodes_of_kind(statement.value, ast.IfExp):
                if _falls_back(node):
                    return node
    return None


def _falls_back(choice: ast.IfExp) -> bool:
    """``"cuda" if torch.cuda.is_available() else "cpu"``."""
    other = [n.value for n in ast.walk(choice.orelse) if isinstance(n, ast.Constant)]
    return any(map(_says_cuda, ast.walk(choice.body))) and any(value in ("cpu", "mps", "xpu") for value in other)


def _says_cuda(node: ast.AST) -> bool:
    text = next(iter(node.values), None) if isinstance(node, ast.JoinedStr) else node
    return isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value.startswith("cuda")


def _asks_for_device(enabled: ast.expr, around: Surroundings) -> bool:
    """Whether a region is enabled by the device: of a tensor, compared with its name, or by torch.cuda's answer."""
    parts = list(ast.walk(enabled))
    named = any(isinstance(part, ast.Attribute) and part.attr == "device" for part in parts)
    words = {part.value for part in parts if isinstance(part, ast.Constant)}
    return named or bool(words & {"cpu", *_ACCELERATORS}) or asks_for_cuda(enabled, around)


def device_here(call: ast.Call, around: Surroundings) -> str | None:
    """The one device that the function or class around a region takes from elsewhere, as the region may read it too."""
    function = around.function(call)
    outwards = [a for a in around.ancestors(call) if isinstance(a, FunctionNode | ast.ClassDef)]
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or not outwards:
        return None
    if any(each is call for decorator in function.decorator_list for each in ast.walk(decorator)):
        return None
    found = list(_devices_from_elsewhere(outwards[-1], around))
    spelled = {ast.unparse(device) for device in found}
    root = found[0] if len(spelled) == 1 else None
    while isinstance(root, ast.Attribute):
        root = root.value
    parameters = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    if not isinstance(root, ast.Name) or root.id not in {each.arg for each in parameters}:
        return None
    if any(name.id == root.id and isinstance(name.ctx, ast.Store) for name in nodes_of_kind(function, ast.Name)):
        return None
    return spelled.pop()


def cuda_regions(facts: FileFacts) -> Iterator[tuple[ast.Call, ast.expr, bool]]:
    """The regions for CUDA that the code opens without asking for it, what shows that it runs on other devices, and
    whether a flag switches the region on."""
    around = Surroundings.of(facts.source.tree)
    for reference in facts.references:
        call = reference.call
        if call is not None and _names_cuda(reference, around) and not on_cuda(call, around, where_available=True):
            found = _other_device(call, around) or _chosen_outside(call, around, facts.source.tree)
            if found is not None:
                flags = (answer and isinstance(test, ast.Name | ast.Attribute) for test, answer in around.tests(call))
                yield call, found, not isinstance(switch(reference), ast.Constant | type(None)) or any(flags)
