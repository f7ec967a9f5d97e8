"""A distribution that factors a matrix has no low-precision kernel for it: nothing behind it is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import distributions
from torch_process import with_torch

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


LOW_RANK = """\
import torch
from torch import nn
from torch.distributions import LowRankMultivariateNormal


class Prior(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(4))
        self.factor = nn.Parameter(torch.randn(4, 2))
        self.diagonal = nn.Parameter(torch.zeros(4))

    def forward(self, x: torch.Tensor, target: torch.Tensor):
        made = LowRankMultivariateNormal({arguments})
        return made.log_prob(x), nn.functional.binary_cross_entropy(x.sigmoid(), target)
"""
RUN = """\
from amplint.emulation import emulated

with emulated("cuda"):
    namespace = {}
    exec(compile(open("net.py").read(), "net.py", "exec"), namespace)
    torch = namespace["torch"]
    with torch.autocast("cuda", dtype=torch.bfloat16):
        namespace["Prior"]()(torch.randn(3, 4), torch.rand(3, 4))
"""


@pytest.mark.parametrize(
    ("arguments", "row", "text"),
    [
        ("self.mean, self.factor, self.diagonal.exp()", 14, "cholesky"),
        ("loc=self.mean, cov_diag=self.diagonal.exp(), cov_factor=self.factor", 14, "cholesky"),
        ("self.mean.double(), self.factor.double(), self.diagonal.exp().double()", 15, "binary_cross_entropy"),
    ],
)
def test_autocast_rounds_the_product_that_a_distribution_factors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, row: int, text: str
) -> None:
    code = LOW_RANK.format(arguments=arguments)
    (tmp_path / "net.py").write_text(code)
    rules = tuple(rule for rule in load_rules() if rule.code in ("AMP304", "AMP305"))
    found = check_file(tmp_path / "net.py", Options(rules, asked=frozenset({"AMP304", "AMP305"}))).findings
    assert [f.span.start.row for f in found if "autocast-bf16" in f.scenarios] == [row]
    monkeypatch.chdir(tmp_path)
    done = with_torch(RUN)
    assert done.status
    assert f'"net.py", line {row}' in done.stderr
    assert text in done.stderr.splitlines()[-1] + "".join(done.stderr.splitlines()[-3:])


def test_the_factored_parameters_stand_where_torch_has_them() -> None:
    for name, places in _FACTORED.items():
        code = getattr(distributions, name).__init__.__code__
        parameters = code.co_varnames[1 : code.co_argcount]
        assert places == {parameter: parameters.index(parameter) for parameter in places}
