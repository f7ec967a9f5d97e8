"""Calls of a Python file with the arguments that the file itself decides. Nothing is imported or run."""

from __future__ import annotations

import ast
from dataclasses import field, replace
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.names import other_devices
from amplint.preflight import document
from amplint.preflight.call import Call, Dtype, Value, Variable
from amplint.preflight.document import UNKNOWN, Node
from amplint.preflight.frameworks import DTYPES, POSITIONAL, canonical
from amplint.preflight.problem import Place
from amplint.preflight.scopes import Scope, is_main_guard, scopes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.source import Source

HARDWARE_QUERIES = frozenset(
    {"is_bf16_supported", "is_bfloat16_supported", "is_bf16_available", "is_torch_bf16_available"}
    | {"is_torch_bf16_gpu_available", "is_torch_bf16_available_on_device", "is_torch_fp16_available_on_device"}
    | {"is_torch_tf32_available", "is_tf32_supported", "get_device_capability", "get_device_properties"}
    | {"is_fp8_available", "is_flash_attn_2_available", "is_flash_attn_available"}
)
"""A file that calls one of these decides by the GPU that it finds."""


@dataclass(slots=True)
class PythonFile:
    """The calls of a file in order, where it asks the hardware itself, and how each variable is used.

    ``uses`` has, by variable, what is done with it: ``.name`` for an attribute, ``.name()`` for a method, ``()`` where
    it is called, ``name(key)`` for an argument of a call by qualified name, ``?`` for anything else.
    """

    source: Source
    calls: list[Call] = field(default_factory=list)
    hardware_query: Place | None = None
    for_gpus: bool = True
    uses: dict[str, list[str]] = field(default_factory=dict)


def read_python(source: Source) -> PythonFile:
    """The calls of a file. Raises SourceError where it does not parse."""
    reader = _Reader(source)
    reader.visit_block(source.tree.body, conditional=False)
    return reader.finish()


