"""Code that does its worst ends in a verdict within the limits, and nothing here changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import amplint_in

EXAMPLE = """
import torch
from torch import nn

class Target(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        {body}
        return self.layer(x)

    @staticmethod
    def amplint_example():
        {example}
        return Target(), (torch.randn(2, 4),), {{}}
"""


def verify(path: Path, *options: str, target: str = "::Target") -> tuple[list[dict], float, int]:
    start = time.monotonic()
    asked = [f"{path}{target}", "--isolated", "--run-on", "cpu", "--scenario", "autocast-bf16", *options]
    done = amplint_in(Path.cwd(), "verify", *asked, "--output-format", "json")
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout), time.monotonic() - start, done.status


def write(folder: Path, body: str = "pass", example: str = "pass", before: str = "") -> Path:
    path = folder / "target.py"
    path.write_text(before + EXAMPLE.format(body=body, example=example))
    return path


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import os; os._exit(0)", "ended with status 0"),
        ("import os; os._exit(3)", "ended with status 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("raise SystemExit(5)", "SystemExit"),
        ("torch.zeros(25_000_000_000).sum()", "memory"),
        ("raise ValueError('no reason')", "fails in float32 too: ValueError: no reason"),
        ("import sys; sys.setrecursionlimit(10**6); self.forward(x)", ""),
    ],
)
def test_a_run_that_ends_badly_is_not_runnable(tmp_path: Path, body: str, said: str) -> None:
    limit = "40" if said else "4"  # the recursion ends at one limit or the other
    rows, seconds, status = verify(write(tmp_path, body), "--timeout", limit, "--memory", "4")
    assert {row["verdict"] for row in rows} == {"not-runnable"}
    assert all(said in row["error"] for row in rows)
    assert status == 2
    assert seconds < 60


def test_an_endless_loop_ends_at_the_limit(tmp_path: Path) -> None:
    rows, seconds, _ = verify(write(tmp_path, "while True: pass"), "--timeout", "3")
    assert {row["verdict"] for row in rows} == {"not-runnable"}
    assert "--timeout" in rows[0]["error"]
    assert seconds < 30


def test_a_flood_of_output_is_not_kept(tmp_path: Path) -> None:
    body = "import sys; [print('x' * 10_000, file=s) for s in (sys.stdout, sys.stderr) for _ in range(5_000)]"
    rows, _, status = verify(write(tmp_path, body), "--timeout", "60")
    assert {row["verdict"] for row in rows} == {"clean"}
    assert status == 0


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("import no_such_module_anywhere\n", "ModuleNotFoundError"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("raise SystemExit\n", "SystemExit"),
        ("import os; os._exit(1)\n", "status 1"),
        ("while True: pass\n", "--timeout"),
    ],
)
def test_a_file_that_cannot_be_imported(tmp_path: Path, before: str, said: str) -> None:
    limit = "3" if said == "--timeout" else "60"
    rows, _, status = verify(write(tmp_path, before=before), "--timeout", limit)
    assert {row["verdict"] for row in rows} == {"not-runnable"}
    assert all(said in row["error"] for row in rows)
    assert status == 2


def test_a_process_that_it_leaves_behind_is_ended(tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    body = f"import subprocess; p = subprocess.Popen(['sleep', '300']); open({str(marker)!r}, 'w').write(str(p.pid))"
    verify(write(tmp_path, body), "--timeout", "60")
    pid = int(marker.read_text())
    time.sleep(0.2)
    assert not _alive(pid)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGTERM")
def test_being_terminated_ends_the_child_and_leaves_nothing(tmp_path: Path) -> None:
    marker, scratch = tmp_path / "pid", tmp_path / "scratch"
    scratch.mkdir()
    body = f"import os; open({str(marker)!r}, 'w').write(f'{{os.getpid()}} ')\n        while True: pass"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "amplint",
            "verify",
            f"{write(tmp_path, body)}::Target",
            "--isolated",
            "--run-on",
            "cpu",
        ],
        env={**os.environ, "TMPDIR": str(scratch)},
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while not (marker.exists() and marker.read_text().endswith(" ")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"Traceback" not in said
    assert not _alive(int(marker.read_text()))
    assert not list(scratch.iterdir())


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_relative_search_path_is_that_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "of_the_project.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["lib", os.environ.get("PYTHONPATH", "")]))
    rows, _, _ = verify(write(tmp_path, before="import of_the_project\n"))
    assert {row["verdict"] for row in rows} == {"clean"}


def test_nothing_is_left_beside_the_file(tmp_path: Path) -> None:
    body = "open('written.txt', 'w').write('x'); import os; os.environ['AMPLINT_TEST'] = '1'; os.chdir('/')"
    path = write(tmp_path, body)
    before = dict(os.environ)
    verify(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["target.py"]
    assert not Path("written.txt").exists()
    assert dict(os.environ) == before
