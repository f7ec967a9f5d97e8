"""Queries of autocast's state: those that ask CUDA's alone, or do not ask whether it is on, and idle ones."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from amplint.claims.surroundings import FunctionNode, Surroundings, tests_cuda

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
    return [
        query
        for query in candidates
        if id(query.function) not in aware
        and not around.version_guarded(query.call)
        and not around.guarded(query.call, tests_cuda)
        and not _feeds_cuda(query.call, around, names)
    ]


def _knows_devices(name: str, call: ast.Call) -> bool:
    """Whether a call shows that its function deals with devices itself: it asks another one, or sets CUDA's state."""
    if name in _OF_OTHER_DEVICES or name in _SETTERS:
        return True
    return name in (ENABLED, "torch.get_autocast_dtype") and bool(call.args) and not _is_cuda(call.args[0])


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


def decides_nothing(answer: ast.expr, around: Surroundings) -> bool:
    """Whether a variable keeps an answer that tests alone read: the first guards casts, and the others cast back.

    ``cast = not torch.is_autocast_enabled()``, then ``if cast:`` keep a dtype and cast the input, and ``if cast:`` cast
    the result back. A wrong answer costs no more than the casts: autocast casts for the operations between them. Not
    where what was cast is returned, or lends its dtype to something else.
    """
    function, kept = around.function(answer), _variable(answer, around)
    if function is None or kept is None:
        return False
    nodes = list(ast.walk(function))
    reads = [node for node in nodes if _is_named(node, kept) and isinstance(node.ctx, ast.Load)]
    tests = [node for node in nodes if isinstance(node, ast.If) and node.test in reads and not node.orelse]
    if len(reads) != len(tests) or len(tests) < 2:
        return False
    first, *others = sorted(tests, key=lambda test: test.lineno)
    there, back = list(_assignments(first)), [pair for test in others for pair in _assignments(test)]
    if None in there or not all(pair is not None and _is_cast(pair[1]) for pair in back):
        return False
    pairs = [pair for pair in there if pair is not None and not _is_dtype(pair[1])]
    cast = {name for name, value in pairs if not _joins_at_once(function, first, name, value)}
    return cast.isdisjoint(_deciding(function, [*tests, around.statement(answer)[0]]))


def _joins_at_once(function: FunctionNode, test: ast.If, name: str, value: ast.expr) -> bool:
    """Whether what was cast to a parameter's dtype is replaced next by what a call makes of it and that parameter.

    ``y = cast(y, scale.dtype)``, then ``y = rotate(scale, y)``: promotion gives that dtype without the cast.
    """
    lenders = {ast.unparse(node.value) for node in ast.walk(value) if _is_dtype(node)}
    after = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and node.lineno > (test.end_lineno or test.lineno)
        and any(_is_named(read, name) for read in ast.walk(node))
    ]
    taken = min(after, key=lambda statement: statement.lineno, default=None)
    if taken is None or not isinstance(taken.value, ast.Call) or not _is_named(taken.targets[0], name):
        return False
    return any(ast.unparse(argument) in lenders for argument in taken.value.args)


def _variable(answer: ast.expr, around: Surroundings) -> str | None:
    """The one variable that an answer is kept in."""
    statement, _ = around.statement(answer)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    return target.id if isinstance(target, ast.Name) else None


def _is_named(node: ast.AST, name: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == name


def _assignments(test: ast.If) -> Iterator[tuple[str, ast.expr] | None]:
    """(variable, value) of each statement below a test, None for one that does something else."""
    for statement in test.body:
        if isinstance(statement, ast.If) and not statement.orelse:
            yield from _assignments(statement)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            yield statement.targets[0].id, statement.value
        else:
            yield None


def _is_dtype(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == "dtype"


def _is_cast(value: ast.expr) -> bool:
    """``y.to(dtype)`` with a variable that keeps a dtype."""
    is_to = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "to"
    return is_to and any(isinstance(given, ast.Name) for given in getattr(value, "args", ()))


def _deciding(function: FunctionNode, apart: list[ast.stmt | None]) -> Iterator[str]:
    """Variables whose dtype outlives the casts: returned, or asked for their dtype, apart from some statements."""
    pending: list[ast.AST] = [*function.body]
    while pending:
        node = pending.pop()
        if node in apart:
            continue
        if isinstance(node, ast.Return) and node.value is not None:
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            yield from (part.id for part in parts if isinstance(part, ast.Name))
        if _is_dtype(node) and isinstance(node.value, ast.Name):
            yield node.value.id
        pending.extend(ast.iter_child_nodes(node))


def unasked_dtypes(facts: FileFacts, around: Surroundings) -> Iterator[ast.Call]:
    """Queries of autocast's dtype that are compared in functions that never ask whether it is on."""
    asked = {id(around.function(r.node)) for r in facts.references if r.name in _ENABLED_QUERIES and r.call is not None}
    for reference in facts.references:
        call = reference.call
        if call is None or reference.name not in _DTYPE_QUERIES or id(around.function(call)) in asked:
            continue
        if isinstance(around.parent(call), ast.Compare):
            yield call
