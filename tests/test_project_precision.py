"""An upcast that autocast undoes is merely possible in a project that does nothing about precision."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplint.cli.main import main as cli
from amplint.config import Config
from amplint.engine import check_file
from amplint.judging import judging_options
from amplint.plugins import load_rules

SCORES = """
import torch
from torch import nn

class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(8, 8)
        self.k = nn.Linear(8, 8)

    def forward(self, x):
        return self.q(x).float() @ self.k(x).float().transpose(-1, -2)
"""
ONE_SIDED = SCORES.replace(".float().transpose", ".transpose")


def doubts(file: Path, source: str = SCORES, *, code: str = "AMP102") -> list[str]:
    """The doubts about the one finding of a rule in a file."""
    file.write_text(source)
    options = judging_options(Config(), load_rules(), pedantic=True)
    (found,) = (f for f in check_file(file, options).findings if f.code == code)
    return [seen.doubt.name for seen in found.doubts]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "src" / "nets"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    return folder


def test_a_package_that_names_no_low_precision(package: Path) -> None:
    assert doubts(package / "scores.py") == ["unasked-precision"]
    assert doubts(package / "scores.py", ONE_SIDED) == []


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nWIDTH = torch.bfloat16\n",
        "def halve(model):\n    return model.half()\n",
        "from lightning import Trainer\ntrainer = Trainer(precision='16-mixed')\n",
        "from torch import autocast\n\ndef step(model, x):\n    with autocast('cuda'):\n        return model(x)\n",
    ],
)
def test_another_file_asks_for_it(package: Path, text: str) -> None:
    (package / "train.py").write_text(text)
    assert doubts(package / "scores.py") == []


@pytest.mark.parametrize(
    "text", ['"""Nobody uses float16 here."""\n', "# torch.half\n", "def half(n):\n    return n // 2\n"]
)
def test_words_and_other_halves_ask_for_nothing(package: Path, text: str) -> None:
    (package / "train.py").write_text(text)
    assert doubts(package / "scores.py") == ["unasked-precision"]


def test_what_lies_beside_the_package_is_of_the_project_that_states_itself(package: Path) -> None:
    project = package.parent.parent
    (project / "conf").mkdir()
    (project / "conf" / "train.yaml").write_text("precision: 16-mixed\n")
    assert doubts(package / "scores.py") == ["unasked-precision"]
    (project / "pyproject.toml").write_text("")
    assert doubts(package / "scores.py") == []


def test_hidden_folders_and_installed_packages_are_not_of_the_project(package: Path) -> None:
    project = package.parent.parent
    (project / "pyproject.toml").write_text("")
    for other in (".venv", "site-packages"):
        (project / other).mkdir()
        (project / other / "amp.py").write_text("import torch\nWIDTH = torch.bfloat16\n")
    assert doubts(package / "scores.py") == ["unasked-precision"]


def test_a_file_of_no_project_is_for_who_knows_what_precision(tmp_path: Path) -> None:
    assert doubts(tmp_path / "scores.py") == []


def test_verbose_says_what_each_project_is_judged_by(
    package: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(package.parent.parent)
    (package / "scores.py").write_text(SCORES)
    for number in range(5):
        (package / f"halves{number}.py").write_text("\ndef halve(model):\n    return model.half()\n")
    Path("pyproject.toml").write_text('[project]\nname = "nets"\ndependencies = ["torch>=2.4,<2.10"]\n')
    with pytest.raises(SystemExit):
        cli(["check", "-v", "--isolated", "--scenario", "bf16"])
    said = capsys.readouterr().err
    assert "  torch: 2.4 to 2.9, as pyproject.toml says\n  scenarios: bf16; everywhere, as they are named" in said
    assert (
        "  precision: half in src/nets/halves0.py:3, src/nets/halves1.py:3, src/nets/halves2.py:3 and 2 more files\n"
        in said
    )
    assert said.count("precision:") == 1


def test_auto_is_what_a_run_without_scenarios_does(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (package / "scores.py").write_text(ONE_SIDED)
    printed = []
    for options in ([], ["--scenario", "auto"], ["--scenario", "fp16"], ["--scenario", "auto,fp16"]):
        with pytest.raises(SystemExit):
            cli(["check", "--isolated", "--output-format", "json", *options, str(package)])
        printed.append(capsys.readouterr())
    plain, auto, named, both = (each.out for each in printed)
    assert plain == auto != named
    assert not both
    assert "name it alone" in printed[-1].err
