"""torch's distributions: what their constructors compute of matrices, and what those made of numbers give."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.dtypes import FLOAT32
from amplint.infer.lattice.joining import is_none, number_kind
from amplint.infer.lattice.values import UNKNOWN, Builtin, Const, Made, Number, Tensor, Value
from amplint.infer.syntax.bodies import once_for_each_node
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.syntax.unchanging import replace
from amplint.infer.torch_model.operations import apply_named

if TYPE_CHECKING:
    from amplint.infer.state.frame import Frame

MODULE = "torch.distributions."
_FACTORED = {
    "MultivariateNormal": {"covariance_matrix": 1, "precision_matrix": 2},
    "LowRankMultivariateNormal": {"cov_factor": 1},
    "Wishart": {"covariance_matrix": 1, "precision_matrix": 2},
}
"""The parameters of which a Cholesky factor is computed, with their places."""
_SQUARED = frozenset({"cov_factor"})
"""Those that are multiplied with themselves first: autocast makes that product low precision."""


OF_NUMBERS = Builtin("distribution")
"""A distribution whose parameters are Python numbers: torch makes tensors of its default dtype of them."""
_SAMPLING = (f"{OF_NUMBERS.name}.sample", f"{OF_NUMBERS.name}.rsample")


def construct(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value:
    """Factor what a distribution of that name factors; the distribution, where it is one of numbers."""
    for parameter, place in _FACTORED.get(name.rpartition(".")[2], {}).items():
        given, written = arguments.get(place, parameter), arguments.node(place, parameter)
        if given is not None and written is not None and not is_none(given):
            if parameter in _SQUARED:
                given = apply_named(frame, "torch.matmul", Arguments([given, given], {}, {0: written}), node)
            apply_named(frame, "torch.linalg.cholesky", Arguments([given], {}, {0: written}), node)
    numbers = [value for key, value in arguments.keywords.items() if key != "validate_args"] + arguments.positional
    return OF_NUMBERS if numbers and not arguments.unknown and all(map(_is_number, numbers)) else UNKNOWN


def _is_number(value: Value) -> bool:
    return isinstance(value, (Const, Number)) and number_kind(value) is not None


def attribute(name: str) -> Builtin:
    """A method of a distribution of numbers."""
    return Builtin(f"{OF_NUMBERS.name}.{name}")


def sampled(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> Value | None:
    """What such a method gives: a tensor of torch's default dtype in the host's memory, unless the file may set
    a parameter of a distribution, as to move it. None for a callable that is none."""
    if name not in _SAMPLING:
        return None
    dtypes = frame.session.constant(FLOAT32)
    origin = frame.here(node, "sampled from a distribution of Python numbers", dtypes)
    shaped = arguments.get(0, "sample_shape") is not None
    host = None if _sets_parameters(frame.namespace.tree) else True
    return Tensor(dtypes, 1 if shaped else 0, replace(origin, made=Made.DEFAULT), host=host)


@once_for_each_node
def _sets_parameters(tree: ast.AST) -> bool:
    """Whether a file assigns to an attribute of another object than a method's own: it may be a distribution's."""
    methods = (s for cls in nodes_of_kind(tree, ast.ClassDef) for s in cls.body if isinstance(s, ast.FunctionDef))
    own = {method.args.args[0].arg for method in methods if method.args.args}
    stored = (node.value for node in nodes_of_kind(tree, ast.Attribute) if isinstance(node.ctx, ast.Store))
    return any(not isinstance(of, ast.Name) or of.id not in own for of in stored)
