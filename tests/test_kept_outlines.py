"""A file is found by others that import it as it was before it was analysed itself, unless it has another content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.infer.names.namespace import Project
from amplint.infer.state.facts import Mismatch
from amplint.infer.state.record import Recorder
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MAKES = b"import torch\ndef make(x):\n    return torch.zeros(3, dtype=torch.float32)\n"
LOW = MAKES.replace(b"float32", b"float16")
ASKS = b"""
import torch
from made import make
def f(x: torch.Tensor):
    return torch.mm(x, make(x))
"""


def source(folder: Path, name: str, data: bytes) -> Source:
    path = folder / name
    path.write_bytes(data)
    return Source(path, data)


def test_one_that_is_the_same_is_the_one_that_was_found(tmp_path: Path) -> None:
    asks, makes = source(tmp_path, "asks.py", ASKS), source(tmp_path, "made.py", MAKES)
    project = Project()
    found = project.find("made", project.begin(asks))
    whole = project.begin(makes)
    assert whole is not found
    assert project.find("made", project.begin(asks)) is found


def test_one_with_another_content_is_read_again(tmp_path: Path) -> None:
    asks, makes = source(tmp_path, "asks.py", ASKS), source(tmp_path, "made.py", MAKES)
    project = Project()
    found = project.find("made", project.begin(asks))
    project.begin(Source(makes.path, LOW))
    makes.path.write_bytes(LOW)
    again = project.find("made", project.begin(asks))
    assert found is not None
    assert again is not None
    assert again is not found
    assert again.source.data == LOW


def disagreeing(file: Source) -> list[int]:
    """The lines at which operands disagree."""
    scenarios = (CONTROL, *DEFAULT_SCENARIOS)
    facts = analyse(file, scenarios=scenarios, device="cuda", torch_version=(2, 13))
    return [event.what.node.lineno for event in facts.trace if isinstance(event.what, Mismatch)]


def test_facts_do_not_depend_on_what_was_analysed_between(tmp_path: Path) -> None:
    asks, makes = source(tmp_path, "asks.py", ASKS), source(tmp_path, "made.py", MAKES)
    alone = disagreeing(asks)
    assert alone == [5]
    disagreeing(makes)
    assert disagreeing(asks) == alone


COPIES = b"""
import torch
def fill(given):
    made = given.copy()
    made["a"] = torch.zeros(3)
    return made["a"]
def f(x: torch.Tensor):
    given = {"b": x}
    return fill(given), fill(given)
"""


def test_a_call_that_fills_a_copy_which_it_made_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repeated: list[int] = []
    monkeypatch.setattr(Recorder, "repeated", lambda self, frame, call: repeated.append(call))
    disagreeing(source(tmp_path, "copies.py", COPIES))
    assert repeated
