"""Queries of autocast's state: those that ask CUDA's alone, or do not ask whether it is on."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amplint.claims.on_cuda import on_cuda

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.claims.surroundings import FunctionNode, Surroundings
    from amplint.infer.state.facts import FileFacts
    from amplint.infer.syntax.references import Reference


ENABLED, DTYPE = "torch.is_autocast_enabled", "torch.get_autocast_gpu_dtype"
_AUTOCASTS = frozenset({"torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast"})
_OF_OTHER_DEVICES = frozenset(
    name
    for device in ("cpu", "xla", "ipu")
    for name in (f"torch.is_autocast_{device}_enabled", f"torch.get_autocast_{device}_dtype")
)
_SETTERS = frozenset({"torch.set_autocast_enabled", "torch.set_autocast_gpu_dtype", "torch.set_autocast_dtype"})
_TENSOR_ATTRIBUTES = frozenset({"device", "dtype"})
_TENSOR_USES = frozenset(
    {"contiguous", "data_ptr", "dim", "element_size", "float", "half", "is_cuda", "is_floating_point", "ndim", "numel"}
    | {"permute", "requires_grad", "reshape", "shape", "size", "stride", "T", "t", "to", "transpose", "type_as", "view"}
)
_DTYPE_QUERIES = frozenset({"torch.get_autocast_dtype", "torch.get_autocast_gpu_dtype", "torch.get_autocast_cpu_dtype"})
_ENABLED_QUERIES = frozenset({"torch.is_autocast_enabled", "torch.is_autocast_cpu_enabled"})


@dataclass(frozen=True, slots=True)
class Query:
    """A query: its reference, its call, and the function it stands in."""

    reference: Reference
    call: ast.Call
    function: FunctionNode | None

    @property
    def asks_dtype(self) -> bool:
        return self.reference.name == DTYPE


def cuda_only_queries(facts: FileFacts, around: Surroundings) -> list[Query]:
    """The queries of one file that may speak of the wrong device, in source order."""
    candidates = [
        Query(reference, reference.call, around.function(reference.call))
        for reference in facts.references
        if reference.call is not None
        and reference.name in (ENABLED, DTYPE)
        and not reference.call.args
        and not reference.call.keywords
    ]
    if not candidates:
        return []
    calls = [(reference.name, reference.call) for reference in facts.references if reference.call is not None]
    names = {id(call): name for name, call in calls}
    aware = {id(around.function(call)) for name, call in calls if _knows_devices(name, call)}
    of_cuda = {id(around.function(call)) for name, call in calls if _runs_on_cuda(name)}
    return [
        query
        for query in candidates
        if id(query.function) not in aware
        and (query.asks_dtype or query.function is None or id(query.function) not in of_cuda)
        and not around.version_guarded(query.call)
        and not on_cuda(query.call, around)
        and not _feeds_cuda(query.call, around, names)
    ]


def _knows_devices(name: str, call: ast.Call) -> bool:
    """Whether a call shows that its function deals with devices itself: it asks another one, or sets CUDA's state."""
    if name in _OF_OTHER_DEVICES or name in _SETTERS:
        return True
    return name in (ENABLED, "torch.get_autocast_dtype") and bool(call.args) and not _is_cuda(call.args[0])


def _runs_on_cuda(name: str) -> bool:
    """Whether a function that calls something runs on CUDA alone: what of ``torch.cuda`` works without it is about
    autocast or asks what there is."""
    return name.startswith("torch.cuda.") and not name.startswith(("torch.cuda.amp.", "torch.cuda.is_"))


def _feeds_cuda(call: ast.Call, around: Surroundings, names: dict[int, str]) -> bool:
    """Whether the answer goes straight into CUDA's own autocast."""
    for ancestor in around.ancestors(call):
        if isinstance(ancestor, ast.stmt):
            return False
        if isinstance(ancestor, ast.Call):
            name = names.get(id(ancestor), "")
            if name.startswith("torch.cuda.amp."):
                return True
            if name in _AUTOCASTS and _is_cuda(_first(ancestor)):
                return True
    return False


def _first(call: ast.Call) -> ast.expr | None:
    named = (keyword.value for keyword in call.keywords if keyword.arg == "device_type")
    return next(iter([*call.args[:1], *named]), None)


def _is_cuda(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == "cuda"


def evident_tensor(query: Query, near: Iterable[ast.AST]) -> str | None:
    """The name of a parameter that is a tensor to all appearance.

    It is annotated as one, or the function reads its ``dtype`` or ``device`` and uses it as a tensor. The one whose
    dtype or device is read in the expressions of ``near`` goes first.
    """
    function = query.function
    if function is None:
        return None
    arguments = [*function.args.posonlyargs, *function.args.args]
    optional = {a.arg for a in arguments[len(arguments) - len(function.args.defaults) :]}
    used: dict[str, set[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used.setdefault(node.value.id, set()).add(node.attr)
    candidates = []
    for argument in arguments:
        name, uses = argument.arg, used.get(argument.arg, set())
        if name in optional:
            continue
        annotation = ast.unparse(argument.annotation) if argument.annotation is not None else ""
        looks_so = bool(uses & _TENSOR_ATTRIBUTES) and bool(uses & _TENSOR_USES)
        if annotation.strip("'\"").rpartition(".")[2] == "Tensor" or (looks_so and not annotation):
            candidates.append(name)
    nearby = {
        node.value.id
        for root in near
        for node in ast.walk(root)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _TENSOR_ATTRIBUTES
    }
    return next((name for name in candidates if name in nearby), candidates[0] if candidates else None)


def unasked_dtypes(facts: FileFacts, around: Surroundings) -> Iterator[ast.Call]:
    """Queries of autocast's dtype that are compared in functions that never ask whether it is on."""
    asked = {id(around.function(r.node)) for r in facts.references if r.name in _ENABLED_QUERIES and r.call is not None}
    for reference in facts.references:
        call = reference.call
        if call is None or reference.name not in _DTYPE_QUERIES or id(around.function(call)) in asked:
            continue
        if isinstance(around.parent(call), ast.Compare):
            yield call
