"""Fixes: which are applied, in what order, and what reaches the disk."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Completed
from hypothesis import given
from hypothesis import strategies as st

from amplint.finding import Applicability, Certainty, Edit, Finding, Fix, Severity
from amplint.fix import FixError, apply_edits, without_overlaps, write_atomically
from amplint.source import Location, Source, Span

Run = Callable[..., Completed]


def edit(row: int, start: int, end: int, content: str) -> Edit:
    return Edit(Span(Location(row, start), Location(row, end)), content)


def finding(*edits: Edit, code: str = "TOY101") -> Finding:
    fix = Fix(Applicability.SAFE, "fix", edits)
    span = max(edits).span
    return Finding(code, "n", "m", Severity.ERROR, Certainty.PROVEN, Path("/x.py"), span, (), "cuda", fix=fix)


def test_safe_fixes_only_unless_asked(project: Path, run: Run) -> None:
    file = project / "a.py"
    file.write_text("import torch\nx.half(); x.bfloat16(); x.shown()\n")
    result = run("check", "--fix")
    assert result.status == 1
    assert file.read_text() == "import torch\nx.to(torch.float16); x.bfloat16(); x.shown()\n"
    assert "Fixed 1 finding in 1 file." in result.stderr
    assert "TOY106" in result.stdout
    assert "TOY101" not in result.stdout
    run("check", "--fix", "--unsafe-fixes")
    assert file.read_text() == "import torch\nx.to(torch.float16); x; x.shown()\n"


def test_all_fixed_is_status_0(project: Path, run: Run) -> None:
    file = project / "a.py"
    file.write_text("x.half()\n")
    assert run("check", "--fix").status == 0
    assert run("check").status == 0
    file.write_text("x.half()\n")
    assert run("check", "--fix", "--exit-non-zero-on-fix").status == 1
    assert run("check", "--fix", "--exit-non-zero-on-fix").status == 0


def test_the_same_import_is_added_once(project: Path, run: Run) -> None:
    file = project / "a.py"
    file.write_text("import os\nx.half()\ny.half()\n")
    run("check", "--fix")
    assert file.read_text() == "import os\nfrom torch import float16\nx.to(float16)\ny.to(float16)\n"


def test_overlapping_fixes_take_turns(project: Path, run: Run) -> None:
    file = project / "a.py"
    file.write_text("import torch\nf(x.half()).half()\nx.half().half().half()\n")
    assert run("check", "--fix").status == 0
    assert file.read_text() == (
        "import torch\nf(x.to(torch.float16)).to(torch.float16)\n"
        "x.to(torch.float16).to(torch.float16).to(torch.float16)\n"
    )
    before = file.read_bytes()
    run("check", "--fix")
    assert file.read_bytes() == before


def test_a_fix_that_breaks_the_file_is_dropped_and_blamed(project: Path, run: Run) -> None:
    file = project / "a.py"
    file.write_text("import torch\nx.half()\nx.breaks()\n")
    result = run("check", "--fix")
    assert result.status == 2
    assert "internal error in TOY104" in result.stderr
    assert file.read_text() == "import torch\nx.to(torch.float16)\nx.breaks()\n"


def test_a_fix_that_cures_nothing_is_undone(project: Path, run: Run) -> None:
    file = project / "a.py"
    file.write_text("import torch\nx.half()\nx.useless()\n")
    diff = run("check", "--diff")
    assert diff.status == 1
    assert "useless" not in diff.stdout.replace(" x.useless()", "")
    result = run("check", "--fix")
    assert result.status == 1
    assert "internal error" not in result.stderr
    assert result.stderr.startswith("Fixed 1 finding in 1 file.\nFound 1 finding")
    assert "TOY105" in result.stdout
    assert file.read_text() == "import torch\nx.to(torch.float16)\nx.useless()\n"
    assert run("check").stdout == result.stdout


def test_diff_writes_nothing(project: Path, run: Run) -> None:
    file = project / "a.py"
    file.write_text("import torch\nx.half()")
    result = run("check", "--diff")
    assert result.status == 1
    assert result.stdout == (
        "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n import torch\n-x.half()\n\\ No newline at end of file\n"
        "+x.to(torch.float16)\n\\ No newline at end of file\n"
    )
    assert file.read_text() == "import torch\nx.half()"
    file.write_text("x.double()\n")
    assert (run("check", "--diff").status, run("check", "--diff").stdout) == (1, "")
    file.write_text("x\n")
    assert run("check", "--diff").status == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"import torch\r\nx.half()\r\n", b"import torch\r\nx.to(torch.float16)\r\n"),
        (b"x.half()\r\n", b"from torch import float16\r\nx.to(float16)\r\n"),
        (b"\xef\xbb\xbfx.half()\n", b"\xef\xbb\xbffrom torch import float16\nx.to(float16)\n"),
        (
            b"# coding: latin-1\ns = '\xe9'; x.half()\n",
            b"# coding: latin-1\nfrom torch import float16\ns = '\xe9'; x.to(float16)\n",
        ),
        (b"import torch\nx.half()", b"import torch\nx.to(torch.float16)"),
    ],
)
def test_bytes_are_kept(project: Path, run: Run, before: bytes, after: bytes) -> None:
    file = project / "a.py"
    file.write_bytes(before)
    assert run("check", "--fix").status == 0
    assert file.read_bytes() == after


def test_mode_and_link_are_kept(project: Path, run: Run) -> None:
    target = project / "real.txt"
    target.write_text("x.half()\n")
    target.chmod(0o750)
    link = project / "a.py"
    link.symlink_to(target)
    run("check", "--fix", "a.py")
    assert link.is_symlink()
    assert "float16" in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o750


def test_interrupted_write_leaves_the_original(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project / "a.py"
    file.write_text("x.half()\n")

    def fail(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    result = run("check", "--fix")
    assert result.status == 2
    assert "cannot write" in result.stderr
    assert "Fixed" not in result.stderr
    assert "TOY101" in result.stdout
    assert file.read_text() == "x.half()\n"
    assert [path.name for path in project.iterdir()] == ["a.py"]


KILLED = """
import os, signal, sys, threading, time
from pathlib import Path
from amplint.fix.writing import put

