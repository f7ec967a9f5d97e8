"""``amplint check --verify``: verdicts beside findings, refuted ones apart, fixes proven."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from conftest import amplint_in

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Completed

HEAD = "import torch\nfrom torch import nn\n\n\n"
SCATTER = """\
class {name}(nn.Module):
    def __init__(self{parameter}):
        super().__init__()
        {first}
        self.proj = nn.Linear(8, 8)

    def forward(self, x):
        out = torch.zeros(4, 8)
        out.index_add_(0, torch.arange(4), self.proj(x))
        return out


"""


def scatter(name: str, *, parameter: str = "", first: str = "pass") -> str:
    """A class that writes a 16-bit result into float32 under autocast."""
    return SCATTER.format(name=name, parameter=parameter, first=first)


EXAMPLE = """\
class Wide(nn.Module):
    def forward(self, x):
        return x.float()


def amplint_example():
    module = {name}()
    module.proj = Wide()
    return module, (torch.randn(4, 8),), {{}}
"""


def check(folder: Path, *arguments: str) -> Completed:
    return amplint_in(folder, "check", *arguments)


def with_example(name: str) -> str:
    """A class whose example gives it a layer that casts to float32: its finding's line runs, and does not fail."""
    return HEAD + scatter(name) + EXAMPLE.format(name=name)


def test_each_finding_gets_its_verdict(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(HEAD + scatter("Fails"))
    broken = scatter("Broken", parameter=", secret", first="self.size = secret.of.another.kind + 1")
    (tmp_path / "broken.py").write_text(HEAD + broken)
    (tmp_path / "runs.py").write_text(with_example("Runs"))
    done = check(tmp_path, "--verify", "--output-format", "json", ".")
    found = {row["filename"].rpartition("/")[2]: row for row in json.loads(done.stdout)}
    assert {name: row["verdict"] for name, row in found.items()} == {
        "fails.py": "confirmed",
        "broken.py": "confirmed",
        "runs.py": "not-reproduced",
    }
    run = found["fails.py"]["run"]
    assert (run["scenario"], run["fix"], run["built"]) == ("autocast-fp16", "cures", "Fails()")
    assert "amplint verify" in run["reproduce"]
    assert done.status == 1
    assert "running what was found in broken.py, fails.py, runs.py" in done.stderr
    assert done.stderr.endswith(
        "Runs: 2 confirmed, 1 not reproduced; 1 of these ran everywhere without failing and is not counted.\n"
    )


def test_what_ran_without_failing_stands_apart_and_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "runs.py").write_text(with_example("Runs"))
    done = check(tmp_path, "--verify", "runs.py")
    apart, _, finding = done.stdout.partition("\n")
    assert apart == "Ran in every scenario named and did not fail; not counted:"
    assert "= verdict: ran, and did not fail" in finding
    assert "= ran: Runs() with" in finding
    assert done.status == 0
    assert check(tmp_path, "runs.py").status == 1


def test_fixes_are_proven_before_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(HEAD + scatter("Fails"))
    done = check(tmp_path, "--verify", "--fix", "fails.py")
    assert done.status == 0, done.stderr
    assert "self.proj(x).to(out.dtype)" in (tmp_path / "fails.py").read_text()
    assert done.stderr.splitlines()[1:] == [
        "Fixed 1 finding in 1 file.",
        "Runs before the fix: 1 of 1 confirmed; the fix cures 1.",
        "All checks passed: 1 file.",
    ]


def test_only_what_is_asked_for_is_run(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(HEAD + scatter("Fails") + "open('ran', 'w').close()\n")
    done = check(tmp_path, "fails.py", "--output-format", "json")
    assert not (tmp_path / "ran").exists()
    assert "verdict" not in json.loads(done.stdout)[0]
    (tmp_path / "clean.py").write_text("open('ran', 'w').close()\nimport torch\n")
    done = check(tmp_path, "--verify", "clean.py")
    assert (done.stdout, done.stderr) == ("", "All checks passed: 1 file.\n")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-",), "--verify runs files: it cannot run what stdin holds"),
        (("--diff", "."), "--diff shows no verdicts"),
        (("--statistics", "."), "--statistics shows no verdicts"),
    ],
)
def test_what_it_does_not_go_with(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = check(tmp_path, "--verify", *arguments)
    assert done.status == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
