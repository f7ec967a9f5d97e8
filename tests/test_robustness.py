"""What must not stop a run: odd files, odd systems, readers that go away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, Completed

Run = Callable[..., Completed]


def found(result: Completed) -> list[tuple[str, str]]:
    return [(Path(finding["filename"]).name, finding["code"]) for finding in json.loads(result.stdout)]


@pytest.mark.parametrize(
    "data",
    [
        b"def f(:\n",
        b"x = '\xff\xfe'\n",
        b"\xff\xfex\x00",
        b"x = 1\x00\n",
        b"# coding: nonsense\nx = 1\n",
        b"# coding: utf-8\nx = '\xe9'\n",
        b"if x:\n\ty\n        z\n",
        b"x = (\n",
        b"x = '''\n",
        b"    x = 1\n",
        "x = “1”\n".encode(),
        b"\x0c\xef\xbb\xbf",
        b"x.half(\r\r",
    ],
)
def test_unparsable_files_are_findings(project: Path, run: Run, data: bytes) -> None:
    (project / "a.py").write_bytes(data)
    (project / "b.py").write_text("x.double()\n")
    result = run("check", "--output-format", "json")
    assert result.status == 1
    assert found(result) == [("a.py", "AMP901"), ("b.py", "TOY102")]
    finding = json.loads(result.stdout)[0]
    assert (finding["severity"], finding["certainty"], finding["scenarios"], finding["fix"]) == (
        "error",
        "proven",
        [],
        None,
    )
    for output_format in ("full", "concise"):
        result = run("check", "--output-format", output_format, "--fix")
        assert result.status == 1
        assert "AMP901" in result.stdout
    assert (project / "a.py").read_bytes() == data
    assert found(run("check", "--output-format", "json", "--select", "TOY101")) == [("a.py", "AMP901")]
    assert found(run("check", "--output-format", "json", "--ignore", "AMP901")) == [("b.py", "TOY102")]


@pytest.mark.parametrize(
    ("data", "column"),
    [
        (b"", None),
        (b"\xef\xbb\xbf", None),
        (b"\n\r\n\r\x0c\n", None),
        (b"\xef\xbb\xbfx.double()\n", 1),
        (b"y; x.double()\r\nz\r\n", 4),
        (b"y; x.double()\rz\r", 4),
        (b"\x0cx.double()\n", 2),
        ("é日; x.double()\n".encode(), 5),
        (b"# coding: latin-1\n", None),
        (b"# coding: latin-1\n'\xe9'; x.double()\n", 6),
        (b"x.double()", 1),
        (b"'\\d'; x.double()\n", 7),
    ],
)
def test_columns_count_characters(project: Path, run: Run, data: bytes, column: int | None) -> None:
    (project / "a.py").write_bytes(data)
    result = run("check", "--output-format", "json")
    assert [finding["location"]["column"] for finding in json.loads(result.stdout)] == ([column] if column else [])
    assert "Warning" not in result.stderr
    assert run("check").status == (1 if column else 0)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "-" * 20_000 + "1",
        "x = " + "(" * 500 + "1" + ")" * 500,
        "x = " + "(" * 90 + "1" + ")" * 90,
        "x = " + "1 + " * 5_000 + "1",
        "x" + ".a" * 5_000,
        "x" + ".half()" * 400,
        "x" + ".half()" * 2_000,
        "x = " + "[" * 150 + "]" * 150,
        "".join(f"{' ' * depth}if x:\n" for depth in range(99)) + " " * 99 + "x.half()",
        "if x: pass\n" + "elif y: x.half()\n" * 1_500,
        "x = " + "lambda: " * 1_000 + "1",
    ],
    ids=lambda text: f"{text[:14]!r}-{len(text)}",
)
def test_deep_nesting(project: Path, run_process: Run, text: str) -> None:
    (project / "a.py").write_text(f"{text}\n")
    (project / "b.py").write_text("x.double()\n")
    result = run_process("check", "--output-format", "json")
    assert "Traceback" not in result.stderr
    assert "internal error" not in result.stderr
    assert result.status == 1
    assert ("b.py", "TOY102") in found(result)


def test_unreadable_file(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.py").write_text("x.double()\n")
    (project / "b.py").write_text("x.double()\n")
    read_bytes = Path.read_bytes

    def deny(path: Path) -> bytes:
        if path.name == "a.py":
            raise PermissionError(13, "Permission denied")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", deny)
    result = run("check", "--output-format", "json")
    assert result.status == 2
    assert f"cannot read {project / 'a.py'}: Permission denied" in result.stderr
    assert found(result) == [("b.py", "TOY102")]


def test_directory_loop(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.double()\n")
    (project / "loop").symlink_to(project)
    assert found(run("check", "--output-format", "json")) == [("a.py", "TOY102")]


@pytest.mark.parametrize("output_format", ["full", "concise", "json"])
def test_closed_pipe(project: Path, toy_process: Callable[..., subprocess.Popen[bytes]], output_format: str) -> None:
    """With more output, 100 KB at least, than the 64 KiB that a pipe holds."""
    (project / "a.py").write_text("x.double()\n" * 1_000)
    process = toy_process(["check", "--output-format", output_format])
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    stderr = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(60) == 1
    assert "Error" not in stderr
    assert stderr.startswith("Found 1,000 findings")


def test_interrupt_is_quiet(project: Path, toy_process: Callable[..., subprocess.Popen[bytes]]) -> None:
    for number in range(60):
        (project / f"m{number}.py").write_text("x.double()\n" * 1_000 + "# padding\n" * 10_000)
    process = toy_process(["check", "--jobs", "2"])
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert b"Traceback" not in stderr
    assert (process.returncode, stdout) == (130, b"")
    assert stderr == b"amplint: interrupted\n"


STOPPED = """
import sys
from pathlib import Path
from amplint.engine import Options, Task, check_files
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
if __name__ == "__main__":
    options = Options(load_rules(), DEFAULT_SCENARIOS)
    files = sorted(Path(sys.argv[1]).glob("*.py"))
    results = check_files([Task(file, file.stat().st_size, options) for file in files], jobs=2)
    print(len(next(results).findings))
    results.close()
