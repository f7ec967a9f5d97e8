"""Queries of autocast's state: those that ask CUDA's alone, or do not ask whether it is on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.custom_autograd import role_of
from amplint.claims.on_cuda import on_cuda
from amplint.finding import Place
from amplint.frozen import dataclass
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.torch_model.attention_kernels import OF_CUDA

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


@dataclass(frozen=True, slots=True)
class Asked:
    """What one finding is about: queries, a parameter that is evidently a tensor whose device may be asked for, and
    whether torch has deprecated one of the queries."""

    members: tuple[Query, ...]
    tensor: str | None
    outgrown: bool


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
    of_cuda = _steering_cuda(facts, around, calls)
    of_cuda |= {id(q.function) for q in candidates if q.function and _decorated_for_cuda(q.function, around)}
    of_cuda |= {id(q.function) for q in candidates if q.function and _called_for_cuda(q.function, facts, around, names)}
    return [
        query
        for query in candidates
        if id(query.function) not in aware
        and id(query.function) not in of_cuda
        and not around.version_guarded(query.call)
        and not on_cuda(query.call, around)
        and not _feeds_cuda(query.call, facts.source.tree, around, names)
    ]


def asked_together(queries: list[Query], around: Surroundings) -> list[tuple[ast.expr, list[Query]]]:
    """Each query at its call, or several as one: those of both kinds in one conditional expression lie at it, and
    dtypes that are asked for where a query said that autocast is on lie at that query."""
    groups: dict[int, tuple[ast.expr, list[Query]]] = {}
    enabled = {id(query.call): query for query in queries if not query.asks_dtype}
    for query in queries:
        asked = _in_one_expression(query, queries, around) or query.call
        if asked is query.call and query.asks_dtype:
            yes = (n for test, answer in around.tests(query.call) if answer for n in ast.walk(around.asked(test)))
            asked = next((enabled[id(node)].call for node in yes if id(node) in enabled), asked)
        groups.setdefault(id(asked), (asked, []))[1].append(query)
    return list(groups.values())


def _in_one_expression(query: Query, queries: list[Query], around: Surroundings) -> ast.expr | None:
    """The smallest conditional expression that holds a query and one of the other kind."""
    for ancestor in around.ancestors(query.call):
        if not isinstance(ancestor, ast.expr):
            return None
        inside = [other for other in queries if around.is_within(other.call, ancestor)]
        if isinstance(ancestor, ast.IfExp | ast.BoolOp) and len({other.asks_dtype for other in inside}) == 2:
            return ancestor
    return None


def places_outside(node: ast.expr, members: list[Query], facts: FileFacts, around: Surroundings) -> tuple[Place, ...]:
    """Where the queries of one finding lie that are not part of the expression at which it lies."""
    apart = (query.call for query in members if query.call is not node and not around.is_within(query.call, node))
    return tuple(Place(facts.path, facts.source.span(call)) for call in apart)


def _knows_devices(name: str, call: ast.Call) -> bool:
    """Whether a call shows that its function deals with devices itself: it asks another one, or sets CUDA's state."""
    if name in _OF_OTHER_DEVICES or name in _SETTERS:
        return True
    return name in (ENABLED, "torch.get_autocast_dtype") and bool(call.args) and not _is_cuda(call.args[0])


def _runs_on_cuda(name: str) -> bool:
    """Whether a function that calls something runs on CUDA alone: what of ``torch.cuda`` works without it is about
    autocast or asks what there is."""
    return name.startswith("torch.cuda.") and not name.startswith(("torch.cuda.amp.", "torch.cuda.is_"))


