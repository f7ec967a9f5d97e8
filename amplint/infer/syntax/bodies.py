"""What one walk over a function's body tells: whether it yields, computes with tensors, or drives training."""

from __future__ import annotations

import ast
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from amplint.infer.syntax.packages import package_of

if TYPE_CHECKING:
    from collections.abc import Callable

_TENSOR_METHODS = frozenset(("to", "float", "half", "bfloat16", "double", "type", "type_as", "matmul"))
OF_TENSORS = frozenset(("torch", "einops"))
"""Packages whose functions are for tensors."""
_STORING_CALLS = frozenset(
    (
        *("__init__", "append", "extend", "insert", "update", "setdefault", "pop", "setattr", "__setattr__"),
        *("register_buffer", "register_parameter", "register_module", "add_module"),
    )
)
_CHANGING = frozenset(("update", "pop", "popitem", "setdefault", "clear", "__setitem__"))
_HOLDING = frozenset((ast.Subscript, ast.Call))
_DRIVER_CALLS = frozenset(("backward", "zero_grad"))


FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Node = TypeVar("Node", bound=ast.AST)
Told = TypeVar("Told")


def once_for_each_node(walk: Callable[[Node], Told]) -> Callable[[Node], Told]:
    """Keep what a walk over a node tells for as long as the node lives; it may refer to nodes below that one."""
    name = f"{walk.__module__}.{walk.__qualname__}"

    @wraps(walk)
    def told(node: Node) -> Told:
        kept = node.__dict__
        if name not in kept:
            kept[name] = walk(node)
        found: Told = kept[name]
        return found

    return told


class Body(NamedTuple):
    """What is known of a function without running it.

    ``generator``: calling it runs nothing yet. ``computes``: it does something with tensors itself, rather than only
    build, configure or call others. ``driver``: it drives training or evaluation itself, so no autocast is around it
    but what it opens. ``size``: its number of syntax nodes, contexts and operators left out. ``identity``: it hands
    back its first argument, as decorators do that only register. ``defines``: functions of its own; ``makes``: it
    returns one of them. ``answers``: it returns a value or yields. ``stores``: it assigns an attribute or an item, or
    calls what may. ``names``: those it mentions. ``asked``: attributes that it reads or sets of its first parameter, in
    the order of the source. ``handed``: parameters that it passes alone, as in ``self.a.b(x)``, with the path to what
    is called. ``tests``: the conditions that it branches on. ``branching``: the variables that these consist of.
    """

    generator: bool
    computes: bool
    driver: bool
    size: int
    identity: bool
    defines: bool
    makes: bool
    answers: bool
    stores: bool
    names: frozenset[str]
    asked: tuple[str, ...]
    handed: tuple[tuple[str, tuple[str, ...]], ...]
    tests: tuple[ast.expr, ...]
    branching: frozenset[str]


_NO_NODES = frozenset(
    (
        *("id", "attr", "ctx", "op", "ops", "name", "names", "arg", "kind", "type_comment", "level", "module"),
        *("simple", "is_async", "conversion", "rest", "kwd_attrs", "str", "lineno"),
    )
)
"""Fields that hold strings, numbers, contexts and operators."""
GAPS = frozenset(("keys", "kw_defaults"))
"""Fields whose lists hold None too."""

