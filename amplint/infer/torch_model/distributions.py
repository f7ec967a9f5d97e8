"""What the constructors of torch's distributions compute of the matrices that they get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.arguments import Arguments
from amplint.infer.lattice.joining import is_none
from amplint.infer.torch_model.operations import apply_named

if TYPE_CHECKING:
    import ast

    from amplint.infer.state.frame import Frame

MODULE = "torch.distributions."
_FACTORED = {
    "MultivariateNormal": {"covariance_matrix": 1, "precision_matrix": 2},
    "LowRankMultivariateNormal": {"cov_factor": 1},
    "Wishart": {"covariance_matrix": 1, "precision_matrix": 2},
}
"""The parameters of which a Cholesky factor is computed, with their places."""


def construct(frame: Frame, name: str, arguments: Arguments, node: ast.expr) -> None:
    """Factor what a distribution of that name factors."""
    for parameter, place in _FACTORED.get(name.rpartition(".")[2], {}).items():
        given, written = arguments.get(place, parameter), arguments.node(place, parameter)
        if given is not None and written is not None and not is_none(given):
            apply_named(frame, "torch.linalg.cholesky", Arguments([given], {}, {0: written}), node)