"""


def test_what_is_stopped_while_results_are_sent_ends(
    project: Path, toy_process: Callable[..., subprocess.Popen[bytes]]
) -> None:
    script = project / "stopped"
    script.write_text(STOPPED)
    for number in range(30):
        (project / f"m{number}.py").write_text("x.long()\n" + "# padding\n" * 10_000)
    for _ in range(3):
        process = toy_process([str(project)], python=(str(script),))
        stdout, stderr = process.communicate(timeout=60)
        assert (process.returncode, stdout, stderr) == (0, b"1\n", b"")


def test_an_interrupt_in_this_process(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from amplint.cli import check

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(check, "check_files", interrupt)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    result = run("check")
    assert (result.status, result.stderr) == (130, "amplint: interrupted\n")


def test_ascii_terminal(project: Path, run_process: Run) -> None:
    (project / "é.py").write_text("'日'; x.double()\n")
    result = run_process("check", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert result.status == 1
    assert "Traceback" not in result.stderr


IMPORTED = """
import sys
from amplint.cli.main import main
try:
    main(["check", "--output-format", sys.argv[1], *sys.argv[2:]])
except SystemExit:
    pass
print([name for name in ("torch", "libcst", "rich", "pathspec", "tomllib") if name in sys.modules], file=sys.stderr)
"""


def test_nothing_heavy_is_imported(project: Path, run_process: Run) -> None:
    (project / "clean.py").write_text("import torch\nx.astype()  # half double\n")
    assert run_process("full", python=("-c", IMPORTED)).stderr.endswith("[]\n")
    (project / "clean.py").write_text("import torch\nx.double()\n")
    assert run_process("full", python=("-c", IMPORTED)).stderr.endswith("[]\n")
    (project / "clean.py").write_text("import torch\nx.half()\n")
    assert run_process("full", python=("-c", IMPORTED)).stderr.endswith("['libcst']\n")


def test_built_in_rules_import_no_libcst() -> None:
    pytest.importorskip("amplint_rules")
    code = "import sys, amplint_rules as r; r.all_rules(); print([m for m in ('torch', 'libcst') if m in sys.modules])"
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.stdout == "[]\n"