FIELDS = {
    kind: () if kind in (ast.Constant, ast.MatchSingleton) else tuple(f for f in kind._fields if f not in _NO_NODES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
"""The fields of each kind of node that hold other nodes, in Python's order; contexts, operators and import aliases left
out."""
_FUNCTIONS = frozenset((ast.FunctionDef, ast.AsyncFunctionDef))


def children(node: ast.AST) -> list[ast.AST]:
    """``ast.iter_child_nodes`` without contexts, operators and import aliases."""
    found: list[ast.AST] = []
    for name in FIELDS[node.__class__]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found.extend([item for item in value if item is not None] if name in GAPS else value)
        elif value is not None:
            found.append(value)
    return found


@once_for_each_node
def nodes_inside(function: ast.AST) -> list[ast.AST]:
    """The nodes below a function, without itself; nobody changes the list."""
    return _below(children(function))


def nodes_below(root: ast.AST) -> list[ast.AST]:
    """``ast.walk`` in no particular order, without contexts, operators and import aliases; functions are walked once
    for all walks that come across them."""
    return _below([root])


def _below(stack: list[ast.AST]) -> list[ast.AST]:
    found: list[ast.AST] = []
    pop, push, extend, note, below = stack.pop, stack.append, stack.extend, found.append, FIELDS
    while stack:
        node = pop()
        note(node)
        if node.__class__ in _FUNCTIONS:
            found += nodes_inside(node)
            continue
        for name in below[node.__class__]:
            value = getattr(node, name, None)
            if value.__class__ is list:
                extend([item for item in value if item is not None] if name in GAPS else value)
            elif value is not None:
                push(value)
    return found


_SILENT = frozenset((ast.Constant, ast.arg, ast.arguments, ast.keyword, ast.Assign, ast.Expr, ast.Compare, ast.Tuple))
"""Kinds of node that tell nothing of a body by themselves; most are of these."""


def body_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Body:
    """Walk a function once."""
    generator, computes, driver = isinstance(node, ast.AsyncFunctionDef), False, False
    inside = nodes_inside(node)
    size, defines, stores = 1 + len(inside), False, False
    names: set[str] = set()
    own: set[str] = set()
    spec = node.args
    parameters = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    receiver = parameters[0] if len(parameters) > len(spec.kwonlyargs) else ""
    asked: list[ast.Attribute] = []
    handed: list[tuple[str, tuple[str, ...]]] = []
    returned: list[ast.expr | None] = []
    tests: list[ast.expr] = []
    for child in inside:
        if type(child) is ast.Name:
            names.add(child.id)
        elif child.__class__ in _SILENT:
            continue
        elif isinstance(child, ast.Attribute):
            stores = stores or isinstance(child.ctx, ast.Store)
            computes = computes or child.attr == "grad"
            if isinstance(child.value, ast.Name) and child.value.id == receiver:
                asked.append(child)
        elif isinstance(child, ast.Call):
            function = child.func
            if isinstance(function, ast.Attribute):
                name = function.attr
                computes = computes or name in _TENSOR_METHODS or name.endswith("_")
                driver = driver or name in _DRIVER_CALLS
                stores = stores or name in _STORING_CALLS
                if len(child.args) == 1 and isinstance(child.args[0], ast.Name) and child.args[0].id in parameters:
                    path = _path_from(function, receiver)
                    handed += [(child.args[0].id, path)] if path else []
            elif isinstance(function, ast.Name):
                stores = stores or function.id == "setattr"
        elif isinstance(child, ast.Subscript):
            stores = stores or isinstance(child.ctx, ast.Store)
        elif isinstance(child, ast.BinOp):
            computes = computes or isinstance(child.op, ast.MatMult)
        elif isinstance(child, ast.Return):
            returned.append(child.value)
        elif isinstance(child, (ast.If, ast.IfExp, ast.While, ast.Assert)):
            tests.append(child.test)
        elif isinstance(child, (ast.ClassDef, ast.Import, ast.ImportFrom)):
            computes = computes or isinstance(child, ast.ClassDef) or package_of(child.names[0], child) in OF_TENSORS
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            defines = True
            own.add(getattr(child, "name", ""))
        elif isinstance(child, (ast.Yield, ast.YieldFrom)):
            generator = True
        elif isinstance(child, (ast.With, ast.AsyncWith)):
            driver = driver or any(_opens_autocast(item.context_expr) for item in child.items)
    first = spec.args[0].arg if spec.args else ""
    identity = bool(returned) and all(isinstance(value, ast.Name) and value.id == first for value in returned)
    answers = generator or any(value is not None for value in returned)
    makes = any(isinstance(value, ast.Name) and value.id in own for value in returned)
    asked.sort(key=lambda child: (child.lineno, child.col_offset))
    in_order = tuple({child.attr: None for child in asked})
    flags = (generator, computes, driver, size, identity, defines, makes, answers, stores)
    return Body(*flags, frozenset(names), in_order, tuple(handed), tuple(tests), _branching(tests))


def _branching(tests: list[ast.expr]) -> frozenset[str]:
    pending, names = [*tests], set[str]()
    while pending:
        test = pending.pop()
        if isinstance(test, ast.BoolOp):
            pending += test.values
        elif isinstance(test, ast.UnaryOp):
            pending.append(test.operand)
        elif isinstance(test, ast.Name):
            names.add(test.id)
    return frozenset(names)


def _path_from(node: ast.expr, receiver: str) -> tuple[str, ...]:
    """``("a", "b")`` of ``self.a.b``; nothing where something else is at the root."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    return tuple(reversed(path)) if isinstance(node, ast.Name) and node.id == receiver else ()


def attributes_set(tree: ast.Module | ast.ClassDef) -> tuple[frozenset[str], frozenset[str]]:
    """Names of the attributes that constructors assign to, and of those that anything else does; with a bracket before
    those whose items are."""
    made: set[str] = set()
    later: set[str] = set()
    pending: list[ast.stmt] = [*tree.body]
    while pending:
        statement = pending.pop()
        if isinstance(statement, ast.ClassDef):
            pending.extend(statement.body)
            continue
        names = made if isinstance(statement, ast.FunctionDef) and statement.name == "__init__" else later
        for node in nodes_below(statement):
            if type(node) is ast.Attribute:
                if type(node.ctx) is ast.Store:
                    names.add(node.attr)
            elif node.__class__ in _HOLDING and isinstance(held := _changed(node), ast.Attribute):
                names.add(f"[{held.attr}")
    return frozenset(made), frozenset(later)


def _changed(node: ast.AST) -> ast.expr | None:
    """What a node changes the items of."""
    if isinstance(node, ast.Subscript):
        return node.value if not isinstance(node.ctx, ast.Load) else None
    method = node.func if isinstance(node, ast.Call) else None
    return method.value if isinstance(method, ast.Attribute) and method.attr in _CHANGING else None


def globals_said(tree: ast.Module, body: Callable[[ast.FunctionDef | ast.AsyncFunctionDef], Body]) -> dict[str, bool]:
    """Names that functions say are global, and whether each such function is one of the module or of a class in it, and
    computes."""
    found: dict[str, bool] = {}
    pending: list[tuple[ast.AST, tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]]] = [(tree, ())]
    while pending:
        node, inside = pending.pop()
        if isinstance(node, ast.Global):
            sure = len(inside) == 1 and body(inside[0]).computes
            found.update({name: sure and found.get(name, True) for name in node.names})
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = (*inside, node)
        pending.extend([(child, inside) for child in children(node)])
    return found


@once_for_each_node
def called_plainly(node: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """Names that a function calls where it has not entered a context manager."""
    names = set()
    stack: list[ast.AST] = [*node.body]
    while stack:
        child = stack.pop()
        if isinstance(child, (ast.With, ast.AsyncWith)):
            continue
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name):
            names.add(child.func.id)
        stack.extend(children(child))
    return frozenset(names)


@once_for_each_node
def only_answer(node: FunctionNode) -> ast.expr | None:
    """The expression that a function gives that does nothing else."""
    if isinstance(node, ast.Lambda):
        return node.body
    last = node.body[-1]
    said = all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in node.body[:-1])
    return last.value if said and isinstance(last, ast.Return) and isinstance(node, ast.FunctionDef) else None


_OF_DIMENSIONS = frozenset(
    (
        *("view", "reshape", "permute", "transpose", "swapaxes", "flatten", "unflatten", "expand", "chunk", "split"),
        *("unbind", "narrow", "movedim", "T", "mT", "matmul", "bmm", "softmax"),
    )
)
"""Methods and attributes that only a tensor with dimensions has a use for."""


@once_for_each_node
def dimensioned(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """Names that a function treats as tensors with dimensions: it asks for the size of one, slices or transposes it.

    Asking for the shape alone, or for the number of dimensions, is what code does that takes any.
    """
    found: set[str] = set()
    for child in nodes_inside(node):
        value: ast.expr | None = None
        if type(child) is ast.Attribute:
            value = child.value if child.attr in _OF_DIMENSIONS else None
        elif type(child) is ast.Subscript:
            if isinstance(child.value, ast.Attribute) and child.value.attr == "shape":
                value = child.value.value
            elif any(isinstance(part, ast.Slice) for part in getattr(child.slice, "elts", (child.slice,))):
                value = child.value
        elif type(child) is ast.Call:
            if child.args and isinstance(child.func, ast.Attribute) and child.func.attr == "size":
                value = child.func.value
        elif type(child) is ast.Assign and isinstance(child.targets[0], ast.Tuple):
            asked = child.value.func if isinstance(child.value, ast.Call) else child.value
            value = asked.value if isinstance(asked, ast.Attribute) and asked.attr in ("shape", "size") else None
        if isinstance(value, ast.Name):
            found.add(value.id)
    return frozenset(found)


@once_for_each_node
def unpacked(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """Names that hold the arguments of other calls: ``f(*args, **kwargs)``."""
    calls = [child for child in nodes_inside(node) if type(child) is ast.Call]
    held = [argument.value for call in calls for argument in call.args if isinstance(argument, ast.Starred)]
    held += [keyword.value for call in calls for keyword in call.keywords if keyword.arg is None]
    return frozenset(value.id for value in held if isinstance(value, ast.Name))


@once_for_each_node
def hands_on(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a decorator puts a function in place of the one it gets that only passes its arguments on.

    It names that one in ``functools.wraps``, returns what calls with ``*args, **kwargs`` give, and computes nothing.
    """
    first = node.args.args[0].arg if node.args.args else ""
    return any(
        isinstance(child, ast.FunctionDef) and first in _wrapped(child) and _passes_on(child) for child in node.body
    )


def _wrapped(node: ast.FunctionDef) -> list[str]:
    """Names of the functions that this one is said to wrap."""
    calls = [d for d in node.decorator_list if isinstance(d, ast.Call) and _last_name(d.func) == "wraps"]
    return [argument.id for call in calls for argument in call.args if isinstance(argument, ast.Name)]


def _passes_on(node: ast.FunctionDef) -> bool:
    rest, keywords = node.args.vararg, node.args.kwarg
    body = body_of(node)
    if rest is None or keywords is None or body.computes or body.driver or body.generator:
        return False
    calls = [child.value for child in nodes_below(node) if isinstance(child, ast.Return) and child.value is not None]
    return bool(calls) and all(_calls_with(call, rest.arg, keywords.arg) for call in calls)


def _calls_with(node: ast.expr, rest: str, keywords: str) -> bool:
    """Whether it is a call with ``*rest, **keywords`` and nothing else."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or len(node.keywords) != 1:
        return False
    first, last = node.args[0], node.keywords[0]
    passed = first.value if isinstance(first, ast.Starred) else None
    return (
        isinstance(passed, ast.Name) and passed.id == rest and last.arg is None and _last_name(last.value) == keywords
    )


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _opens_autocast(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    name = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    return name == "autocast" and not any(
        k.arg == "enabled" and isinstance(k.value, ast.Constant) and k.value.value is False for k in node.keywords
    )
