"""The process with torch that those of jobs are forked from: one for many jobs, and nothing of a job stays in it."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from amplint.verify import warm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are new ones elsewhere")


@pytest.fixture(scope="module")
def one() -> Iterator[None]:
    """All are forked from one process: importing torch takes longer than all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warm, "_idle", idle := [])
        yield
        while idle:
            idle.pop().end()


class Runs:
    """Starts programs in the place of jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()

    def start(self, program: str, **variables: str) -> tuple[warm.Forked, int]:
        """The process, and where its output can be read."""
        job = self.folder / "job.py"
        job.write_text(f"import os, sys\n{program}")
        reading, writing = os.pipe()
        process = warm.start("exec(open(sys.argv[1]).read())", str(job), self.work, variables, writing)
        os.close(writing)
        return process, reading

    def __call__(self, program: str, **variables: str) -> tuple[int, str]:
        """How it ended, and what it printed."""
        process, reading = self.start(program, **variables)
        with open(reading) as output:
            return process.wait(), output.read()


@pytest.fixture
def run(tmp_path: Path, one: None) -> Runs:
    return Runs(tmp_path)


@pytest.fixture
def bare(run: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    """Runs where torch cannot be imported: they begin and end at once, in processes that no other test has."""
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "torch.py").write_text("raise OSError('no library')")
    path = os.pathsep.join([str(tmp_path / "path"), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setattr(warm, "_idle", idle := [])
    yield run
    while idle:
        idle.pop().end()


PARENT = "print(os.getppid(), 'torch' in sys.modules)"


def test_jobs_are_forked_from_one_process_that_has_torch(run: Runs) -> None:
    first, second = run(PARENT), run(PARENT)
    assert first == second
    status, said = first
    assert (status, said.split()[1]) == (0, "True")
    assert int(said.split()[0]) != os.getpid()


def test_what_a_job_leaves_behind_is_gone(run: Runs) -> None:
    run("import torch; torch.set_default_dtype(torch.half); torch.rand(3); sys.path.append('x'); os.environ['A'] = 'b'")
    asked = "import torch; print(torch.get_default_dtype(), 'x' in sys.path, 'A' in os.environ, torch.rand(1).item())"
    kept = run(asked)
    assert kept[1].startswith("torch.float32 False False ")
    assert run(asked) == kept


def test_a_fork_runs_backward_and_in_threads(run: Runs) -> None:
    program = (
        "import torch; x = torch.ones(512, 512, requires_grad=True); (x @ x).sum().backward(); print(x.grad.sum())"
    )
    assert run(program) == run(program) == (0, "tensor(2.6844e+08)\n")


@pytest.mark.parametrize(
    ("program", "ended", "said"),
    [
        ("sys.exit(3)", 3, ""),
        ("os._exit(4)", 4, ""),
        ("os.kill(os.getpid(), 11)", -signal.SIGSEGV, ""),
        ("1 / 0", 1, "ZeroDivisionError: division by zero"),
        ("import atexit; atexit.register(print, 'last'); print('first')", 0, "last"),
    ],
)
def test_it_ends_as_a_process_of_its_own_does(bare: Runs, program: str, ended: int, said: str) -> None:
    for _ in range(2):
        status, output = bare(program)
        assert status == ended
        assert output.rstrip().endswith(said)


def test_each_has_its_folder_group_and_variables(bare: Runs, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    asked = (
        "import tempfile; print(os.getcwd(), tempfile.gettempdir(), os.getpgid(0) == os.getpid(), os.environ['MORE'])"
    )
    status, said = bare(asked, TMPDIR=str(temporary), MORE="a=b")
    assert (status, said) == (0, f"{tmp_path / 'work'} {temporary} True a=b\n")


def test_torch_that_cannot_be_imported_is_for_the_job_to_say(bare: Runs) -> None:
    status, said = bare("import torch")
    assert status == 1
    assert said.endswith("OSError: no library\n")


def test_another_environment_has_another_process(bare: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    before = bare(PARENT)
    assert bare(PARENT) == before
    monkeypatch.setenv("ANOTHER", "1")
    assert bare(PARENT) != before
    assert bare("print(os.environ['ANOTHER'])") == (0, "1\n")


def test_where_the_process_is_gone_a_job_runs_all_the_same(bare: Runs) -> None:
    parent = int(bare(PARENT)[1].split()[0])
    os.kill(parent, signal.SIGKILL)
    assert bare(PARENT) == (0, f"{os.getpid()} False\n")
    assert int(bare(PARENT)[1].split()[0]) not in (parent, os.getpid())


def test_a_job_ends_with_the_process_that_asked_for_it(bare: Runs) -> None:
    process, reading = bare.start("os.write(1, b'x')\nwhile True: pass")
    assert os.read(reading, 1) == b"x"
    process._warm.side.close()  # as the system does for a process that is killed
    assert os.read(reading, 1) == b""
    os.close(reading)
