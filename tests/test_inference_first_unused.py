"""What is of no use, because what is around it raises: numbers before it, and what is behind what probably raises."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from amplint.engine import Options, check_file
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

ROUNDED = """\
import torch
from torch import nn


class Poles(nn.Module):
    def __init__(self):
        super().__init__()
        self.nu = nn.Parameter(torch.zeros(4))
        self.set_poles()

    def set_poles(self):
        radius = torch.exp(-torch.exp(self.nu))
        {then}
        return radius

    def forward(self, x: torch.Tensor):
        return x * self.set_poles()
"""


@pytest.mark.parametrize(
    ("then", "scenarios"),
    [
        ("radius = torch.polar(radius, self.nu)", set()),
        ("torch.linalg.inv(radius.diag())", set()),
        ("radius.detach().numpy()", {"fp16"}),
        ("if self.training: torch.linalg.inv(radius.diag())", {"fp16", "bf16", "bf16-mixed-params"}),
        ("radius = torch.polar(radius.float(), self.nu.float())", {"fp16", "bf16", "bf16-mixed-params"}),
    ],
)
def test_what_a_function_rounds_before_it_raises_is_not_used(then: str, scenarios: set[str]) -> None:
    code = ROUNDED.format(then=then)
    rules = tuple(rule for rule in load_rules() if rule.code == "AMP303")
    source = Source(Path("/project/net.py"), code.encode())
    assert {name for f in check_file(source, Options(rules)).findings for name in f.scenarios} == scenarios
    namespace: dict[str, type[nn.Module]] = {}
    exec(compile(code, "net.py", "exec"), namespace)
    net = namespace["Poles"]().to(torch.bfloat16).eval()
    if "bf16" not in scenarios:
        with pytest.raises((RuntimeError, TypeError)):
            net(torch.ones(4, dtype=torch.bfloat16))
    else:
        net(torch.ones(4, dtype=torch.bfloat16))


SPECTRUM = """\
import torch
from torch import nn


class Spectrum(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def forward(self, x):
        x = self.mix(x)
        return torch.fft.rfft(x), torch.complex(x, x)
"""


@pytest.mark.parametrize(
    ("requires", "version", "row"),
    [
        ("torch", None, None),
        ("torch>=2.15", None, 12),
        ("torch<2.14", None, 12),
        ("torch", (2, 13), 12),
        ("torch", (2, 15), 12),
    ],
)
def test_what_raises_first_in_a_release_that_may_be_used_hides_what_follows(
    requires: str, version: tuple[int, int] | None, row: int | None, tmp_path: Path
) -> None:
    """cuFFT takes bfloat16 from torch 2.14 on; ``torch.complex`` never does."""
    (tmp_path / "pyproject.toml").write_text(f"[project]\nname = 'spectrum'\ndependencies = ['{requires}']\n")
    (tmp_path / "net.py").write_text(SPECTRUM)
    rules = tuple(rule for rule in load_rules() if rule.code == "AMP305")
    found = check_file(tmp_path / "net.py", Options(rules, torch_version=version)).findings
    told = [f.message.split()[0] for f in found if "autocast-bf16" in f.scenarios]
    newer = requires == "torch>=2.15" or version == (2, 15)
    assert told == ([] if row is None else ["complex"] if newer else ["rfft"])


BY_DEFAULT = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.key = nn.Parameter(torch.ones(4, 4))
        self.places = nn.Parameter(torch.arange(16).float().view(4, 4))

    def forward(self, x):
        query, other = self.inner(x).float(), self.inner(x).float()
        places = torch.matmul(self.key, self.places)
        first = torch.matmul(query, places)
        return first + torch.matmul(self.key, other)
"""


@pytest.mark.parametrize(("setting", "rows"), [("", [15]), ("torch.set_default_dtype(torch.bfloat16)", [14, 15])])
def test_what_is_left_under_a_default_dtype_alone_is_not_told_where_none_is_set(setting: str, rows: list[int]) -> None:
    """With half weights ``first`` raises first; what fails behind it too fails under a default dtype of 16 bit alone,
    where ``places`` does before."""
    rules = tuple(rule for rule in load_rules() if rule.code in ("AMP102", "AMP104"))
    options = Options(rules, asked=frozenset({"AMP104"}))
    source = Source(Path("/project/net.py"), f"{BY_DEFAULT}{setting}\n".encode())
    assert [f.span.start.row for f in check_file(source, options).findings] == rows


UNSURE = """\
from elsewhere import mix
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x, steps):
        h = self.a(x).float()
        {between}
        y = self.b(h)
        return y, self.c(h.float())
"""


@pytest.mark.parametrize(
    ("between", "row"),
    [
        ("pass", 13),
        ("for step in steps: h = mix(h, step)", 14),
        ("for step in steps: h = h * 2", 13),
        ("if steps: h = mix(h, steps)", 13),
        ("h = mix(h, steps)", 14),
        ("h = h.half() if steps else h.bfloat16()", 14),
    ],
)
def test_of_what_probably_raises_and_what_is_behind_it_the_first_is_told(between: str, row: int) -> None:
    source = Source(Path("/project/net.py"), UNSURE.format(between=between).encode())
    rules = tuple(rule for rule in load_rules() if rule.code == "AMP102")
    half = tuple(scenario for scenario in DEFAULT_SCENARIOS if scenario.name == "fp16")
    found = check_file(source, Options(rules, half)).findings
    assert [finding.span.start.row for finding in found] == [row]
