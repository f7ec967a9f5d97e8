"""Fixes that cure nothing, that make findings, and that concern other files: what stays is what a check then finds."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import amplint
from hypothesis import given
from hypothesis import strategies as st

from amplint import contents
from amplint.finding import Applicability, Certainty, Edit, FileResult, Finding, Fix, Severity
from amplint.fix import fix_source
from amplint.fix.edits import Moves, apply_changes, changes
from amplint.fix.rounds import fix_files
from amplint.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

WORD = re.compile(r"\b[a-z]+\b")
PATH = Path("/x.py")


def checker(rewrites: Mapping[str, str]) -> Callable[[Source], FileResult]:
    """A check that finds each word which has a rewrite, the code after the word, and puts the rewrite in its place;
    an empty one is no fix."""

    def check(source: Source) -> FileResult:
        found = []
        for match in WORD.finditer(source.text):
            if match[0] in rewrites:
                span = Span(source.location(match.start()), source.location(match.end()))
                new = rewrites[match[0]]
                fix = Fix(Applicability.SAFE, "fix", (Edit(span, new),)) if new else None
                code, path = match[0].upper(), source.path
                found.append(Finding(code, "n", "m", Severity.ERROR, Certainty.PROVEN, path, span, (), "cuda", fix=fix))
        return FileResult(source.path, tuple(found))

    return check


def fixed(text: str, rewrites: Mapping[str, str]) -> tuple[str, int]:
    check = checker(rewrites)
    source = Source(PATH, text.encode())
    outcome = fix_source(source, check(source), Applicability.SAFE, check)
    assert outcome.settled
    assert outcome.result == check(outcome.source)
    again = fix_source(outcome.source, outcome.result, Applicability.SAFE, check)
    assert again.source.text == outcome.source.text
    assert again.fixed == 0
    return outcome.source.text, outcome.fixed


@pytest.mark.parametrize(
    ("rewrites", "text", "after", "count"),
    [
        ({"bad": "good"}, "bad; x; bad", "good; x; good", 2),
        ({"bad": "good", "stays": "(stays)"}, "bad; stays; bad", "good; stays; good", 2),
        ({"bad": "good", "trades": "worse", "worse": ""}, "bad; trades; bad; worse", "good; trades; good; worse", 2),
        ({"first": "second", "second": "third", "third": "good"}, "first; x", "good; x", 1),
        ({"ping": "pong", "pong": "ping"}, "ping; x", "ping; x", 0),
        ({"doubles": "bad + bad", "bad": "good"}, "doubles", "good + good", 1),
        ({"doubles": "bad + doubles", "bad": "good"}, "doubles", "doubles", 0),
        ({"bad": "good"}, "bad\r\nbad\r\nbad\r\n", "good\r\ngood\r\ngood\r\n", 3),
    ],
)
def test_only_what_cures_is_applied(rewrites: dict[str, str], text: str, after: str, count: int) -> None:
    assert fixed(text, rewrites) == (after, count)


def test_one_harmful_fix_among_many_costs_few_checks() -> None:
    check = checker({"bad": "good", "trades": "worse", "worse": ""})
    asked = 0

    def count(source: Source) -> FileResult:
        nonlocal asked
        asked += 1
        return check(source)

    words = ["bad"] * 200
    words[77] = "trades"
    source = Source(PATH, "; ".join(words).encode())
    outcome = fix_source(source, check(source), Applicability.SAFE, count)
    assert outcome.source.text == "; ".join("good" if word == "bad" else word for word in words)
    assert (outcome.fixed, outcome.broken) == (199, ())
    assert asked < 30


def test_what_breaks_the_file_is_blamed_alone() -> None:
    check = checker({"bad": "good", "breaks": ")("})
    source = Source(PATH, b"bad; breaks; bad")
    outcome = fix_source(source, check(source), Applicability.SAFE, check)
    assert outcome.source.text == "good; breaks; good"
    assert outcome.broken == ("BREAKS",)


@given(
    st.text("ab\n", min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4), st.text("xyz", max_size=3)), max_size=5),
)
def test_places_move_with_their_text(text: str, raw: list[tuple[int, int, str]]) -> None:
    source = Source(PATH, text.encode())
    made: list[tuple[int, int, str]] = []
    for start, length, new in sorted(raw):
        if start + length <= len(text) and (not made or start > made[-1][1]):
            made.append((start, start + length, new))
    edits = [Edit(Span(source.location(start), source.location(end)), new) for start, end, new in made]
    made = changes(source, edits)
    after = apply_changes(source, made).text
    moves = Moves(made)
    for offset, character in enumerate(text):
        first, last = moves.after(offset)
        if any(start <= offset < end for start, end, _ in made):
            assert 0 <= first <= last <= len(after)
        else:
            assert after[last] == character
            assert after[first:last] in {new for start, _, new in made if start == offset} | {""}


def test_files_that_rest_on_fixed_ones_are_fixed_again(tmp_path: Path) -> None:
    """``b`` is right only as long as ``a`` says bad; both are fixed, and what is reported is how they then are."""
    a, b, c = (tmp_path / f"{name}.py" for name in "abc")
    a.write_bytes(b"bad")
    b.write_bytes(b"x")
    c.write_bytes(b"x")
    asked: list[tuple[str, bool]] = []

    def check(paths: Sequence[Path], held: Mapping[Path, bytes], *, fixing: bool) -> Iterator[FileResult]:
        with contents.standing(held):
            for path in paths:
                asked.append((path.name, fixing))
                data = contents.read(path)
                if path == b and contents.read(a) == b"good" and data == b"x":
                    yield FileResult(path, fixed=1, before=data, after=b"y", followed=frozenset({a}))
                elif data == b"bad":
                    yield FileResult(path, fixed=1, before=data, after=b"good")
                else:
                    yield FileResult(path, followed=frozenset({a}) if path == b else frozenset())

    results = {result.path: result for result in fix_files([b, a, c], check, write=False)}
    assert asked == [("b.py", True), ("a.py", True), ("c.py", True), ("b.py", True)]
    assert [(results[path].before, results[path].after) for path in (a, b, c)] == [
        (b"bad", b"good"),
        (b"x", b"y"),
        (b"", None),
    ]
    assert a.read_bytes() == b"bad"
    list(fix_files([b, a, c], check, write=True))
    assert [path.read_bytes() for path in (a, b, c)] == [b"good", b"y", b"x"]


def test_files_that_undo_each_other_come_to_an_end(tmp_path: Path) -> None:
    a = tmp_path / "a.py"
    a.write_bytes(b"0")
    rounds: list[bool] = []

    def check(paths: Sequence[Path], held: Mapping[Path, bytes], *, fixing: bool) -> Iterator[FileResult]:
        with contents.standing(held):
            for path in paths:
                rounds.append(fixing)
                data = contents.read(path)
                after = str(int(data) + 1).encode() if fixing else None
                yield FileResult(path, before=data, after=after, followed=frozenset({path}))

    *_, last = fix_files([a], check, write=True)
    assert rounds[-1] is False
    assert last.before == b"0"
    assert a.read_bytes() == last.after == str(rounds.count(True)).encode()


STATES = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4)

    def forward(self, x: torch.Tensor):
        h = torch.zeros(1, 2, 4).to(x.device)
        c = torch.zeros(1, 2, 4).to(x.device)
        return self.lstm(x, (h, c))
"""


