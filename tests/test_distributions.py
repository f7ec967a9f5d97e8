"""A distribution that factors a matrix has no low-precision kernel for it: nothing behind it is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import distributions

from amplint.data._refusals import Reached
from amplint.engine import Options, check_file
from amplint.infer.torch_model.distributions import _FACTORED
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

CODE = """\
import torch
from torch import distributions, nn
from torch.distributions.multivariate_normal import MultivariateNormal


class Prior(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("loc", torch.zeros(3))
        self.register_buffer("cov", torch.eye(3))
        self.register_buffer("diagonal", torch.ones(3))
        self.last = nn.Linear(8, 8)

    @property
    def prior(self):
        return {made}

    def forward(self, x):
        made = self.prior
        return self.last(torch.ones(8, 8)), made
"""
FACTORED = {
    "distributions.MultivariateNormal(self.loc, self.cov)": True,
    "MultivariateNormal(self.loc, precision_matrix=self.cov)": True,
    "torch.distributions.LowRankMultivariateNormal(self.loc, self.cov, self.diagonal)": True,
    "distributions.Wishart(5, self.cov)": True,
    "MultivariateNormal(self.loc, scale_tril=self.cov)": False,
    "distributions.MultivariateNormal(self.loc, self.cov.float())": False,
    "distributions.Normal(self.loc, self.diagonal)": False,
}


@pytest.mark.parametrize(("made", "raises"), FACTORED.items(), ids=FACTORED)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_what_a_distribution_factors_raises_first(tmp_path: Path, made: str, raises: bool, dtype: torch.dtype) -> None:
    code = CODE.format(made=made)
    findings = check_file(Source(tmp_path / "net.py", code.encode()), Options(tuple(load_rules()))).findings
    rows = {finding.span.start.row for finding in findings}
    assert (16 in rows, 20 in rows) == (raises, not raises)
    namespace: dict[str, type[torch.nn.Module]] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    with Reached() as reached, pytest.raises((RuntimeError, NotImplementedError)):
        namespace["Prior"]().to(dtype)(torch.ones(8, 8, dtype=dtype))
    assert ("cholesky" in (reached.raised_in or "")) == raises


def test_the_factored_parameters_stand_where_torch_has_them() -> None:
    for name, places in _FACTORED.items():
        code = getattr(distributions, name).__init__.__code__
        parameters = code.co_varnames[1 : code.co_argcount]
        assert places == {parameter: parameters.index(parameter) for parameter in places}