def _steering_cuda(facts: FileFacts, around: Surroundings, calls: list[tuple[str, ast.Call]]) -> set[int]:
    """The functions of a file, by ``id``, that steer CUDA or run an attention kernel of CUDA alone, or call one of the
    file's own that does so untested: whatever else has autocast does not come there."""
    kernels = (c for c in nodes_of_kind(facts.source.tree, ast.Call) if _is_kernel_of_cuda(c, around))
    steering = (*(call for name, call in calls if _runs_on_cuda(name)), *kernels)
    steered = [(call, function) for call in steering if (function := around.function(call)) is not None]
    untested = {id(f) for call, f in steered if not on_cuda(call, around, where_available=True)}
    users = {
        id(scope.node)
        for scope in (facts.training.program.scopes if untested else ())
        for call in scope.calls
        if (own := facts.training.program.callee(call, scope)) is not None and id(own.node) in untested
    }
    return users | {id(function) for _, function in steered}


def _is_kernel_of_cuda(call: ast.Call, around: Surroundings) -> bool:
    """Whether a call runs an imported attention kernel of CUDA, under whatever name."""
    imported = around.imported(call.func)
    if imported is None:
        return False
    return (call.func.attr if isinstance(call.func, ast.Attribute) else imported[0].name) in OF_CUDA


def _decorated_for_cuda(function: FunctionNode, around: Surroundings) -> bool:
    """Whether the decorators of a Function's methods name CUDA."""
    for decorator in function.decorator_list:
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = around.torch_name(named)
        if role_of(name) is None:
            continue
        if name.startswith("torch.cuda."):
            return True
        if isinstance(decorator, ast.Call) and _is_cuda(_first(decorator)):
            return True
    return False


def _called_for_cuda(function: FunctionNode, facts: FileFacts, around: Surroundings, names: dict[int, str]) -> bool:
    """Whether the file calls a function, and only in regions of CUDA's autocast: it is their state that it asks for."""
    uses = around.uses_of(function.name)
    return bool(uses) and all(_in_region_of_cuda(use, around, names) for use in uses)


def _named(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _in_region_of_cuda(node: ast.AST, around: Surroundings, names: dict[int, str]) -> bool:
    """Whether a call of what ``node`` names stands in a region that opens CUDA's autocast."""
    call = around.parent(node)
    if not isinstance(call, ast.Call) or call.func is not node:
        return False
    regions = (a for a in around.ancestors(call) if isinstance(a, ast.With | ast.AsyncWith))
    opened = (item.context_expr for region in regions for item in region.items)
    return any(isinstance(region, ast.Call) and _opens_cuda(region, names) for region in opened)


def _opens_cuda(call: ast.Call, names: dict[int, str]) -> bool:
    name = names.get(id(call), "")
    return name.startswith("torch.cuda.amp.") or (name in _AUTOCASTS and _is_cuda(_first(call)))


def _feeds_cuda(call: ast.Call, tree: ast.Module, around: Surroundings, names: dict[int, str]) -> bool:
    """Whether the answer goes into CUDA's own autocast, straight or by an attribute or a variable that nothing else
    reads."""
    for ancestor in around.ancestors(call):
        if isinstance(ancestor, ast.Assign):
            kept = [_named(target) for target in ancestor.targets]
            named = (node for node in nodes_of_kind(tree, ast.Attribute, ast.Name) if _named(node) in kept)
            read = [node for node in named if isinstance(node, ast.expr) and isinstance(node.ctx, ast.Load)]
            return None not in kept and bool(read) and all(_is_given_to_cuda(node, around, names) for node in read)
        if isinstance(ancestor, ast.stmt):
            return False
        if isinstance(ancestor, ast.Call) and _opens_cuda(ancestor, names):
            return True
    return False


def _is_given_to_cuda(node: ast.expr, around: Surroundings, names: dict[int, str]) -> bool:
    keyword = around.parent(node)
    call = around.parent(keyword) if isinstance(keyword, ast.keyword) else None
    return isinstance(call, ast.Call) and _opens_cuda(call, names)


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
    for node in nodes_of_kind(function, ast.Attribute):
        if isinstance(node.value, ast.Name):
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
