"""Which variables of a file may hold complex tensors, by what is done with them and by what made them.

A cast to a real dtype drops their imaginary part without an error, and a complex tensor is no half-precision one.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.syntax.bodies import children, once_for_each_node
from amplint.infer.syntax.references import references

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.infer.syntax.bodies import FunctionNode
    from amplint.source import Source

_DEMANDS = frozenset(
    (
        *("torch.view_as_real", "torch.angle", "torch.conj", "torch.conj_physical", "torch.resolve_conj"),
        *("torch.real", "torch.imag", "torch.is_complex", "torch.istft"),
        *(f"torch.fft.{name}{dims}" for name in ("ifft", "irfft", "hfft") for dims in ("", "2", "n")),
    )
)
"""Functions whose first argument is complex, or may be."""
_DEMANDING_METHODS = frozenset(("angle", "conj", "conj_physical", "resolve_conj", "is_complex"))
_PARTS = ("real", "imag")
_MAKERS = frozenset(
    (
        *("torch.complex", "torch.polar", "torch.view_as_complex", "torch.stft"),
        *("torch.linalg.eig", "torch.linalg.eigvals"),
        *(f"torch.fft.{name}{dims}" for name in ("fft", "ifft", "rfft", "ihfft") for dims in ("", "2", "n")),
    )
)
_MAKING_METHODS = frozenset(("cfloat", "cdouble", "chalf", "stft"))
_COMPLEX_DTYPES = frozenset(("complex32", "complex64", "complex128", "chalf", "cfloat", "cdouble"))
_REAL_DTYPES = frozenset(("float16", "bfloat16", "float32", "float64", "half", "float", "double"))
_REAL_RESULTS = frozenset(
    (
        *("abs", "absolute", "angle", "norm", "float", "half", "double", "bfloat16", "int", "long", "bool", "type"),
        *(
            "type_as",
            "item",
            "size",
            "dim",
            "numel",
            "argmax",
            "argmin",
            "is_complex",
            "istft",
            "view_as_real",
            "real",
            "imag",
        ),
        *("irfft", "irfft2", "irfftn", "hfft", "hfft2", "hfftn", "shape", "zeros", "ones", "empty", "arange", "full"),
    )
)
"""Methods and functions whose result is not complex where the tensor is."""
_SIGNS = re.compile(
    rb"\b(?:is_|view_as_)?complex\d*\b|\bi?[rh]?fft[2n]?\b|\bi?stft\b|\bangle\b|\bpolar\b|\bview_as_real\b|"
    rb"\.(?:real|imag)\b|\b(?:resolve_)?conj|\bc(?:float|double|half)\b|\beig(?:vals)?\b|\d[jJ]\b|"
    rb"\bimport (?:real|imag)\b"
)
"""What a file that says anything of complex tensors contains."""
_PARTS_OF_SIGNS = (
    *(b"complex", b"fft", b"stft", b"angle", b"polar", b"view_as_real", b".real", b".imag", b"conj"),
    *(b"cfloat", b"cdouble", b"chalf", b"import real", b"import imag"),
)
_OTHER_SIGNS = (re.compile(rb"eig(?<!\weig)(?:vals)?\b"), re.compile(rb"\d[jJ]\b"))
"""One of either is in each of these signs; they are found in a fraction of the time."""

_TELLING = (
    *(ast.Attribute, ast.Call, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.Return, ast.comprehension),
    *(ast.For, ast.AsyncFor, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
)
Definition = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Definition | ast.Module
Key = tuple[int, str]
"""A variable: the ``id`` of its scope, or of the class for an attribute of its objects, and its name."""
_RESULT = "()"
_START = (0, 0)
Place = tuple[int, int]


class _Assignment(NamedTuple):
    value: ast.expr
    place: Place
    certain: bool
    scope: Scope


class ComplexValues:
    """What the variables of one file may hold.

    A use says it of what it uses, so of what that was computed from, and of what callers in the file pass
    (``_demanded``, where that was there before the function); all that is computed from something complex is so too
    (``_held``).
    """

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        found = [reference for reference in references(tree) if isinstance(reference.node, ast.expr)]
        self._torch = {id(reference.node): reference.name for reference in found}
        self._spelled = {ast.unparse(reference.node): reference.name for reference in found}
        self._scopes: dict[Scope, list[ast.AST]] = {}
        """Each with those of its nodes that tell something."""
        self._functions: dict[int, Definition] = {}
        self._parents: dict[int, Scope] = {}
        self._classes: dict[int, ast.ClassDef] = {}
        self._defined: dict[tuple[int, str], Definition] = {}
        self._called: set[int] = set()
        self._assigned: dict[Key, list[_Assignment]] = defaultdict(list)
        self._passed: dict[Key, list[tuple[ast.expr, Scope]]] = defaultdict(list)
        self._asked: set[Key] = set()
        self._demanded: set[Key] = set()
        self._held: set[Key] = set()
        self._collect()
        self._demand()
        self._hold()

    def parameters(self, definition: Definition) -> frozenset[str]:
        """Parameters that a caller passes something complex for; not so where the function asks whether it is.

        ``definition`` may come from a parse of its own.
        """
        found = next((f for f in self._functions.values() if _place(f) == _place(definition)), definition)
        keys = ((id(found), parameter.arg) for parameter in _parameters(found))
        return frozenset(key[1] for key in keys if key in self._demanded and key not in self._asked)

    def may_be_complex(self, node: ast.expr, row: int) -> bool:
        """Whether an expression in the function around a line may be complex, as far as the file tells."""
        return self._is_complex(node, self._around(row))

    def _around(self, row: int) -> Scope:
        around = [f for f in self._functions.values() if f.lineno <= row <= (f.end_lineno or f.lineno)]
        return max(around, key=lambda function: function.lineno) if around else self._tree

    def _collect(self) -> None:
        pending: list[Scope] = [self._tree]
        while pending:
            scope = pending.pop()
            nodes = self._scopes[scope] = [node for node in _own_nodes(scope) if isinstance(node, _TELLING)]
            for node in nodes:
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    self._functions[id(node)] = node
                    self._parents[id(node)] = scope
                    pending.append(node)
                elif isinstance(node, ast.ClassDef):
                    methods = [part for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))]
                    self._classes.update({id(method): node for method in methods})
                    self._defined.update({(id(node), method.name): method for method in methods})
                elif isinstance(node, ast.Call):
                    self._called.add(id(node.func))
        for function in self._functions.values():
            if id(function) not in self._classes:
                self._defined[id(self._parents[id(function)]), function.name] = function
        for scope, nodes in self._scopes.items():
            for node in nodes:
                self._note(node, scope)

    def _note(self, node: ast.AST, scope: Scope) -> None:
        """What one piece of code assigns and passes."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value, node, scope)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            if node.value is not None:
                self._assign(node.target, node.value, node, scope)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            self._assign(node.target, node.iter, node, scope)
        elif isinstance(node, ast.Return) and node.value is not None:
            self._assign(ast.Name(_RESULT), node.value, node, scope)
        elif isinstance(node, ast.Call):
            function = self._callee(node, scope)
            if function is not None:
                for parameter, argument in _bound(node, function, of_object=id(function) in self._classes):
                    self._passed[id(function), parameter].append((argument, scope))

    def _assign(self, target: ast.expr, value: ast.expr, node: ast.AST, scope: Scope) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            values = values if len(values) == len(target.elts) else [value] * len(target.elts)
            for part, given in zip(target.elts, values, strict=True):
                self._assign(part, given, node, scope)
            return
        key = (id(scope), target.id) if isinstance(target, ast.Name) else self._key(target, scope)
        if key is not None:
            certain = isinstance(node, (ast.Assign, ast.AnnAssign)) and node in scope.body
            self._assigned[key].append(_Assignment(value, _place(node), certain, scope))

    def _key(self, node: ast.expr, scope: Scope) -> Key | None:
        """The variable that an expression names; an attribute of the method's own object is one of the class."""
        while isinstance(node, (ast.Starred, ast.Subscript)):
            node = node.value
        if isinstance(node, ast.Name):
            return self._variable(node.id, scope)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            cls = self._classes.get(id(scope))
            receiver = _parameters(scope)[:1] if not isinstance(scope, ast.Module) else []
            if cls is not None and receiver and receiver[0].arg == node.value.id:
                return id(cls), node.attr
        return None

    def _variable(self, name: str, scope: Scope) -> Key:
        """A variable of the innermost scope that binds it."""
        inner: Scope = scope
        while inner is not self._tree and name != _RESULT:
            assert not isinstance(inner, ast.Module)
            if (id(inner), name) in self._assigned or any(a.arg == name for a in _parameters(inner)):
                break
            inner = self._parents[id(inner)]
        return id(inner), name

    def _callee(self, call: ast.Call, scope: Scope) -> Definition | None:
        """The function of the file that a call calls: by its name, or as a method of the same object."""
        if isinstance(call.func, ast.Name):
            inner: Scope | None = scope
            while inner is not None:
                if (id(inner), call.func.id) in self._defined:
                    return self._defined[id(inner), call.func.id]
                inner = self._parents.get(id(inner))
        key = self._key(call.func, scope) if isinstance(call.func, ast.Attribute) else None
        return self._defined.get(key) if key is not None else None

    def _torch_name(self, call: ast.Call) -> str | None:
        """The torch function that is called; of a call that is not in the file, by how the file spells it."""
        known = self._torch.get(id(call.func))
        return (
            known if known is not None or id(call.func) in self._called else self._spelled.get(ast.unparse(call.func))
        )

    def _carried(self, node: ast.expr, scope: Scope) -> Iterator[tuple[Key, Place]]:
        """The variables that an expression is as complex as."""
        for part in self._parts(node, scope):
            if isinstance(part, ast.Call):
                function = self._callee(part, scope)
                if function is not None:
                    yield (id(function), _RESULT), _place(part)
            else:
                key = self._key(part, scope)
                if key is not None:
                    yield key, _place(part)

    def _parts(self, node: ast.expr, scope: Scope) -> Iterator[ast.expr]:
        """The names, attributes and calls that decide whether an expression is complex."""
        if isinstance(node, ast.Name):
            yield node
        elif isinstance(node, ast.Attribute):
            if self._key(node, scope) is not None:
                yield node
            elif node.attr in ("T", "mT", "H", "mH", "data", "grad"):
                yield from self._parts(node.value, scope)
        elif isinstance(node, ast.Call):
            yield node
            name = self._torch_name(node)
            if name is not None:
                if name not in _MAKERS and name.rpartition(".")[2] not in _REAL_RESULTS:
                    for argument in node.args:
                        yield from self._parts(argument, scope)
            elif isinstance(node.func, ast.Attribute) and self._callee(node, scope) is None:
                real = node.func.attr in _REAL_RESULTS or _names_dtype(node, _REAL_DTYPES)
                yield from () if real else self._parts(node.func.value, scope)
        elif isinstance(node, (ast.Subscript, ast.Starred, ast.NamedExpr)):
            yield from self._parts(node.value, scope)
        elif isinstance(node, (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Tuple, ast.List)):
            for part in _operands(node):
                yield from self._parts(part, scope)
        elif isinstance(node, ast.Constant) and isinstance(node.value, complex):
            yield node

    def _is_complex(self, node: ast.expr, scope: Scope) -> bool:
        return self._is_made(node, scope) or any(key in self._held for key, _ in self._carried(node, scope))

    def _is_made(self, node: ast.expr, scope: Scope) -> bool:
        """Whether something complex is made in an expression, and is what it gives."""
        parts = self._parts(node, scope)
        return any(isinstance(p, ast.Constant) or (isinstance(p, ast.Call) and self._makes(p)) for p in parts)

    def _makes(self, call: ast.Call) -> bool:
        if _names_dtype(call, _COMPLEX_DTYPES):
            return True
        name = self._torch_name(call)
        method = call.func.attr if isinstance(call.func, ast.Attribute) and name is None else ""
        made = name in _MAKERS or method in _MAKING_METHODS
        return made and not any(k.arg == "return_complex" and _is_false(k.value) for k in call.keywords)

    def _demand(self) -> None:
        """Follow uses back to what they use; of a variable to what was assigned to it before."""
        used = [(part, scope) for scope, nodes in self._scopes.items() for node in nodes for part in self._used(node)]
        pending = [found for (node, asks), scope in used for found in self._carried(node, scope) if not asks]
        self._asked.update(key for (node, asks), scope in used for key, _ in self._carried(node, scope) if asks)
        self._held |= self._asked
        seen: set[tuple[Key, Place]] = set()
        while pending:
            key, place = pending.pop()
            if (key, place) in seen or key in self._asked:
                continue
            seen.add((key, place))
            self._held.add(key)
            assigned = self._assigned.get(key, [])
            if key[0] in self._functions and key[1] != _RESULT:
                assigned = [assignment for assignment in assigned if assignment.place < place]
            last = max((a.place for a in assigned if a.certain), default=_START)
            if last == _START:
                self._demanded.add(key)
                for argument, scope in self._passed.get(key, ()):
                    pending += self._carried(argument, scope)
            for assignment in assigned:
                if assignment.place >= last:
                    pending += self._carried(assignment.value, assignment.scope)

    def _used(self, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
        """What a piece of code uses as only a complex tensor is, and whether it only asks."""
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and id(node) not in self._called:
            if node.attr in _PARTS and id(node) not in self._torch:
                yield node.value, False
            elif node.attr == "is_complex" and isinstance(node.value, ast.Attribute):
                yield node.value.value, True
        elif isinstance(node, ast.Call):
            name = self._torch_name(node)
            if name in _DEMANDS and node.args:
                yield node.args[0], name == "torch.is_complex"
            method = node.func if isinstance(node.func, ast.Attribute) and name is None and not node.args else None
            if method is not None and method.attr in _DEMANDING_METHODS:
                yield method.value, method.attr == "is_complex"

    def _hold(self) -> None:
        """Follow what is complex on to what is computed from it."""
        given = [(key, a.value, a.scope) for key, assigned in self._assigned.items() for a in assigned]
        given += [(key, *pair) for key, passed in self._passed.items() for pair in passed]
        leads: dict[Key, list[Key]] = defaultdict(list)
        pending = [*self._held]
        for key, value, scope in given:
            if self._is_made(value, scope):
                pending.append(key)
            for source, _ in self._carried(value, scope):
                leads[source].append(key)
        self._held.clear()
        while pending:
            key = pending.pop()
            if key not in self._held:
                self._held.add(key)
                pending += leads[key]


@once_for_each_node
def complex_values(tree: ast.Module) -> ComplexValues:
    """What the variables of a file may hold."""
    return ComplexValues(tree)


@lru_cache(maxsize=8)
def speaks_of_complex(text: bytes) -> bool:
    """Whether a file can say anything of complex tensors at all."""
    return any(sign.search(text) for sign in _OTHER_SIGNS) or any(_has_sign(text, part) for part in _PARTS_OF_SIGNS)


def _has_sign(text: bytes, part: bytes) -> bool:
    """Whether a line with a part has a whole sign."""
    at = text.find(part)
    while at >= 0:
        end = text.find(b"\n", at)
        if _SIGNS.search(text, text.rfind(b"\n", 0, at) + 1, end if end >= 0 else len(text)):
            return True
        at = text.find(part, end) if end >= 0 else -1
    return False


def complex_parameters(source: Source, function: FunctionNode) -> frozenset[str]:
    """Names of the parameters that a function of a file takes for complex, or hands on to one of the file that does."""
    if isinstance(function, ast.Lambda) or not speaks_of_complex(source.data):
        return frozenset()
    return complex_values(source.tree).parameters(function)


def _own_nodes(scope: Scope) -> list[ast.AST]:
    """The nodes of a scope, with the functions in it but not what is in them; the bodies of classes are its own."""
    found: list[ast.AST] = []
    pending: list[ast.AST] = [*scope.body]
    while pending:
        node = pending.pop()
        found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            pending.extend(children(node))
    return found


def _parameters(function: Definition) -> list[ast.arg]:
    spec = function.args
    return [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]


def _bound(call: ast.Call, function: Definition, *, of_object: bool) -> Iterator[tuple[str, ast.expr]]:
    """Arguments of a call by the name of their parameter, up to the first that is starred."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)][of_object:]
    for name, argument in zip(names, call.args, strict=False):
        if isinstance(argument, ast.Starred):
            break
        yield name, argument
    yield from ((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg is not None)


def _operands(node: ast.expr) -> Iterable[ast.expr]:
    if isinstance(node, ast.BinOp):
        return (node.left, node.right)
    if isinstance(node, ast.IfExp):
        return (node.body, node.orelse)
    if isinstance(node, (ast.Tuple, ast.List)):
        return node.elts
    return (node.operand,) if isinstance(node, ast.UnaryOp) else ()


def _names_dtype(call: ast.Call, dtypes: frozenset[str]) -> bool:
    """Whether a call is given a dtype of torch by name."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(isinstance(value, ast.Attribute) and value.attr in dtypes for value in given)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _place(node: ast.AST) -> Place:
    """Where a node begins; a comprehension runs before what it gives."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
