"""A way on which something surely raises leads no further: behind it holds what the other ways bring."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from amplint.engine import Options, check_file
from amplint.finding import Certainty
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP102")
NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, stem: bool = False):
        super().__init__()
        self.stem = nn.Linear(4, 4) if stem else None
        self.first = nn.Linear(4, 4)
        self.last = nn.Linear(4, 4)
        self.layers = nn.ModuleList([nn.Linear(4, 4)])

    def stemmed(self, x):
        if self.stem is None:
            return x
        return self.stem(x)

    def guarded(self, x):
        try:
            return self.stem(x)
        except RuntimeError:
            return x

    def forward(self, x, flag: bool = False):
        x = x.float()
        {way}
        x = {then}
        return self.last(x.float())
"""


def told(code: str) -> list[int]:
    result = check_file(
        Source(Path("/project/net.py"), code.encode()), Options(RULES, DEFAULT_SCENARIOS, "cuda", (2, 13))
    )
    assert not result.failures
    return [f.span.start.row for f in result.findings if f.certainty is not Certainty.POSSIBLE]


def raising(code: str, *, stem: bool) -> int:
    """The line of the program on which torch raises first, for a converted module."""
    namespace: dict[str, type[nn.Module]] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    with pytest.raises(RuntimeError, match="dtype") as caught:
        namespace["Net"](stem).to(torch.bfloat16)(torch.ones(2, 4, dtype=torch.bfloat16))
    return [entry.lineno + 1 for entry in caught.traceback if str(entry.path).endswith("net.py")][-1]


@pytest.mark.parametrize(
    "way",
    [
        "if self.stem is not None:\n            x = self.stem(x)",
        "x = self.stem(x) if self.stem is not None else x",
        "x = self.stemmed(x)",
    ],
)
def test_what_is_behind_is_reached_by_the_other_way_alone(way: str) -> None:
    code = NET.format(way=way, then="self.first(x)")
    rows = [raising(code, stem=stem) for stem in (False, True)]
    first = code.splitlines().index("        return self.last(x.float())") + 1
    assert told(code)[0] in rows
    assert first not in [*told(code), *rows]


@pytest.mark.parametrize(
    "way",
    [
        "x = self.guarded(x) if self.stem is not None else x.to(self.last.weight.dtype)",
        "if self.stem is not None:\n            x = self.stem(x)",
        "x = self.stem(x) if self.stem is not None else x",
    ],
)
def test_where_one_way_leads_on_the_last_is_reached(way: str) -> None:
    code = NET.format(way=way, then="x.to(self.last.weight.dtype)")
    last = code.splitlines().index("        return self.last(x.float())") + 1
    assert raising(code, stem=False) == last
    assert last in told(code)
