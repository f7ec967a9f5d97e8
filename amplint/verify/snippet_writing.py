"""From an operation that the inference has seen to text that runs alone: names in the place of operands."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from amplint.infer.lattice.dtypes import BOOL, FLOAT32, INTEGERS, names_of
from amplint.infer.lattice.joining import options_of
from amplint.infer.lattice.values import (
    NONE,
    UNKNOWN,
    Builtin,
    Const,
    Device,
    DTypeValue,
    Layer,
    Limit,
    Mapping,
    Number,
    Sequence,
    Tensor,
    TensorMethod,
    TorchName,
    Trait,
    Value,
)
from amplint.infer.torch_model.ranges import LARGEST
from amplint.verify.scene import LayerPart, Place, Scene
from amplint.verify.snippet_layers import is_known

if TYPE_CHECKING:
    from amplint.infer.lattice.scenarios import Scenario
    from amplint.source import Source, Span
    from amplint.verify.witness import Sight

_LONGEST_QUOTE = 60
_LITERALS = (bool, int, float, str, bytes, type(None), type(Ellipsis))
_INDEX = ("int64", "bool")
_INDEX_PARAMS = ("index", "indices", "mask", "condition")
_INDEX_OPERATION = "torch.Tensor.index_put_"


class Unknown(Exception):
    """Why an operation cannot run alone, in one line."""


def write(source: Source, sight: Sight, lane: int, scenario: Scenario) -> Scene:
    """The operation in one scenario, whose number is ``lane``. Raises Unknown."""
    ambient = sight.autocast[lane]
    if ambient.unknown:
        raise Unknown("whether autocast is on there is not known")
    writer = _Writer(source, sight, lane, scenario)
    writer.operation(sight.node)
    return Scene(
        writer.text(),
        isinstance(sight.node, ast.stmt),
        writer.names,
        tuple(writer.places),
        names_of(ambient.low)[0] if ambient.on else None,
    )


class _Writer:
    """Walks down from the operation, replacing on the way what is a value and leaving what is written out."""

    def __init__(self, source: Source, sight: Sight, lane: int, scenario: Scenario) -> None:
        self.names: dict[str, str] = {}
        self.places: list[Place] = []
        self._source = source
        self._sight = sight
        self._lane = lane
        self._scenario = scenario
        self._passed = _passed(source, sight.node)
        self._replaced: list[tuple[Span, str]] = []
        self._operands = {id(o.node): o for o in sight.operands if o.node is not None}
        self._tensors = {name.rstrip("*") for name in sight.op.tensors}

    def text(self) -> str:
        """The operation's source with the replacements in it."""
        span = self._source.span(self._sight.node)
        start = self._source.offset(span.start)
        text, end = "", start
        for place, new in sorted(self._replaced, key=lambda item: item[0]):
            text += self._source.text[end : self._source.offset(place.start)] + new
            end = self._source.offset(place.end)
        return text + self._source.text[end : self._source.offset(span.end)]

    def operation(self, node: ast.expr | ast.stmt) -> None:
        if isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.BinOp):
            self._expression(node.left, "input")
            self._expression(node.right, "other")
        elif isinstance(node, ast.AugAssign):
            self._expression(node.target, "self")
            self._expression(node.value, "other")
        elif isinstance(node, ast.Assign) and self._sight.op.name == _INDEX_OPERATION:
            self._index_write(node)
        else:
            raise Unknown("the flagged code is not one operation")

    def _index_write(self, node: ast.Assign) -> None:
        if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Subscript):
            raise Unknown("the write is one of several in its statement")
        target = node.targets[0]
        self._expression(target.value, "self")
        self._expression(target.slice, "indices")
        self._expression(node.value, "values")

    def _call(self, node: ast.Call) -> None:
        function = self._value(node.func)
        layer = self._layer_of(function)
        method = any(isinstance(option, TensorMethod) for option in options_of(function))
        if layer is not None:
            self._place(node.func, "layer", "", layer=self._layer_part(layer, node.func))
        elif method and isinstance(node.func, ast.Attribute):
            self._expression(node.func.value, "self")
        elif isinstance(function, TorchName):
            self._torch_name(node.func, function)
        else:
            raise Unknown(f"what {_quote(node.func)} calls is not known")
        params = self._sight.op.params[1:] if method else self._sight.op.params
        bare = [name.lstrip("*") for name in params]
        for position, argument in enumerate(node.args):
            variadic = bool(bare) and f"{bare[-1]}*" in self._sight.op.tensors
            name = bare[position] if position < len(bare) else bare[-1] if variadic else ""
            self._expression(argument, name)
        for keyword in node.keywords:
            if keyword.arg is None:
                raise Unknown(f"the arguments in **{_quote(keyword.value)} are not known")
            self._expression(keyword.value, keyword.arg)

    def _expression(self, node: ast.expr, param: str) -> None:
        """Replace an expression, or what is in it."""
        operand = self._operands.get(id(node))
        value, param = (operand.value, operand.name) if operand is not None else (self._value(node), param)
        if value is UNKNOWN and param in self._sight.arguments and node in self._written():
            value = self._sight.arguments[param]
        options = options_of(value)
        if operand is None and NONE in options and len(options) > 1:
            self._replace(node, "None")
        elif isinstance(node, ast.Constant):
            return
        elif isinstance(node, (ast.Tuple, ast.List)):
            for element in node.elts:
                self._expression(element, param)
        elif isinstance(node, ast.Starred):
            self._expression(node.value, param)
        elif isinstance(node, ast.Slice):
            for part in (node.lower, node.upper, node.step):
                if part is not None:
                    self._expression(part, param)
        elif len(options) != 1:
            self._unknown(node, param)
        elif isinstance(options[0], Tensor):
            self._tensor(node, param, options[0])
        else:
            self._other(node, param, options[0])

    def _other(self, node: ast.expr, param: str, value: Value) -> None:
        if isinstance(value, TorchName):
            self._torch_name(node, value)
        elif isinstance(value, Const) and isinstance(value.value, _LITERALS):
            self._replace(node, f"({value.value!r})")
        elif isinstance(value, Number) and isinstance(value.extreme, float):
            self._replace(node, f"({value.extreme!r})")
        elif isinstance(value, Number) and isinstance(value.extreme, Limit) and self._number(value.extreme) is not None:
            self._replace(node, f"({self._number(value.extreme)!r})")
        elif isinstance(value, Number):
            self._place(node, "number", param, value.kind)
        elif isinstance(value, DTypeValue):
            self._dtype(node, value)
        elif isinstance(value, Device):
            self._replace(node, "None")
        elif isinstance(value, Sequence):
            self._sequence(node, param, value)
        elif isinstance(value, Builtin) and isinstance(node, ast.Name) and hasattr(builtins, node.id):
            return
        else:
            self._unknown(node, param)

    def _number(self, limit: Limit) -> float | None:
        """The limit of the one dtype that it is of in this scenario: ``-3.4e38`` for ``finfo(torch.float32).min``."""
        largest = LARGEST.get(limit.dtypes[self._lane].mask)
        if largest is None or limit.name not in ("min", "max"):
            return None
        return -largest if (limit.name == "min") is not limit.negated else largest

    def _unknown(self, node: ast.expr, param: str) -> None:
        """A tensor whose dtype matters has to be known; a size or a flag is found by trying."""
        if param in self._tensors or not param or param == "out" or param == self._sight.op.dtype_arg:
            raise Unknown(f"{_quote(node)} is not known")
        if param in _INDEX_PARAMS:
            self._place(node, "index", param, *_INDEX)
        else:
            self._place(node, "value", param)

    def _tensor(self, node: ast.expr, param: str, value: Tensor) -> None:
        mask = value.dtypes[self._lane].mask
        if isinstance(value.number, float) and value.dim == 0 and mask == FLOAT32:
            name = f"function{len(self.names)}"
            self.names[name] = "torch.tensor"
            self._replace(node, f"{name}({value.number!r})")
        elif param in self._tensors or param == "out" or not param:
            sparse = value.trait is Trait.SPARSE
            self._place(node, "tensor", param, self._dtype_of(node, value), scalar=value.dim == 0, sparse=sparse)
        elif value.maybe and param not in _INDEX_PARAMS:
            self._place(node, "value", param)
        elif mask and not mask & ~BOOL:
            self._place(node, "index", param, "bool")
        elif mask and not mask & ~INTEGERS:
            self._place(node, "index", param, "int64")
        else:
            self._place(node, "index", param, *_INDEX, *(names_of(mask) if value.dtypes[self._lane].exact else ()))

    def _sequence(self, node: ast.expr, param: str, value: Sequence) -> None:
        """A list held in a variable: of tensors, as many as it has, else two; of numbers, one to be found by trying."""
        items = value.items if value.items is not None else (value.element, value.element)
        tensors = [item for item in items if isinstance(item, Tensor)]
        if len(tensors) != len(items) or not items:
            self._unknown(node, param)
            return
        names = []
        for tensor in tensors:
            kind, dtypes = ("tensor", (self._dtype_of(node, tensor),)) if param in self._tensors else ("index", _INDEX)
            names.append(self._new(kind, param, dtypes, scalar=tensor.dim == 0))
        self._replace(node, f"[{', '.join(names)}]")

    def _dtype(self, node: ast.expr, value: DTypeValue) -> None:
        root = _root(node)
        written = self._value(root) if root is not None else UNKNOWN
        if root is not None and isinstance(written, TorchName):
            self.names[root.id] = written.name
            return
        lane = value.dtypes[self._lane]
        if not lane.exact:
            raise Unknown(f"the dtype {_quote(node)} is not known")
        self._place(node, "dtype", "", *names_of(lane.mask))

    def _torch_name(self, node: ast.expr, value: TorchName) -> None:
        root = _root(node)
        written = self._value(root) if root is not None else UNKNOWN
        if root is not None and isinstance(written, TorchName):
            self.names[root.id] = written.name
            return
        name = f"function{len(self.names)}"
        self.names[name] = value.name
        self._replace(node, name)

    def _layer_of(self, value: Value) -> Layer | None:
        """The layer that is called; of several possible ones, the only one with parameters."""
        options = [option for option in options_of(value) if option is not NONE]
        layers = [option for option in options if isinstance(option, Layer)]
        if len(layers) != len(options):
            return None
        fitting = layers if len(layers) == 1 else [layer for layer in layers if layer.tensors or layer.children]
        return fitting[0] if len(fitting) == 1 else None

    def _layer_part(self, layer: Layer, node: ast.expr) -> LayerPart:
        children: tuple[LayerPart, ...] = ()
        if layer.children is not None and not isinstance(layer.children, Mapping):
            items = layer.children.items if isinstance(layer.children, Sequence) else None
            if items is None or not all(isinstance(item, Layer) for item in items):
                raise Unknown(f"the layers in {_quote(node)} are not known")
            children = tuple(self._layer_part(item, node) for item in items if isinstance(item, Layer))
        dtypes = {
            name: self._dtype_of(node, tensor) for name, tensor in layer.tensors.items() if isinstance(tensor, Tensor)
        }
        part = LayerPart(layer.name, dtypes, children)
        if not is_known(part):
            raise Unknown(f"no small {layer.name.removeprefix('torch.')} can be made")
        return part

    def _dtype_of(self, node: ast.expr, value: Tensor) -> str:
        """The one dtype that a tensor can have; one of several where the operation fails whatever they are."""
        lane = value.dtypes[self._lane]
        if not lane.known:
            raise Unknown(f"the dtype of {_quote(node)} is not known")
        if not lane.exact and self._sight.operands:
            raise Unknown(f"{_quote(node)} may be {' or '.join(names_of(lane.mask))}")
        name = names_of(lane.mask)[0]
        root = _root(node)
        if (
            value.leaf
            and name != self._scenario.parameters
            and not (value.explicit and self._scenario.keeps_explicit)
            and root is not None
            and root.id in self._passed
        ):
            raise Unknown(f"the caller passes `{root.id}`, and decides the dtype of its parameters")
        return name

    def _written(self) -> list[ast.expr]:
        """The arguments of the operation that stand in its source by themselves."""
        node = self._sight.node
        return [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []

    def _value(self, node: ast.expr) -> Value:
        return self._sight.values.get(id(node), UNKNOWN)

    def _place(
        self,
        node: ast.expr,
        kind: str,
        param: str,
        *dtypes: str,
        scalar: bool = False,
        layer: LayerPart | None = None,
        sparse: bool = False,
    ) -> None:
        self._replace(node, self._new(kind, param, dtypes, scalar=scalar, layer=layer, sparse=sparse))

    def _new(
        self,
        kind: str,
        param: str,
        dtypes: tuple[str, ...],
        *,
        scalar: bool = False,
        layer: LayerPart | None = None,
        sparse: bool = False,
    ) -> str:
        name = f"{kind}_{len(self.places)}"
        item = sum(place.param == param for place in self.places)
        self.places.append(Place(name, kind, param, item, dtypes, scalar, layer, sparse))
        return name

    def _replace(self, node: ast.expr, text: str) -> None:
        self._replaced.append((self._source.span(node), text))


def _quote(node: ast.expr) -> str:
    text = ast.unparse(node)
    return f"`{text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + '…'}`"


def _passed(source: Source, node: ast.expr | ast.stmt) -> set[str]:
    """The names of the arguments that the functions around a node take, without ``self``."""
    names: set[str] = set()
    for function in ast.walk(source.tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if function.lineno <= node.lineno <= (function.end_lineno or function.lineno):
            taken = function.args
            names.update(argument.arg for argument in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs))
    return names - {"self", "cls"}


def _root(node: ast.expr | None) -> ast.Name | None:
    """``a`` of ``a.b.c``."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node if isinstance(node, ast.Name) else None
