"""``amplint check --watch``: the real command in a process of its own, while files change."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from amplint.cli.watching import Watched
from amplint.config import Configurations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conftest import Completed

PATIENCE = 60.0
CLEARED = b"\x1b[2J"


class Watching:
    """A command that goes on, and what it has written so far."""

    def __init__(self, process: subprocess.Popen[bytes], output: int) -> None:
        self.process = process
        self._output = output
        self.text = b""

    def wait_for(self, text: str) -> bytes:
        """All that was written since the last wait, up to this text."""
        end = time.monotonic() + PATIENCE
        while text.encode() not in self.text:
            assert time.monotonic() < end, self.text.decode()
            if select.select([self._output], [], [], 0.1)[0]:
                self.text += os.read(self._output, 65536)
        head, found, self.text = self.text.partition(text.encode())
        return head + found

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)


@contextmanager
def watching(*arguments: str, terminal: bool = False) -> Iterator[Watching]:
    reader, writer = pty.openpty() if terminal else os.pipe()
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "amplint", "check", "--watch", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=writer,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    os.close(writer)
    try:
        yield Watching(process, reader)
    finally:
        process.kill()
        process.wait()
        os.close(reader)


READY = "watching for changes; Ctrl-C ends it"
BAD = "import torch\n\nwith torch.cuda.amp.autocast():\n    pass\n"


def test_a_fresh_report_after_each_change(project: Path) -> None:
    (project / "a.py").write_text(BAD)
    with watching("--output-format", "concise", "--select", "AMP601") as run:
        first = run.wait_for(READY)
        assert b"a.py:3:" in first
        assert CLEARED not in first
        (project / "notes.txt").write_text("no Python")
        (project / ".hidden").mkdir()
        (project / ".hidden" / "b.py").write_text(BAD)
        (project / "a.py").write_text("import torch\n")
        second = run.wait_for(READY)
        assert b"amplint: a.py changed: checking again\n" in second
        assert b"All checks passed" in second
        (project / "amplint.toml").write_text("selekt = []\n")
        assert b"did you mean 'select'?" in run.wait_for(READY)
        (project / "amplint.toml").unlink()
        run.wait_for(READY)
        (project / "b.py").write_text(BAD)
        assert b"b.py:3:" in run.wait_for(READY)
        assert run.interrupt() == 130
        assert b"Traceback" not in run.text


def test_a_terminal_is_cleared(project: Path) -> None:
    (project / "a.py").write_text(BAD)
    with watching("a.py", terminal=True) as run:
        assert run.wait_for(READY).startswith(CLEARED)
        (project / "a.py").write_text("import torch\n")
        again = run.wait_for(READY)
        assert again.count(CLEARED) == 1
        assert b"All checks passed" in again
        assert run.interrupt() == 130


SLOW = """
import os, pathlib, sys, time

if "--watch" not in sys.argv:
    pathlib.Path("started.partly").write_text(str(os.getpid()))
    pathlib.Path("started.partly").rename("started")
    time.sleep(600)


def all_rules():
    return []
"""


def test_an_interrupt_during_a_check_ends_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "slow_pack.py").write_text(SLOW)
    (project / "amplint.toml").write_text('plugins = ["slow_pack"]\n')
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(project), os.environ.get("PYTHONPATH", "")]))
    with watching() as run:
        end = time.monotonic() + PATIENCE
        while not (project / "started").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        assert run.interrupt() == 130
        with pytest.raises(ProcessLookupError):
            os.kill(int((project / "started").read_text()), 0)


def test_what_matters(project: Path) -> None:
    (project / "amplint.toml").write_text("")
    (project / "src" / "package").mkdir(parents=True)
    (project / "src" / "package" / "__init__.py").write_text("")
    watched = Watched([str(project / "src" / "package")], Configurations())
    assert watched.folders == [project]
    only = Watched([str(project / "src" / "package" / "__init__.py")], Configurations(isolated=True))
    assert only.folders == [project / "src"]
    from watchfiles import Change

    def matters(name: str) -> bool:
        return watched.matters(Change.modified, str(project / name))

    names = ("a.py", "src/b.pyi", "n.ipynb", "pyproject.toml", "requirements-dev.txt", "src/.gitignore")
    assert all(map(matters, names))
    assert not any(map(matters, ("a.txt", ".git/a.py", "venv/lib/a.py", "src/__pycache__/a.py", "README.md")))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-",), "it does not go with - (stdin)"),
        (("--diff",), "it does not go with --diff"),
        (("--output-file", "out.txt"), "it does not go with --output-file"),
        (("--show-files",), "it does not go with --show-files"),
        (("nowhere.py",), "no such file or directory: nowhere.py"),
        (("--select", "TOY110"), "unknown rule selector 'TOY110'"),
        (("--scenario", "fp61"), "unknown scenario 'fp61'"),
    ],
)
def test_wrong_usage(project: Path, run: Callable[..., Completed], arguments: tuple[str, ...], message: str) -> None:
    done = run("check", "--watch", *arguments)
    assert (done.status, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_watchfiles(project: Path, run: Callable[..., Completed], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    done = run("check", "--watch")
    assert (done.status, done.stderr) == (
        2,
        'amplint: error: --watch needs watchfiles: pip install "amplint[watch]"\n',
    )
