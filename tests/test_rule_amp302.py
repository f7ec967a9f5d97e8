"""AMP302: epsilons that guard nothing, or nothing that is near zero, are possible only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from amplint.engine import Options, check_file
from amplint.infer.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP302")
OPTIONS = Options(RULES, DEFAULT_SCENARIOS, "cuda", (2, 13))
MODULE = """\
import torch
from torch import nn


class Snake(nn.Module):
    def __init__(self, dim, logscale=True):
        super().__init__()
        self.beta = nn.Parameter(torch.zeros(dim))
        self.router = nn.Linear(dim, dim)
        self.logscale = logscale

    def forward(self, x: torch.Tensor):
        x = self.router(x)
{body}


def make():
    return Snake({arguments})
"""


def check(*lines: str, arguments: str = "4") -> tuple[int, int]:
    """How many findings by default, and with what is possible."""
    body = "".join(f"        {line}\n" for line in lines).rstrip()
    source = Source(Path("/project/snake.py"), MODULE.format(body=body, arguments=arguments).encode())
    results = [check_file(source, replace(OPTIONS, pedantic=pedantic)) for pedantic in (False, True)]
    assert not any(result.failures for result in results)
    return len(results[0].findings), len(results[1].findings)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("p = x.softmax(-1)[0].clamp_min(1e-8)", "y = x", "y *= p", "return y"), 0),
        (("p = x + 1e-8", "y = x * p * 2", "return y"), 0),
        (("p = x + 1e-8", "y = x * p", "return y / p"), 1),
        (("p = x + 1e-8", "return p"), 1),
        (("p = x + 1e-8", "return (x * p).log()"), 1),
        (("p = x + 1e-8", "y = x", "y /= p", "return y"), 1),
    ],
)
def test_a_factor_that_is_kept_in_a_variable(lines: tuple[str, ...], found: int) -> None:
    assert check(*lines) == (found, 1)


OF_AN_OPTION = "beta = self.beta if not self.logscale else torch.exp(self.beta)"
TURNED = "beta = torch.exp(self.beta) if not self.logscale else self.beta"


@pytest.mark.parametrize(
    ("line", "arguments", "found"),
    [
        (OF_AN_OPTION, "4", 0),
        (OF_AN_OPTION, "4, False", 1),
        (OF_AN_OPTION, "4, logscale=False", 1),
        (TURNED, "4", 1),
        ("beta = self.beta if not self.logscale else self.beta.abs()", "4", 1),
        ("beta = self.beta if not self.training else torch.exp(self.beta)", "4", 1),
    ],
)
def test_an_exponential_by_the_default_of_an_option(line: str, arguments: str, found: int) -> None:
    assert check(line, "return x / (beta + 1e-9)", arguments=arguments) == (found, 1)


SCORES = "scores = torch.sigmoid(x) if self.logscale else torch.softmax(x, -1)"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ((SCORES, "best = torch.gather(scores, -1, scores.topk(2).indices)"), 0),
        ((SCORES, "best = scores.gather(-1, scores.topk(2).indices)"), 0),
        (("best = torch.gather(x, -1, x.topk(2).indices)",), 1),
        ((SCORES.replace("torch.sigmoid(x)", "x"), "best = torch.gather(scores, -1, scores.topk(2).indices)"), 1),
    ],
)
def test_a_sum_of_picked_shares(lines: tuple[str, ...], found: int) -> None:
    assert check(*lines, "return best / (best.sum(-1, keepdim=True) + 1e-9)") == (found, 1)


HELPER = """\
import torch
from torch import nn


def log(t, eps=1e-12):
    return torch.log(t.clamp(min=eps))


class Loss(nn.Module):
    def forward(self, batch):
        return {call}
"""


@pytest.mark.parametrize(("call", "found"), [("log(batch['shares'])", 1), ("batch['shares']", 0)])
def test_a_helper_of_a_module_runs_in_its_scenario(call: str, found: int) -> None:
    result = check_file(Source(Path("/project/loss.py"), HELPER.format(call=call).encode()), OPTIONS)
    assert not result.failures
    assert [finding.span.start.row for finding in result.findings] == [6] * found
