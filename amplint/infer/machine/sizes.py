"""Which parameters of a constructor are sizes: it gives them to layers, which take integers there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.values import TorchName
from amplint.infer.state.dispatch import evaluate
from amplint.infer.syntax.bodies import nodes_inside
from amplint.infer.torch_model.layers import find_layer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.names.definitions import Function
    from amplint.infer.state.frame import Frame

INTEGERS = frozenset(
    (
        *("in_features", "out_features", "in_channels", "out_channels", "num_features", "num_channels", "num_groups"),
        *("num_embeddings", "embedding_dim", "embed_dim", "num_heads", "d_model", "nhead"),
        *("in1_features", "in2_features"),
    )
)
"""Parameters that every layer of ``torch.nn`` that has them takes as integers: by its signature, or it raises."""
_INTEGRAL = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


def sizes(frame: Frame, function: Function) -> frozenset[str]:
    """The parameters of a constructor that are sizes, and that it does not bind anew; ``frame`` is the one around
    it."""
    known = frame.session.sizes
    found = known.get(function.node)
    if found is None:
        found = known[function.node] = frozenset(_sizes(frame, function.node))
    return found


def _sizes(frame: Frame, constructor: ast.AST) -> Iterator[str]:
    nodes = nodes_inside(constructor)
    spec = getattr(constructor, "args", None)
    parameters = {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)} if spec is not None else set()
    stored = _stored(nodes)
    given = [size for node in nodes if isinstance(node, ast.Call) for size in _given(frame, node)]
    seen: set[str] = set()
    while given:
        size = given.pop()
        if isinstance(size, ast.BinOp) and isinstance(size.op, _INTEGRAL):
            given += [size.left, size.right]
        elif isinstance(size, (ast.Name, ast.Attribute)):
            name = ast.unparse(size)
            values = stored.get(name, [])
            if name in seen:
                continue
            seen.add(name)
            if len(values) == 1 and values[0] is not None and name not in parameters:
                given.append(values[0])
            elif not values and name in parameters:
                yield name


def _stored(nodes: list[ast.AST]) -> dict[str, list[ast.expr | None]]:
    """What is assigned to each name and attribute of a plain name; None for what is not one plain value."""
    stored: dict[str, list[ast.expr | None]] = {}
    plain: set[int] = set()
    for node in nodes:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)):
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, (ast.Name, ast.Attribute)):
                plain.add(id(target))
                stored.setdefault(ast.unparse(target), []).append(node.value)
    for node in nodes:
        if isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Load) and id(node) not in plain:
            stored.setdefault(ast.unparse(node), []).append(None)
    return stored


def _given(frame: Frame, call: ast.Call) -> list[ast.expr]:
    """What a call of a layer's constructor takes as integers; a loss may take several."""
    if not isinstance(call.func, (ast.Name, ast.Attribute)) or any(isinstance(a, ast.Starred) for a in call.args):
        return []
    root: ast.expr = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or root.id not in frame.namespace.bindings:
        return []
    called = evaluate(frame, call.func)
    layer = find_layer(called.name) if isinstance(called, TorchName) else None
    if layer is None or layer.name.endswith("Loss"):
        return []
    passed = [*zip(layer.init, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
    return [value for name, value in passed if name in INTEGERS]