parent, replace = os.getpid(), os.replace
file = Path(sys.argv[1])

def kill_and_replace(source, target):
    os.killpg(os.getpgid(parent), signal.SIGKILL)
    time.sleep(0.1)
    replace(source, target)

os.replace = kill_and_replace
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
put(file, b"fixed", 0o644)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no children to write")
def test_a_kill_of_all_of_it_while_a_file_is_named_leaves_nothing_behind(project: Path) -> None:
    file = project / "a.py"
    file.write_bytes(b"old")
    command = [sys.executable, "-W", "error", "-c", KILLED, str(file)]
    # The output ends with the last of the processes.
    done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
    assert {path.name: path.read_bytes() for path in project.iterdir()} == {"a.py": b"fixed"}


def _end_child(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def _refuse(*_: object) -> None:
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no children to write")
def test_a_child_that_is_ended_is_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project / "a.py"
    file.write_bytes(b"old")
    monkeypatch.setattr(os, "setsid", _end_child)
    with pytest.raises(FixError, match=r"cannot write .*a\.py: ended by signal 15"):
        write_atomically(file, b"old", b"fixed")
    assert {path.name: path.read_bytes() for path in project.iterdir()} == {"a.py": b"old"}


def test_a_file_is_written_where_no_child_is_to_be_had(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project / "a.py"
    file.write_bytes(b"old")
    monkeypatch.setattr(os, "fork", _refuse, raising=False)
    write_atomically(file, b"old", b"fixed")
    assert {path.name: path.read_bytes() for path in project.iterdir()} == {"a.py": b"fixed"}


@pytest.mark.skipif(not hasattr(signal, "SIGCHLD"), reason="there are no children to write")
def test_a_process_that_ignores_its_children_knows_what_came_of_them(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project / "a.py"
    file.write_bytes(b"old")
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        write_atomically(file, b"old", b"fixed")
        assert file.read_bytes() == b"fixed"
        monkeypatch.setattr(os, "replace", _refuse)
        with pytest.raises(FixError, match="cannot write"):
            write_atomically(file, b"fixed", b"newer")
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert {path.name: path.read_bytes() for path in project.iterdir()} == {"a.py": b"fixed"}


def test_a_file_changed_meanwhile_is_left_alone(project: Path) -> None:
    file = project / "a.py"
    file.write_bytes(b"new")
    with pytest.raises(FixError, match="changed while"):
        write_atomically(file, b"old", b"fixed")
    assert file.read_bytes() == b"new"


def test_overlap_is_by_position() -> None:
    source = Source(Path("/x.py"), b"abcdefgh\n")
    one, two, three = finding(edit(1, 1, 4, "x")), finding(edit(1, 3, 6, "y")), finding(edit(1, 7, 8, "z"))
    assert without_overlaps([three, two, one], source) == [one, three]


def test_same_insertion_is_shared_and_another_is_not() -> None:
    source = Source(Path("/x.py"), b"abcdefgh\n")
    imports = edit(1, 1, 1, "i")
    one, two = finding(imports, edit(1, 3, 4, "x")), finding(imports, edit(1, 6, 7, "y"))
    other = finding(edit(1, 1, 1, "j"), edit(1, 8, 9, "z"))
    assert without_overlaps([one, two, other], source) == [one, two]
    fixes = [edit for f in (one, two) if f.fix for edit in f.fix.edits]
    assert apply_edits(source, fixes).text == "iabxdeygh\n"


@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(0, 4), st.text("abé\n", max_size=3)), max_size=8),
    st.sampled_from(["\n", "\r\n"]),
)
def test_chosen_edits_never_overlap(raw: list[tuple[int, int, str]], newline: str) -> None:
    """Each chosen edit replaces exactly its own text: the rest of the file keeps its order and content."""
    text = "0123456789abcdefghijklmnop"
    source = Source(Path("/x.py"), f"{text}{newline}".encode())
    findings = [finding(edit(1, start, start + length, content)) for start, length, content in raw]
    chosen = without_overlaps(findings, source)
    edits = {e for f in chosen if f.fix for e in f.fix.edits}
    expected = list(text)
    for e in edits:
        start, end = e.span.start.column - 1, e.span.end.column - 1
        replaced = expected[start:end]
        assert "".join(replaced) == text[start:end]
    result = apply_edits(source, edits).text
    removed = sum(e.span.end.column - e.span.start.column for e in edits)
    added = sum(len(e.content.replace("\n", newline)) for e in edits)
    assert len(result) == len(source.text) - removed + added