def test_a_fix_that_was_tried_in_vain_is_not_offered_again(project: Path) -> None:
    """It makes one of two states half, and the layer takes none of another dtype."""
    (project / "net.py").write_text(STATES)
    offered = amplint("check", "net.py", "--scenario", "fp16", "--no-cache")
    assert offered.stderr.endswith("; 1 fixable with --fix --unsafe-fixes.\n")
    tried = amplint("check", "net.py", "--scenario", "fp16", "--no-cache", "--fix", "--unsafe-fixes")
    assert tried.stderr.endswith("; 1 with a fix that cures nothing or fails elsewhere, left undone.\n")
    assert (project / "net.py").read_text() == STATES


@pytest.mark.parametrize(("scenarios", "text"), [(("fp16",), "a"), (("autocast-fp16",), "b")])
def test_a_fix_that_fails_where_nothing_failed_stays_undone(scenarios: tuple[str, ...], text: str) -> None:
    """What it uncovers of kinds that are not told holds it up, but not in the scenarios that failed before."""

    def under(names: tuple[str, ...], check: Callable[[Source], FileResult]) -> Callable[[Source], FileResult]:
        def checked(source: Source) -> FileResult:
            found = check(source)
            return replace(found, findings=tuple(replace(one, scenarios=names) for one in found.findings))

        return checked

    source = Source(PATH, b"a, c")
    check = under(("autocast-fp16",), checker({"a": "b"}))
    kept_back = under(scenarios, checker({"b": "", "c": ""}))
    outcome = fix_source(source, check(source), Applicability.SAFE, check, kept_back)
    assert outcome.source.text == f"{text}, c"
