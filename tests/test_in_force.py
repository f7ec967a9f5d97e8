"""What a run says of itself: the head on a terminal, -v, -q, --show-settings, --color, the first run."""

from __future__ import annotations

import json
import os
import pty
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from conftest import Completed

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

Run = Callable[..., Completed]

SOURCE = "import torch\nx.half()\n"
TERMINAL = (
    "import os; terminal = os.open(os.environ['TERMINAL'], os.O_RDWR | os.O_NOCTTY); "
    "[os.dup2(terminal, stream) for stream in (1, 2)]; "
    "from amplint.cli.main import main; main()"
)


@pytest.fixture
def on_a_terminal(project: Path, toy_process: Callable[..., subprocess.Popen[bytes]]) -> Callable[..., str]:
    """What a run in a process of its own writes to a terminal."""

    def run(*arguments: str, **environment: str) -> str:
        reading, terminal = pty.openpty()
        environment = {"TERM": "xterm", "NO_COLOR": "", "TERMINAL": os.ttyname(terminal), **environment}
        process = toy_process(arguments, python=("-c", TERMINAL), **environment)
        process.communicate(timeout=120)
        os.close(terminal)
        written = b""
        while True:
            try:
                written += os.read(reading, 65536)
            except OSError:
                break
        os.close(reading)
        return written.decode().replace("\r\n", "\n")

    return run


HEAD = "Checking 1 file; configuration: "
SUGGESTION = "No configuration yet: amplint init writes one, with the scenarios that this folder's code shows.\n"
DEFAULT = "autocast-fp16, autocast-bf16, fp16, bf16, bf16-mixed-params"
COLOUR = "\x1b["


def test_a_terminal_gets_a_head_and_a_pipe_does_not(project: Path, on_a_terminal: Callable[..., str], run: Run) -> None:
    (project / "a.py").write_text(SOURCE)
    (project / "amplint.toml").write_text('extend = "base.toml"\n')
    (project / "base.toml").write_text('torch-version = "2.4"\nscenarios = ["bf16"]\n')
    arguments = ("check", "--output-format", "concise", "--color", "never")
    text = on_a_terminal(*arguments)
    assert text.splitlines()[0] == (
        f"{HEAD}amplint.toml, which extends base.toml; torch 2.4, as base.toml says; scenarios: bf16 (-v says more)"
    )
    assert "a.py:2:1: TOY101 half() is called [bf16]\n" in text
    assert SUGGESTION not in text
    assert on_a_terminal(*arguments, "-q") == "a.py:2:1: TOY101 half() is called [bf16]\n"
    assert HEAD not in run(*arguments).stderr
    assert HEAD not in on_a_terminal(*arguments, "-v")


def test_the_first_run_suggests_init(project: Path, on_a_terminal: Callable[..., str], run: Run) -> None:
    (project / "a.py").write_text(SOURCE)
    text = on_a_terminal("check", "--color", "never")
    assert text.startswith(f"{HEAD}none, so the defaults hold; torch ")
    assert text.endswith(SUGGESTION)
    assert SUGGESTION not in run("check").stderr
    for more in (("-q",), ("--isolated",), ("--config", "other.toml")):
        (project / "other.toml").write_text("")
        assert SUGGESTION not in on_a_terminal("check", *more)
    (project / "a.py").write_text("x = 1\n")
    assert SUGGESTION not in on_a_terminal("check")


def test_what_differs_between_projects_is_not_all_said_in_the_head(
    project: Path, on_a_terminal: Callable[..., str]
) -> None:
    for name, keys in (("one", 'scenarios = ["fp16"]\ntorch-version = "2.3"\n'), ("two", "")):
        (project / name).mkdir()
        (project / name / "amplint.toml").write_text(keys)
        (project / name / "a.py").write_text("x = 1\n")
    head = "Checking 2 files; configuration: several; torch by project; scenarios: by project (-v says more)"
    assert on_a_terminal("check", "--color", "never").splitlines()[0] == head


def same_links(text: str) -> str:
    """The text without the numbers that rich gives to links at random."""
    return re.sub(r"\bid=\d+", "", text)


