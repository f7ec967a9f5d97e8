"""Which dtypes change on each line: those of what it binds, and what it casts or promotes on the way."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.annotate.notes import Names, Note, Position, in_order, is_floating
from amplint.annotate.reads import first_reads
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.annotate.rows import FileDtypes, Row
    from amplint.source import Span

MAX_LABEL = 40
"""Characters of an expression that a note names."""
_DTYPE_FROM_ARGUMENT = ("to", "type_as")
"""Methods with an argument that says the dtype and is no operand."""
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}


@dataclass(frozen=True, slots=True)
class _Operation:
    """A call or operator with its tensor operands; ``here``: the dtype is decided by it, not inside a callee."""

    label: str
    at: Position
    result: Row
    operands: tuple[Row, ...]
    integers: tuple[Row, ...]
    """Operands whose dtype counts even if it is an integer one: what a method is called on, sides of an operator."""
    here: bool

    def before(self, lane: int) -> tuple[Names, ...]:
        """The operands' dtypes where the result's differs from one of them; else empty."""
        after, origin = self.result.dtypes[lane], self.result.origin
        if after is None or not is_floating(after) or (self.here and origin is not None and origin.placed):
            return ()
        found = dict.fromkeys(filter(is_floating, self.known(lane)))
        if not found:
            found = dict.fromkeys(dtype for row in self.integers if (dtype := row.dtypes[lane]) is not None)
        if not self.here and len(found) != 1:
            return ()
        return tuple(found) if any(dtype != after for dtype in found) else ()

    def known(self, lane: int) -> list[Names]:
        """The dtypes of the operands for which one is known."""
        return [dtype for row in self.operands if (dtype := row.dtypes[lane]) is not None]

    def note(self, lane: int, label: str, at: Position) -> Note:
        origin = self.result.origin if self.here else None
        autocast = origin is not None and bool(origin.autocast >> lane & 1)
        return Note(at, (label,), self.result.dtypes[lane], self.before(lane), autocast)


@dataclass(frozen=True, slots=True)
class _Binding:
    """A variable, attribute or parameter that is bound; ``row`` is that of the value, or of who reads it next."""

    label: str
    at: Position
    row: Row
    value: ast.expr | ast.stmt | None = None
    """The expression that is bound, or the augmented assignment."""
    own: Row | None = None
    """The same variable inside the expression: what it was before."""
    span: Span | None = None
    """Where the variable or attribute stands; None for a parameter."""


@dataclass(frozen=True, slots=True)
class _Write:
    """``container[index] = value``."""

    label: str
    at: Position
    container: Row
    value: Row

    def note(self, lane: int) -> Note | None:
        """The silent cast of what is written, if there is one."""
        held, written = self.container.dtypes[lane], self.value.dtypes[lane]
        if held is None or written is None or held == written or not is_floating(held):
            return None
        return Note(self.at, (self.label,), held, (written,))


class Changes:
    """The notes of one file. What is not known to be a tensor is left out."""

    def __init__(self, file: FileDtypes) -> None:
        self._source = file.source
        self._rows = {(row.span.start, row.span.end): row for row in file.rows if not row.maybe}
        self._reads = first_reads(file.source.tree) if self._rows else {}
        self._operations: dict[int, _Operation] = {}
        self._bindings: list[_Binding] = []
        self._writes: list[_Write] = []
        for node in ast.walk(file.source.tree) if self._rows else ():
            if isinstance(node, (ast.Call, ast.BinOp, ast.AugAssign)):
                self._add_operation(node)
            if isinstance(node, (ast.stmt, ast.arg, ast.NamedExpr)):
                self._add_bindings(node)

    def notes(self, lane: int) -> list[Note]:
        """In the order in which they are shown; ``lane`` is the scenario's number."""
        told: set[int] = set()
        found = [self._bound(binding, lane, told) for binding in self._bindings]
        found += [write.note(lane) for write in self._writes]
        found += [
            operation.note(lane, operation.label, operation.at)
            for key, operation in self._operations.items()
            if key not in told and operation.before(lane)
        ]
        return in_order(filter(None, found))

    def assigned(self) -> list[tuple[Span, Row]]:
        """Each variable or attribute that something is assigned to, with what becomes known of its dtype there."""
        return [(binding.span, binding.row) for binding in self._bindings if binding.span is not None]

    def _bound(self, binding: _Binding, lane: int, told: set[int]) -> Note | None:
        """What a binding says; ``told`` gets the operation that is said with it."""
        after = binding.row.dtypes[lane]
        if after is None:
            operation = self._operations.get(id(binding.value))
            lost = operation is not None and any(map(is_floating, operation.known(lane)))
            return Note(binding.at, (binding.label,), None) if lost else None
        for node in self._inwards(binding, lane):
            operation = self._operations.get(id(node))
            if operation is not None and operation.before(lane):
                told.add(id(node))
                return operation.note(lane, binding.label, binding.at)
        own = binding.own.dtypes[lane] if binding.own is not None else None
        differs = own is not None and own != after and is_floating(own) and is_floating(after)
        return Note(binding.at, (binding.label,), after, (own,) if own is not None and differs else ())

    def _inwards(self, binding: _Binding, lane: int) -> Iterator[ast.expr | ast.stmt]:
        """The bound expression, and what gave it its dtype: what a method is called on, an operator's only tensor."""
        node = binding.value
        while node is not None and (row := self._row(node)) is not None:
            if row.dtypes[lane] != binding.row.dtypes[lane]:
                return
            yield node
            if isinstance(node, ast.BinOp):
                tensors = [side for side in (node.left, node.right) if self._row(side) is not None]
                node = tensors[0] if len(tensors) == 1 else None
            elif isinstance(node, ast.Call):
                node = node.func.value if isinstance(node.func, ast.Attribute) else None
            elif isinstance(node, (ast.Subscript, ast.Attribute)):
                node = node.value
            else:
                node = node.operand if isinstance(node, ast.UnaryOp) else None

    def _row(self, node: ast.expr | ast.stmt | None) -> Row | None:
        if node is None:
            return None
        span = self._source.span(node)
        return self._rows.get((span.start, span.end))

    def _tensors(self, nodes: Iterable[ast.expr]) -> tuple[Row, ...]:
        """The rows of operands, those in displays such as ``[a, b]`` too."""
        found: list[Row] = []
        pending = list(nodes)
        while pending:
            node = pending.pop(0)
            if isinstance(node, (ast.Tuple, ast.List)):
                pending[:0] = node.elts
            elif (row := self._row(node)) is not None:
                found.append(row)
        return tuple(found)

    def _add_operation(self, node: ast.Call | ast.BinOp | ast.AugAssign) -> None:
        result = self._row(node)
        if result is None:
            return
        if isinstance(node, ast.Call):
            self._operations[id(node)] = self._call(node, result)
        elif isinstance(node, ast.BinOp):
            at = Position.of_operation(self._source.span(node.left).end.row, result.span)
            sides = self._tensors([node.left, node.right])
            self._operations[id(node)] = _Operation(_OPERATORS[type(node.op)], at, result, sides, sides, here=True)
        else:
            sides = self._tensors([node.target, node.value])
            label, at = self._text(node.target), self._bound_at(node.target)
            self._operations[id(node)] = _Operation(label, at, result, sides, sides, here=True)

    def _call(self, node: ast.Call, result: Row) -> _Operation:
        here = result.origin is not None and result.origin.span == result.span
        receiver: tuple[Row, ...] = ()
        name = self._text(node.func)
        if isinstance(node.func, ast.Attribute):
            receiver, name = self._tensors([node.func.value]), node.func.attr
        operands = self._tensors([*node.args, *(keyword.value for keyword in node.keywords)])
        if receiver and (not here or name in _DTYPE_FROM_ARGUMENT):
            operands = ()
        at = Position.of_operation(self._source.span(node.func).end.row, result.span)
        label = f"{'.' if receiver else ''}{name}()"
        return _Operation(label, at, result, receiver + operands, receiver, here=here)

    def _add_bindings(self, node: ast.stmt | ast.arg | ast.NamedExpr) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            self._bind(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            self._bind_row(node.target, self._row(node), node)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._bind(node.target, node.iter, unpacked=True)
        elif isinstance(node, ast.arg):
            self._bind_row(node, self._reader(node), None)

    def _bind(self, target: ast.expr, value: ast.expr, *, unpacked: bool = False) -> None:
        """One target and its value; ``unpacked``: the value is what the target is a part of."""
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            for index, inner in enumerate(target.elts):
                if len(parts) == len(target.elts) and not unpacked:
                    self._bind(inner, parts[index])
                else:
                    self._bind(inner, value, unpacked=True)
            return
        row, reader = self._row(value), self._reader(target)
        if isinstance(target, ast.Subscript):
            container = self._row(target.value)
            if container is not None and row is not None and not unpacked:
                label = f"{self._text(target.value)}[...]"
                self._writes.append(_Write(label, self._bound_at(target), container, row))
        elif isinstance(target, (ast.Name, ast.Attribute)):
            self._bind_row(target, reader or row if unpacked else row or reader, value)

    def _bind_row(self, target: ast.expr | ast.arg, row: Row | None, value: ast.expr | ast.stmt | None) -> None:
        if row is None:
            return
        own = None
        if isinstance(value, ast.expr) and isinstance(target, ast.Name):
            own = next((n for n in ast.walk(value) if isinstance(n, ast.Name) and n.id == target.id), None)
        label = target.arg if isinstance(target, ast.arg) else self._text(target)
        span = None if isinstance(target, ast.arg) else self._source.span(target)
        self._bindings.append(_Binding(label, self._bound_at(target), row, value, self._row(own), span))

    def _text(self, node: ast.expr) -> str:
        """The source of an expression on one line, the end of a long one left out."""
        text = " ".join(self._source.segment(self._source.span(node)).split())
        return text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 3]}..."

    def _bound_at(self, target: ast.expr | ast.arg) -> Position:
        return Position.of_variable(self._source.span(target).start)

    def _reader(self, target: ast.expr | ast.arg) -> Row | None:
        return self._row(self._reads.get(target)) if isinstance(target, (ast.Name, ast.arg)) else None
