"""Each file's own configuration, through the real command: which one holds, what overrides it, what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from conftest import Completed, amplint

from amplint.config import NEWEST_TORCH, OLDEST_TORCH, known_releases
from amplint.torch_range import torch_range

if TYPE_CHECKING:
    from pathlib import Path

Run = Callable[..., Completed]

NEWEST = ".".join(map(str, NEWEST_TORCH))


def found(result: Completed) -> list[tuple[str, str]]:
    return [(finding["filename"].rpartition("/")[2], finding["code"]) for finding in json.loads(result.stdout)]


@pytest.fixture
def check(run: Run) -> Callable[..., Completed]:
    return lambda *arguments: run("check", "--output-format", "json", *arguments)


@pytest.fixture
def two(project: Path) -> Path:
    """Two packages with configurations of their own, and a file beside them that has none."""
    for package, text in (("one", 'select = ["TOY101"]\n'), ("two", 'select = ["TOY102"]\ndevice = "cpu"\n')):
        (project / package / "deep").mkdir(parents=True)
        (project / package / "amplint.toml").write_text(text)
        (project / package / "deep" / f"{package}.py").write_text("x.half(); x.double()\n")
    (project / "plain.py").write_text("x.half(); x.double()\n")
    return project


PLAIN = [("plain.py", "TOY101"), ("plain.py", "TOY102")]


def test_files_given_together_are_judged_as_each_alone(two: Path, check: Run) -> None:
    files = ("one/deep/one.py", "two/deep/two.py", "plain.py")
    alone = [json.loads(check(file).stdout) for file in files]
    assert [len(findings) for findings in alone] == [1, 1, 2]
    together = [*alone[0], *alone[2], *alone[1]]
    assert json.loads(check(*files).stdout) == together == json.loads(check(".").stdout)
    assert [finding["device"] for finding in together] == ["cuda", "cuda", "cuda", "cpu"]


def test_the_nearest_configuration_holds_alone(two: Path, check: Run) -> None:
    (two / "pyproject.toml").write_text('[tool.amplint]\nignore = ["TOY"]\n')
    (two / "one" / "deep" / "pyproject.toml").write_text('[tool.amplint]\nextend-select = ["TOY201"]\n')
    (two / "one" / "deep" / "one.py").write_text("x.half(); x.off()\n")
    assert found(check()) == [("one.py", "TOY101"), ("one.py", "TOY201"), ("two.py", "TOY102")]


def test_the_command_line_overrides_every_configuration(two: Path, check: Run) -> None:
    result = check("--select", "TOY1", "--device", "mps")
    assert found(result) == [
        ("one.py", "TOY101"),
        ("one.py", "TOY102"),
        *PLAIN,
        ("two.py", "TOY101"),
        ("two.py", "TOY102"),
    ]
    assert {finding["device"] for finding in json.loads(result.stdout)} == {"mps"}
    assert found(check("--ignore", "TOY102")) == [("one.py", "TOY101"), ("plain.py", "TOY101")]


def test_one_configuration_for_all(two: Path, check: Run) -> None:
    (two / "strict").mkdir()
    (two / "strict" / "other.toml").write_text('select = ["TOY102"]\nexclude = ["/one", "plain.py"]\n')
    assert found(check("--config", "strict/other.toml")) == [("one.py", "TOY102"), ("two.py", "TOY102")]
    (two / "pyproject.toml").write_text('[tool.amplint]\nselect = ["TOY102"]\nexclude = ["/one", "plain.py"]\n')
    assert found(check("--config", "pyproject.toml")) == [("two.py", "TOY102")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--config", "none.toml"), "cannot read none.toml: No such file or directory"),
        (("--config", "two"), "cannot read two: Is a directory"),
        (("--config", "pyproject.toml"), "pyproject.toml has no table [tool.amplint]"),
        (("--config", "wrong.toml"), "wrong.toml: unknown key 'selekt' (did you mean 'select'?)"),
        (("--config", "two/amplint.toml", "--isolated"), "--config and --isolated contradict each other"),
    ],
)
def test_a_configuration_that_cannot_be_taken(two: Path, check: Run, arguments: tuple[str, ...], message: str) -> None:
    (two / "pyproject.toml").write_text("[tool.other]\n")
    (two / "wrong.toml").write_text('selekt = ["TOY101"]\n')
    result = check(*arguments)
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr.replace(f"{two}/", "") == f"amplint: error: {message}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('exclud = ["a"]\n', "unknown key 'exclud' (did you mean 'exclude'?)"),
        ('ignore = ["TOY999"]\n', "unknown rule selector 'TOY999'"),
        ('scenarios = ["fp61"]\n', "unknown scenario 'fp61' (did you mean 'fp16'?)"),
        ('torch-version = "9.9"\n', f"torch version '9.9' is not known; known are 1.13 to {NEWEST}"),
    ],
)
def test_a_wrong_configuration_is_one_line_and_the_others_count(two: Path, check: Run, text: str, message: str) -> None:
    (two / "two" / "amplint.toml").write_text(text)
    (two / "two" / "deep" / "more.py").write_text("x.half()\n")
    result = check(".", "two")
    assert result.status == 2
    assert found(result) == [("one.py", "TOY101"), *PLAIN]
    (line,) = (line for line in result.stderr.splitlines() if line.startswith("amplint: error"))
    assert line.startswith(f"amplint: error: {two / 'two' / 'amplint.toml'}: {message}")
    assert "passed: 0" not in check("two").stderr
    assert "No Python files" not in check("two").stderr


def test_what_the_command_line_has_wrong_is_laid_to_no_file(two: Path, check: Run) -> None:
    (two / "amplint.toml").write_text("")
    result = check("--select", "TOY110")
    assert result.status == 2
    assert "toml" not in result.stderr


def test_stdin_has_the_configuration_of_its_name(two: Path, run: Run) -> None:
    arguments = ("check", "--output-format", "json", "-", "--stdin-filename")
    source = b"x.half(); x.double()\n"
    assert found(run(*arguments, "one/new.py", stdin=source)) == [("new.py", "TOY101")]
    assert found(run(*arguments, "two/deep/new.py", stdin=source)) == [("new.py", "TOY102")]


def test_processes_judge_each_file_by_its_own(two: Path, run_process: Run) -> None:
    padding = f"# {'padding' * 60_000}\n"
    for package in ("one", "two"):
        for number in range(4):
            (two / package / f"{package}_{number}.py").write_text(f"x.half(); x.double()\n{padding}")
    serial = run_process("check", "--output-format", "json", "--jobs", "1")
    parallel = run_process("check", "--output-format", "json", "--jobs", "2")
    assert len(json.loads(serial.stdout)) == 12
    assert serial.stdout == parallel.stdout


def test_fixes_follow_each_configuration(two: Path, run: Run) -> None:
    for path in two.rglob("*.py"):
        path.write_text(f"import torch\n{path.read_text()}")
    assert run("check", "--fix").status == 1
    fixed = [path.read_text().count("torch.float16") for path in sorted(two.rglob("*.py"))]
    assert fixed == [1, 1, 0]


@pytest.mark.parametrize("version", ["9.9", "2.99", "1.12", "1.14", "0.4", f"{NEWEST_TORCH[0]}.{NEWEST_TORCH[1] + 1}"])
@pytest.mark.parametrize("command", ["check", "dtypes", "verify"])
def test_unknown_releases_are_refused(project: Path, command: str, version: str) -> None:
    (project / "a.py").write_text("x = 1\n")
    more = ("--scenario", "bf16") if command == "dtypes" else ()
    result = amplint(command, "a.py", "--torch-version", version, *more)
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr == f"amplint: error: torch version '{version}' is not known; known are 1.13 to {NEWEST}\n"


def test_known_releases_are_taken(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x = 1\n")
    for release in known_releases():
        assert run("check", "--torch-version", ".".join(map(str, release))).status == 0
    assert run("check", "--torch-version", f"{NEWEST}.1+cpu").status == 0
    assert next(known_releases()) == OLDEST_TORCH


def test_a_project_may_require_a_newer_release(project: Path, run: Run) -> None:
    (project / "pyproject.toml").write_text('[project]\ndependencies = ["torch>=9.9"]\n')
    (project / "a.py").write_text("x = 1\n")
    assert torch_range(project).newest == NEWEST_TORCH
    result = run("check")
    assert (result.status, result.stderr) == (0, "All checks passed: 1 file.\n")


def test_nothing_to_check_is_said(project: Path, run: Run) -> None:
    (project / "notes.md").write_text("")
    for arguments in ((), (".",), ("--output-format", "concise")):
        result = run("check", *arguments)
        assert (result.status, result.stdout, result.stderr) == (0, "", "No Python files found.\n")
    assert run("check", "--output-format", "json").stdout == "[]\n"
    result = amplint("dtypes", ".", "--scenario", "bf16")
    assert (result.status, result.stdout, result.stderr) == (0, "", "No Python files found.\n")
    result = run("check", "nowhere")
    assert (result.status, result.stderr) == (2, "amplint: error: no such file or directory: nowhere\n")


def test_what_was_passed_over_is_said_beside_the_result(project: Path, run: Run) -> None:
    for name in ("a.py", "old/b.py", "old/c.py", ".tool/d.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("x.half()\n")
    (project / "amplint.toml").write_text('exclude = ["old"]\n')
    said = "3 files were passed over: 2 excluded, 1 in hidden folders.\n"
    result = run("check", "--output-format", "json")
    assert result.stderr.endswith(said)
    assert len(json.loads(result.stdout)) == 1
    (project / "a.py").unlink()
    assert run("check").stderr == f"No Python files found.\n{said}"
    assert "passed over" not in run("check", "old").stderr


def test_dtypes_infers_by_each_configuration(project: Path) -> None:
    def run(*arguments: str) -> Completed:
        return amplint("dtypes", "cpu", "cuda", "--scenario", "bf16", *arguments)

    for device in ("cpu", "cuda"):
        (project / device).mkdir()
        (project / device / "amplint.toml").write_text(f'device = "{device}"\n')
        (project / device / "a.py").write_text("import torch\n")
    shown = run()
    assert shown.status == 0
    assert [line for line in shown.stdout.splitlines() if line.startswith("#")] == [
        "# cpu/a.py: bf16, device cpu",
        "# cuda/a.py: bf16, device cuda",
    ]
    document = run("--output-format", "json")
    assert document.status == 2
    assert "name several devices (cpu, cuda): give --device" in document.stderr
    assert json.loads(run("--output-format", "json", "--device", "mps").stdout)["device"] == "mps"
    assert json.loads(run("--output-format", "json", "--config", "cpu/amplint.toml").stdout)["device"] == "cpu"
