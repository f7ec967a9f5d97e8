"""Autocast regions for CUDA in code that runs on any device."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amplint.claims.cast_receivers import may_be_device
from amplint.claims.cuda_answers import CudaAnswers
from amplint.claims.surroundings import FunctionNode, Surroundings, tests_cuda
from amplint.infer.flow.training.roles import is_autocast
from amplint.judge import doubts
from amplint.judge.certainty import holding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.finding import Doubt
    from amplint.infer.state.facts import FileFacts
    from amplint.infer.syntax.references import Reference

_ACCELERATORS = frozenset({"mps", "tpu", "xla", "xpu", "hpu", "npu", "mlu", "musa", "ipu"})
_HARMLESS = frozenset(
    f"torch.cuda.{name}" for name in ("is_available", "is_bf16_supported", "empty_cache", "device_count")
)
"""What code calls that may also run without CUDA."""


def _doubts(facts: FileFacts, call: ast.Call, around: Surroundings) -> Iterator[Doubt]:
    if _asked(call, around):
        yield doubts.CUDA_ASKED
    if around.version_guarded(call):
        yield doubts.VERSION_ASKED
    if _found_by_cuda(call, around, CudaAnswers(facts)):
        yield doubts.CUDA_FOUND
    if _is_of_another_object(call, around):
        yield doubts.OPTION_OF_ANOTHER
    if _runs_without(call, around):
        yield doubts.RUNS_WITHOUT


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
    enabled = given.get("enabled", call.args[0] if legacy and call.args else None)
    if isinstance(enabled, ast.Constant) and not enabled.value:
        return False
    return enabled is None or not _asks_for_device(enabled, around)


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What shows that the code around a region runs on other devices too, though it may be for CUDA alone."""

    node: ast.expr
    for_cuda_alone: bool = False


class _Owners:
    """What functions and classes say of devices, read once for all regions in them."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._needing: dict[int, list[ast.AST]] = {}
        self._elsewhere: dict[int, ast.expr | None] = {}
        self._read: dict[int, frozenset[str]] = {}

    def for_cuda_alone(self, owner: ast.AST, region: ast.Call) -> bool:
        """Whether a function or class needs CUDA beside a region, or is decorated as what does."""
        if id(owner) not in self._needing:
            decorated = any(_asks_for_cuda(d, self._around) for d in getattr(owner, "decorator_list", ()))
            needing = (n for n in ast.walk(owner) if _needs_cuda(n, self._around) and not _asked(n, self._around))
            self._needing[id(owner)] = [owner] if decorated else list(needing)
        return any(node is not region for node in self._needing[id(owner)])

    def device_from_elsewhere(self, owner: ast.AST) -> ast.expr | None:
        """The first expression of a function or class that takes its device from elsewhere."""
        if id(owner) not in self._elsewhere:
            self._elsewhere[id(owner)] = next(_devices_from_elsewhere(owner, self._around), None)
        return self._elsewhere[id(owner)]

    def names_read(self, function: ast.AST) -> frozenset[str]:
        """The names in a function."""
        if id(function) not in self._read:
            self._read[id(function)] = frozenset(n.id for n in ast.walk(function) if isinstance(n, ast.Name))
        return self._read[id(function)]


def _other_devices(call: ast.Call, around: Surroundings, owners: _Owners) -> _Evidence | None:
    """The first expression of the function or class around a call that takes its device from elsewhere.

    The same function or class is for CUDA alone where it puts something there, or calls ``torch.cuda``, without asking
    first.
    """
    excluded = next((test for test, _ in around.tests(call) if _excludes_a_device(test)), None)
    if excluded is not None:
        return _Evidence(excluded)
    outwards = [a for a in around.ancestors(call) if isinstance(a, FunctionNode | ast.ClassDef)]
    found = owners.device_from_elsewhere(outwards[-1]) if outwards else None
    if found is None:
        return None
    return _Evidence(found, any(owners.for_cuda_alone(owner, call) for owner in (outwards[0], outwards[-1])))


def _devices_from_elsewhere(owner: ast.AST, around: Surroundings) -> Iterator[ast.expr]:
    parameters = {
        argument.arg
        for function in ast.walk(owner)
        if isinstance(function, FunctionNode)
        for argument in (*function.args.args, *function.args.kwonlyargs)
    }
    for node in ast.walk(owner):
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


def _chosen_outside(call: ast.Call, around: Surroundings, owners: _Owners, tree: ast.Module) -> _Evidence | None:
    """The choice of a device by the module that the function around a call reads."""
    function = around.function(call)
    if function is None:
        return None
    read = owners.names_read(function)
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id in read for t in statement.targets
        ):
            for node in ast.walk(statement.value):
                if isinstance(node, ast.IfExp) and _falls_back(node):
                    return _Evidence(node, owners.for_cuda_alone(function, call))
    return None


def _falls_back(choice: ast.IfExp) -> bool:
    """``"cuda" if torch.cuda.is_available() else "cpu"``."""
    other = [n.value for n in ast.walk(choice.orelse) if isinstance(n, ast.Constant)]
    return any(map(_says_cuda, ast.walk(choice.body))) and any(value in ("cpu", "mps", "xpu") for value in other)


def _needs_cuda(node: ast.AST, around: Surroundings) -> bool:
    """``x.cuda()``, ``torch.cuda.synchronize()``, ``torch.device("cuda:0")``, ``x.to("cuda")``, ``device="cuda"``."""
    if not isinstance(node, ast.Call):
        return False
    name = around.torch_name(node.func)
    if name.startswith("torch.cuda.") and name not in _HARMLESS and ".amp" not in name:
        return True
    called = around.called(node)
    if called == "cuda" and isinstance(node.func, ast.Attribute):
        return True
    if called in ("device", "to") and node.args and _says_cuda(node.args[0]):
        return True
    return any(keyword.arg == "device" and _says_cuda(keyword.value) for keyword in node.keywords)


def _says_cuda(node: ast.AST) -> bool:
    text = next(iter(node.values), None) if isinstance(node, ast.JoinedStr) else node
    return isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value.startswith("cuda")


def _asked(node: ast.AST, around: Surroundings) -> bool:
    return around.guarded(node, lambda test: _asks_for_cuda(test, around))


def _asks_for_cuda(test: ast.expr, around: Surroundings) -> bool:
    """Whether an expression asks ``torch.cuda``, or a tensor or string whether it is of CUDA."""
    if isinstance(test, ast.Name):
        test = around.only_value(test) or test
    return tests_cuda(test) or any(around.torch_name(part).startswith("torch.cuda.") for part in ast.walk(test))


def _asks_for_device(enabled: ast.expr, around: Surroundings) -> bool:
    """Whether a region is enabled by the device: of a tensor, compared with its name, or by torch.cuda's answer."""
    parts = list(ast.walk(enabled))
    named = any(isinstance(part, ast.Attribute) and part.attr == "device" for part in parts)
    words = {part.value for part in parts if isinstance(part, ast.Constant)}
    return named or bool(words & {"cpu", *_ACCELERATORS}) or _asks_for_cuda(enabled, around)


