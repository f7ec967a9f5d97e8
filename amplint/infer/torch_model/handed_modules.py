"""Modules that code is handed: what ``isinstance`` finds, or an annotation promises, was made and converted before.

Their weights have what the scenario gives a model's, also where the code stands in no module itself.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeGuard

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.values import Tensor, TorchName, Value
from amplint.infer.names.annotations import unquoted
from amplint.infer.state.dispatch import evaluate
from amplint.infer.state.frame import Frame
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model.modules import build_layer

if TYPE_CHECKING:
    from amplint.infer.lattice.values import Layer
    from amplint.infer.names.definitions import Function


def is_layer_class(value: Value | None) -> TypeGuard[TorchName]:
    """Whether a value is a class of layers of ``torch.nn``, or ``nn.Module`` itself."""
    if not isinstance(value, TorchName) or not value.name.startswith("torch.nn."):
        return False
    return value.name.rpartition(".")[2][:1].isupper() and not value.name.endswith(("Parameter", "Buffer"))


def handed(frame: Frame, cls: TorchName, node: ast.expr) -> Layer:
    """A layer of that class as a model holds it that runs in the scenario; who made it, and with what, is not seen.

    ``frame`` is one of the file that the node stands in. What a constructor gets may have been made a line before, by
    whoever makes the object: it has what is made there.
    """
    building = frame.constructing is not None or frame.making
    model = frame if building else Frame(frame.session, frame.namespace, in_module=True)
    made = build_layer(model, cls.name, Arguments(unknown=True), node)
    return replace(made, tensors={name: _handed(value) for name, value in made.tensors.items()}, span=None)


def layer_promised(
    frame: Frame, function: Function, parameter: ast.arg, annotation: ast.expr | None = None
) -> Layer | None:
    """The layer of torch that the annotation of a parameter, or a part of it, says the function is handed."""
    annotation = annotation or parameter.annotation
    plain = unquoted(annotation) if annotation is not None else None
    if not isinstance(plain, (ast.Name, ast.Attribute)):
        return None
    outer = Frame(frame.session, function.namespace, closure=function.closure)
    cls = evaluate(outer, plain)
    if not is_layer_class(cls):
        return None
    return handed(outer, cls, ast.copy_location(ast.Name(parameter.arg), parameter))


def _handed(value: Value) -> Value:
    if not isinstance(value, Tensor) or value.origin is None:
        return value
    return replace(value, origin=replace(value.origin, handed=True))
