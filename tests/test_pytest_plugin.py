"""``pytest --amplint``: examples become tests; without the option the plugin does nothing and imports nothing."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

pytest_plugins = ["pytester"]

SHOP = """\
import torch
from torch import nn


class Good(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x):
        return self.proj(x)

    @staticmethod
    def amplint_example():
        return Good(), (torch.randn(2, 8),), {}


class Bad(Good):
    def forward(self, x):
        return self.proj(x.float())

    @staticmethod
    def amplint_example():
        return Bad(), (torch.randn(2, 8),), {}


class WithoutExample(Bad):
    pass
"""

KERNEL = """\
import torch


def kernel(x):
    torch.cuda.current_stream().synchronize()
    return x


def amplint_example():
    return kernel, (torch.randn(2, 8),), {}
"""


@pytest.fixture
def shop(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # nothing else is to write beside them
    pytester.makepyfile(shop=SHOP, kernel=KERNEL, test_own="def test_own(): pass\n")
    (pytester.path / "broken.py").write_text("amplint_example = (\n")
    (pytester.path / "undecodable.py").write_bytes(b"amplint_example = '\xff'\n")
    (pytester.path / "amplint.toml").write_text('scenarios = ["bf16"]\n')
    return pytester


def test_the_plugin_is_registered_where_amplint_is_installed() -> None:
    (found,) = entry_points(group="pytest11", name="amplint")
    assert found.value == "amplint.pytest_plugin"


def test_examples_pass_fail_or_are_skipped(shop: pytest.Pytester) -> None:
    """In the scenario that the configuration names."""
    result = shop.runpytest("--amplint", "-rs", "-v", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=1, skipped=1)
    result.stdout.fnmatch_lines_random(
        [
            "shop.py::amplint::Good PASSED*",
            "shop.py::amplint::Bad FAILED*",
            "kernel.py::amplint::amplint_example SKIPPED*",
            "test_own.py::test_own PASSED*",
            f"{shop.path / 'shop.py'}::Bad is not safe in mixed precision:",
            f"  bf16, train: RuntimeError: mat1 and mat2 must have the same dtype* at *shop.py:{line('x.float()')}",
            "*needs-gpu: *",
        ]
    )
    result.stdout.no_fnmatch_line("*fp16*")
    assert sorted(path.name for path in shop.path.iterdir() if path.suffix != ".py") == ["amplint.toml"]


def line(text: str) -> int:
    return next(number for number, row in enumerate(SHOP.splitlines(), 1) if text in row)


def test_options_name_a_scenario_and_a_marker_selects(shop: pytest.Pytester) -> None:
    result = shop.runpytest(
        "--amplint", "--amplint-scenario=16-mixed", "-m", "amplint", "-k", "Bad", "--strict-markers"
    )
    result.assert_outcomes(passed=1, deselected=3)


@pytest.mark.parametrize(
    ("option", "said"),
    [("--amplint-scenario=bf61", "unknown scenario 'bf61'"), ("--amplint-device=tpu", "unknown device 'tpu'")],
)
def test_wrong_options_are_refused_before_anything_runs(shop: pytest.Pytester, option: str, said: str) -> None:
    result = shop.runpytest("--amplint", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in str(result.stderr)
    assert "passed" not in str(result.stdout)


NOT_ASKED = """
import sys
import pytest
status = pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]])
loaded = {name.partition(".")[0] for name in sys.modules} & {"torch", "libcst"}
loaded |= {name for name in sys.modules if name.startswith("amplint.")} - {"amplint.pytest_plugin"}
print(int(status), sorted(loaded))
"""


def test_without_the_option_nothing_is_collected_and_nothing_imported(shop: pytest.Pytester) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOT_ASKED, "."], cwd=shop.path, capture_output=True, text=True, check=False
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "0 []"