class _Reader:
    """One walk over a file."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._scopes = scopes_of(source.tree)
        self._scope = self._scopes[source.tree]
        self._file = PythonFile(source)
        self._parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(source.tree):
            self._parents.update(dict.fromkeys(ast.iter_child_nodes(node), node))
        self._written = {_base(node) for node in self._parents if self._is_written(node)}
        self._bound: dict[int, str] = {}
        self._changed: dict[str, set[str]] = {}

    def finish(self) -> PythonFile:
        """Forget arguments that later statements overwrite (``args.fp16 = False``, ``config["fp16"] = …``)."""
        file = self._file
        names = [name for binding in self._imports() for name in binding]
        file.for_gpus = not any(name.partition(".")[0] in other_devices.LIBRARIES for name in names)
        file.calls = [self._overwritten(call) for call in file.calls]
        return file

    def _imports(self) -> list[list[str]]:
        return [binding.imports for scope in self._scopes.values() for binding in scope.bindings.values()]

    def _overwritten(self, call: Call) -> Call:
        changed = self._changed.get(call.bound_to or "", set())
        if not changed:
            return call
        if "*" in changed:
            return replace(call, values={}, complete=False)
        unknown = {name: Value(UNKNOWN, call.place, f"{name}=…") for name in changed}
        return replace(call, values={**call.values, **unknown})

    def _is_written(self, node: ast.AST) -> bool:
        """Whether a statement writes into what a name holds, or calls a method of it that may."""
        if not isinstance(node, ast.Subscript | ast.Attribute):
            return False
        parent = self._parents.get(node)
        return not isinstance(node.ctx, ast.Load) or (isinstance(parent, ast.Call) and parent.func is node)

    def visit_block(self, body: Sequence[ast.AST], *, conditional: bool) -> None:
        for node in body:
            self._visit(node, conditional=conditional)

    def _visit(self, node: ast.AST, *, conditional: bool) -> None:
        if isinstance(node, ast.If | ast.IfExp) and not (isinstance(node, ast.If) and is_main_guard(node)):
            self._branch(node, conditional=conditional)
            return
        outer = self._scope
        if node in self._scopes:
            self._decorators(node, conditional=conditional)
            self._scope = self._scopes[node]
        if isinstance(node, ast.Assign | ast.AnnAssign):
            self._assignment(node)
        elif isinstance(node, ast.Call):
            self._call(node, conditional=conditional)
        elif isinstance(node, ast.Attribute) and node.attr in HARDWARE_QUERIES:
            self._asks(node)
        elif isinstance(node, ast.Name):
            self._name(node)
        uncertain = conditional or isinstance(node, ast.While | ast.ExceptHandler | ast.match_case | ast.BoolOp)
        for child in ast.iter_child_nodes(node):
            self._visit(child, conditional=uncertain)
        self._scope = outer

    def _branch(self, node: ast.If | ast.IfExp, *, conditional: bool) -> None:
        """Follow only the branch that a constant test takes."""
        self._visit(node.test, conditional=conditional)
        test = self._value(node.test)
        taken = None if test is UNKNOWN or isinstance(test, Variable | Dtype) else bool(test)
        for branch, when in ((node.body, True), (node.orelse, False)):
            children = branch if isinstance(branch, list) else [branch]
            if taken in (None, when):
                self.visit_block(children, conditional=conditional or taken is None)

    def _decorators(self, node: ast.AST, *, conditional: bool) -> None:
        """A decorator without arguments is a call too."""
        for decorator in getattr(node, "decorator_list", ()):
            names = [] if isinstance(decorator, ast.Call) else self._scope.qualified(decorator)
            if names:
                name = canonical(names)
                self._file.calls.append(
                    Call(name, f"@{name}", self._place(decorator), {}, True, conditional, None, len(names) == 1)
                )

    def _assignment(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and node.value is not None:
                key = self._variable(target.id)
                if key is not None:
                    self._bound[id(node.value)] = key
            elif isinstance(target, ast.Attribute | ast.Subscript):
                self._change(target)

    def _change(self, target: ast.expr) -> None:
        """Note that what a variable holds is overwritten: the attribute taken of it, or anything (``*``)."""
        changed = "*"
        while isinstance(target, ast.Attribute | ast.Subscript):
            changed = target.attr if isinstance(target, ast.Attribute) else "*"
            target = target.value
        key = self._variable(target.id) if isinstance(target, ast.Name) else None
        if key is not None:
            self._changed.setdefault(key, set()).add(changed)

    def _variable(self, name: str) -> str | None:
        """The key of a variable that has one value in all of its scope."""
        found = self._scope.find(name)
        if found is None or not found[1].plain:
            return None
        return f"{found[0].number}:{name}"

    def _asks(self, node: ast.expr) -> None:
        if self._file.hardware_query is None:
            self._file.hardware_query = self._place(node)

    def _name(self, node: ast.Name) -> None:
        if node.id in HARDWARE_QUERIES:
            self._asks(node)
        key = self._variable(node.id) if isinstance(node.ctx, ast.Load) else None
        if key is not None:
            self._file.uses.setdefault(key, []).append(self._use(node))

    def _use(self, node: ast.Name) -> str:
        parent = self._parents.get(node)
        if isinstance(parent, ast.Call) and parent.func is node:
            return "()"
        if isinstance(parent, ast.Attribute):
            outer = self._parents.get(parent)
            called = isinstance(outer, ast.Call) and outer.func is parent
            if called or isinstance(parent.ctx, ast.Load):
                return f".{parent.attr}()" if called else f".{parent.attr}"
            return "?"
        keyword = ""
        if isinstance(parent, ast.keyword):
            keyword = parent.arg or "**"
            parent = self._parents.get(parent)
        if isinstance(parent, ast.Call) and parent.func is not node:
            names = self._scope.qualified(parent.func)
            if names:
                name = canonical(names)
                if not keyword:
                    keyword = self._parameter(name, parent.args.index(node))
                return f"{name}({keyword})"
        return "?"

    def _parameter(self, name: str, index: int) -> str:
        parameters = POSITIONAL.get(name, ())
        return parameters[index] if index < len(parameters) else str(index)

    def _call(self, node: ast.Call, *, conditional: bool) -> None:
        names = self._scope.qualified(node.func)
        if not names:
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("update", "setdefault", "pop", "clear"):
                self._change(node.func.value)
            return
        name = canonical(names)
        values: dict[str, Value] = {}
        complete = True
        for index, argument in enumerate(node.args):
            if isinstance(argument, ast.Starred):
                complete = False
                break
            key = self._parameter(name, index)
            values[key] = self._argument(key, argument, positional=True)
        for keyword in node.keywords:
            if keyword.arg is None:
                complete = self._spread(keyword.value, values) and complete
            else:
                values[keyword.arg] = self._argument(keyword.arg, keyword.value)
        bound = self._bound.get(id(node))
        shown = (
            f"{ast.unparse(node.func)}({{}})" if isinstance(node.func, ast.Name | ast.Attribute) else f"{name}({{}})"
        )
        self._file.calls.append(
            Call(name, shown, self._place(node), values, complete, conditional, bound, len(names) == 1)
        )

    def _spread(self, node: ast.expr, values: dict[str, Value]) -> bool:
        """``**{"fp16": True}`` and ``**dict(fp16=True)``; False where the keys are not known."""
        found = self._node(node)
        if not isinstance(found.value, document.Mapping):
            return False
        for key, _, value in found.value.items:
            values[key] = Value(
                value.value, Place(self._source.path, value.row, value.column), f"{key}={value.value!r}"
            )
        return True

    def _argument(self, key: str, node: ast.expr, *, positional: bool = False) -> Value:
        text = ast.unparse(node)
        shown = text if len(text) <= 60 else "…"
        return Value(self._value(node), self._place(node), shown if positional else f"{key}={shown}")

    def _place(self, node: ast.expr) -> Place:
        start = self._source.span(node).start
        return Place(self._source.path, start.row, start.column)

    def _node(self, node: ast.expr) -> Node:
        place = self._place(node)
        return Node(self._value(node), place.row, place.column)

    def _value(self, node: ast.expr, scope: Scope | None = None, depth: int = 0) -> object:
        """What an expression is for certain: a constant, a dtype, a dict or list of such, or a variable."""
        scope = scope or self._scope
        if depth > 8:
            return UNKNOWN
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str | int | float | bool | None) else UNKNOWN
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            value = self._value(node.operand, scope, depth + 1)
            return not value if isinstance(value, bool) else UNKNOWN
        if isinstance(node, ast.Dict):
            return self._dict(node, scope, depth)
        if isinstance(node, ast.List | ast.Tuple):
            return tuple(self._item(item, scope, depth) for item in node.elts)
        if isinstance(node, ast.IfExp):
            test = self._value(node.test, scope, depth + 1)
            if isinstance(test, bool):
                return self._value(node.body if test else node.orelse, scope, depth + 1)
            return UNKNOWN
        for name in scope.qualified(node):
            if name.startswith("torch.") and name[6:] in DTYPES:
                return Dtype(DTYPES[name[6:]])
        return self._named(node, scope, depth) if isinstance(node, ast.Name) else UNKNOWN

    def _named(self, node: ast.Name, scope: Scope, depth: int) -> object:
        found = scope.find(node.id)
        if found is None or not found[1].plain or found[1].value is None:
            return UNKNOWN
        where, binding = found
        value = self._value(found[1].value, where, depth + 1)
        changeable = isinstance(value, document.Mapping | tuple)
        if value is UNKNOWN or (changeable and node.id in self._written):
            return Variable(f"{where.number}:{node.id}")
        assert binding.value is not None
        return value

    def _dict(self, node: ast.Dict, scope: Scope, depth: int) -> object:
        items = []
        for key, value in zip(node.keys, node.values, strict=True):
            name = self._value(key, scope, depth + 1) if key is not None else UNKNOWN
            if not isinstance(name, str) or key is None:
                return UNKNOWN
            items.append((name, self._item(key, scope, depth), self._item(value, scope, depth)))
        return document.Mapping(tuple(items))

    def _item(self, node: ast.expr, scope: Scope, depth: int) -> Node:
        place = self._place(node)
        return Node(self._value(node, scope, depth + 1), place.row, place.column)


def _base(node: ast.AST) -> str | None:
    """The name that attributes and items are taken of: ``a`` of ``a.b["c"]``."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