def _found_by_cuda(node: ast.AST, around: Surroundings, answers: CudaAnswers) -> bool:
    """Whether a test decides if a node is evaluated whose answer comes from ``torch.cuda``."""
    function = around.function(node)
    return around.guarded(node, lambda test: not _excludes_a_device(test) and answers.decides(test, function))


def _is_of_another_object(call: ast.Call, around: Surroundings) -> bool:
    """Whether a region stands under the option of an object of another class, which also runs the model there.

    ``if engine.amp:``, then ``engine.inferer(x, engine.network)``: what the option means is that class's to say, and to
    change.
    """
    function = around.function(call)
    region = next((a for a in around.ancestors(call) if isinstance(a, ast.With)), None)
    if function is None or region is None:
        return False
    here = {a.name for a in around.ancestors(function) if isinstance(a, ast.ClassDef)}
    others = {
        argument.arg
        for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        if argument.annotation is not None and not any(name in ast.unparse(argument.annotation) for name in here)
    }
    asked = {
        test.value.id
        for test, _ in around.tests(call)
        if isinstance(test, ast.Attribute) and isinstance(test.value, ast.Name)
    }
    running = {
        node.func.value.id
        for node in ast.walk(region)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    }
    return bool(here and others & asked & running)


def _runs_without(call: ast.Call, around: Surroundings) -> bool:
    """Whether the other branch of a test runs what stands in a region, statement for statement, without one.

    Which device has the region is then the caller's to know, who asks for it: elsewhere torch warns, and computes what
    the other branch does. A test that rules out another device says that this one has it.
    """
    region = next((a for a in around.ancestors(call) if isinstance(a, ast.With)), None)
    if region is None or not any(item.context_expr is call for item in region.items):
        return False
    inside = [ast.dump(statement) for statement in region.body]
    return any(
        not _excludes_a_device(test) and _runs_in_order(inside, otherwise)
        for test, otherwise in around.other_branches(region)
    )


def _runs_in_order(wanted: list[str], block: list[ast.stmt]) -> bool:
    dumped = [ast.dump(statement) for statement in block]
    return any(dumped[i : i + len(wanted)] == wanted for i in range(len(dumped) - len(wanted) + 1))


def cuda_regions(facts: FileFacts) -> Iterator[tuple[ast.Call, ast.expr, tuple[Doubt, ...]]]:
    """The regions for CUDA, what shows that their code runs on other devices too, and what speaks against it."""
    around = Surroundings.of(facts.source.tree)
    regions = [reference for reference in facts.references if _names_cuda(reference, around)]
    owners = _Owners(around)
    for reference in regions:
        call = reference.call
        assert call is not None
        found = [_other_devices(call, around, owners), _chosen_outside(call, around, owners, facts.source.tree)]
        told = sorted((one for one in found if one is not None), key=lambda one: one.for_cuda_alone)
        if told:
            alone = holding({doubts.FOR_CUDA_ALONE: told[0].for_cuda_alone})
            yield call, told[0].node, (*alone, *_doubts(facts, call, around))