def test_colour(project: Path, on_a_terminal: Callable[..., str], run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.py").write_text(SOURCE)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert COLOUR not in run("check").stdout
    plain = run("check", "--color", "never").stdout
    coloured = same_links(run("check", "--color", "always").stdout)
    assert COLOUR in coloured
    assert "TOY101" in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert same_links(run("check").stdout) == coloured
    assert run("check", "--color", "never").stdout == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert run("check").stdout == plain
    assert same_links(run("check", "--color", "always").stdout) == coloured
    assert COLOUR in on_a_terminal("check", "-q", FORCE_COLOR="")
    assert COLOUR not in on_a_terminal("check", "-q", FORCE_COLOR="", NO_COLOR="1")
    assert COLOUR not in on_a_terminal("check", "-q", FORCE_COLOR="", TERM="dumb")


def test_quiet_says_what_is_found_and_what_is_wrong(project: Path, run: Run) -> None:
    (project / "a.py").write_text(SOURCE)
    result = run("check", "-q", "--output-format", "concise")
    assert (result.status, result.stderr) == (1, "")
    assert result.stdout.count("\n") == 1
    result = run("check", "--quiet", "a.py", "nowhere.py")
    assert (result.status, result.stderr) == (2, "amplint: error: no such file or directory: nowhere.py\n")
    assert run("check", "-q", "--fix").stderr == ""
    assert run("check", "-q").stderr == ""
    assert run("check", "-", "--show-settings").stderr == (
        "amplint: error: --show-settings does not go with - (stdin)\n"
    )
    assert run("check", "-q", "-v").stderr == "amplint: error: --quiet and --verbose contradict each other\n"


def test_verbose_says_what_and_why(project: Path, run: Run) -> None:
    (project / "a.py").write_text("import torch\nx.half()\nwith torch.autocast('cuda'):\n    pass\n")
    (project / "pyproject.toml").write_text('[project]\ndependencies = ["torch>=2.1,<2.5"]\n[tool.amplint]\n')
    result = run("check", "-v", "--min-certainty", "proven")
    assert result.stderr.splitlines()[:6] == [
        ". (1 file):",
        "  configuration: pyproject.toml",
        "  torch: 2.1 to 2.4, as pyproject.toml says",
        f"  scenarios: {DEFAULT}; the default ones, each where the code runs so; device cuda",
        "  precision: autocast in a.py:3; half in a.py:2",
        "  rules: 15; from certainty proven and severity warning up",
    ]
    said = run("check", "-v", "--isolated", "--scenario", "bf16", "--torch-version", "2.3").stderr
    assert "configuration: none is read: --isolated\n" in said
    assert "torch: 2.3, as --torch-version says\n" in run("check", "-", "-v", "--torch-version", "2.3").stderr
    assert "torch: 2.3, as --torch-version says\n" in said
    assert "scenarios: bf16; everywhere, as they are named by --scenario; device cuda\n" in said


def test_verbose_names_the_scenarios_that_an_old_torch_has(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.half()\n")
    (project / "requirements.txt").write_text("torch==1.9.1\n")
    which = "those of the default ones that this torch has, each where the code runs so"
    assert f"scenarios: autocast-fp16, fp16; {which}; device cuda\n" in run("check", "-v").stderr


def test_settings_of_each_configuration(project: Path, run: Run) -> None:
    (project / "one").mkdir()
    (project / "base.toml").write_text('device = "cpu"\n[per-file-ignores]\n"tests/" = ["TOY1"]\n')
    (project / "one" / "amplint.toml").write_text(
        'extend = "../base.toml"\nselect = ["TOY1"]\nextend-exclude = ["old"]\n'
        'unsafe-fixes = true\nscenarios = ["bf16"]\n'
    )
    for name in ("one/a.py", "one/b.py", "c.py"):
        (project / name).write_text("x.half()\n")
    result = run("check", "--show-settings", "--output-format", "json", "--min-severity", "error")
    assert (result.status, result.stderr) == (0, "")
    plain, one = json.loads(result.stdout)
    assert (plain["files"], plain["configuration"], plain["device"]) == (1, [], "cuda")
    assert plain["scenarios-why"] == "the default ones, each where the code runs so"
    assert one == {
        "project": str(project / "one"),
        "files": 2,
        "configuration": [str(project / "one" / "amplint.toml"), str(project / "base.toml")],
        "rules": one["rules"],
        "per-file-ignores": {"tests/": ["TOY1"]},
        "scenarios": ["bf16"],
        "scenarios-why": "everywhere, as they are named by one/amplint.toml",
        "device": "cpu",
        "torch": plain["torch"],
        "torch-why": "nothing says which",
        "min-certainty": "likely",
        "min-severity": "error",
        "unsafe-fixes": True,
        "baseline": None,
        "exclude": [],
        "extend-exclude": ["old"],
        "force-exclude": False,
        "respect-gitignore": True,
        "plugins": [],
        "factories": {},
        "output-format": "json",
    }
    assert "TOY101" in one["rules"]
    assert "TOY201" not in one["rules"]
    text = run("check", "--show-settings", "one").stdout
    assert text.startswith("project: one\n  files: 2\n  configuration: one/amplint.toml, base.toml\n  rules: ")
    assert "\n  per-file-ignores: tests/ -> TOY1\n" in text
    assert "\n  scenarios: bf16 (everywhere, as they are named by one/amplint.toml)\n" in text
    assert "\n  unsafe-fixes: true\n" in text
    assert text.endswith("\n  output-format: full\n")


def test_form_of_the_report_by_configuration(project: Path, run: Run) -> None:
    (project / "a.py").write_text(SOURCE)
    (project / "amplint.toml").write_text('output-format = "concise"\n')
    assert run("check").stdout.startswith("a.py:2:1: TOY101")
    assert run("check", "--output-format", "json").stdout.startswith("[")
    assert run("check", "--isolated").stdout.startswith("error[TOY101]")
    (project / "other.toml").write_text('output-format = "json"\n')
    assert run("check", "--config", "other.toml").stdout.startswith("[")
    (project / "amplint.toml").write_text('output-format = "jsno"\n')
    result = run("check")
    assert (result.status, result.stdout) == (2, "")
    where = project / "amplint.toml"
    assert result.stderr == f"amplint: error: {where}: unknown output format 'jsno' (did you mean 'json'?)\n"


def test_an_unknown_command_names_the_nearest(run: Run) -> None:
    result = run("chekc")
    assert (result.status, result.stderr) == (2, "amplint: error: unknown command 'chekc' (did you mean 'check'?)\n")
