"""Reports as people and programs read them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from amplint.finding import (
    Applicability,
    Cause,
    Certainty,
    Edit,
    Finding,
    Fix,
    Severity,
    normalised,
    with_fingerprints,
)
from amplint.report import Context, plain, render
from amplint.report.columns import columns, shown
from amplint.source import Location, Source, Span

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Completed


def span(row: int, start: int, end_row: int, end: int) -> Span:
    return Span(Location(row, start), Location(end_row, end))


def find(source: Source, text: str) -> Span:
    """The span of the first occurrence of a text within one line."""
    for row, line in enumerate(source.lines, 1):
        if text in line:
            return span(row, line.index(text) + 1, row, line.index(text) + 1 + len(text))
    raise AssertionError(text)


def full(finding: Finding, *sources: Source) -> str:
    return plain(render("full", [finding], Context({}, {source.path: source for source in sources})))


@pytest.fixture
def model(project: Path) -> Source:
    lines = ["import torch", "", "def f(x, idx):", "    out = torch.zeros_like(x)", "    y = x.bfloat16()"]
    lines += ["    a = 1"] * 5 + ["    out.index_add_(0, idx, y)", "    return out", ""]
    return Source(project / "model.py", "\n".join(lines).encode())


@pytest.fixture
def finding(model: Source) -> Finding:
    place = find(model, "out.index_add_(0, idx, y)")
    before = Location(place.end.row, place.end.column - 1)
    fix = Fix(Applicability.SAFE, "Cast the source", (Edit(Span(before, before), ".to(out.dtype)"),))
    causes = (
        Cause(model.path, find(model, "torch.zeros_like(x)"), "float32: created with the dtype of x"),
        Cause(model.path, find(model, "x.bfloat16()"), "bfloat16: cast here"),
        Cause(model.path, place, "both meet here"),
    )
    return Finding(
        "AMP105",
        "index-write",
        "index_add_ writes bfloat16 into float32",
        Severity.ERROR,
        Certainty.PROVEN,
        model.path,
        place,
        ("autocast-bf16", "fp16"),
        "cuda",
        causes,
        fix,
    )


def test_full(finding: Finding, model: Source) -> None:
    assert full(finding, model) == (
        "error[AMP105] index-write: index_add_ writes bfloat16 into float32\n"
        "  --> model.py:11:5\n"
        "   |\n"
        " 4 |     out = torch.zeros_like(x)\n"
        "   |           ------------------- float32: created with the dtype of x\n"
        " 5 |     y = x.bfloat16()\n"
        "   |         ------------ bfloat16: cast here\n"
        "...\n"
        "11 |     out.index_add_(0, idx, y)\n"
        "   |     ^^^^^^^^^^^^^^^^^^^^^^^^^ both meet here\n"
        "   |\n"
        "   = scenarios: autocast-bf16, fp16 (device cuda)\n"
        "   = help: Cast the source (safe fix: --fix)\n"
        "10 |     a = 1\n"
        "11 -     out.index_add_(0, idx, y)\n"
        "11 +     out.index_add_(0, idx, y.to(out.dtype))\n"
        "12 |     return out\n"
        "\n"
    )


def test_full_with_a_cause_in_another_file(project: Path) -> None:
    here = Source(project / "a.py", b"f(x)\n")
    there = Source(project / "b.py", b"\n\nx = torch.eye(3)\n")
    finding = Finding(
        "AMP104",
        "mixed-operands",
        "m",
        Severity.WARNING,
        Certainty.LIKELY,
        here.path,
        span(1, 1, 1, 5),
        ("fp16",),
        "cpu",
        (Cause(there.path, find(there, "torch.eye(3)"), "float32: made without dtype"),),
    )
    assert full(finding, here, there) == (
        "warning[AMP104] mixed-operands: m\n"
        " --> a.py:1:1\n"
        "  |\n"
        "1 | f(x)\n"
        "  | ^^^^\n"
        "  |\n"
        " --> b.py:3:5\n"
        "  |\n"
        "3 | x = torch.eye(3)\n"
        "  |     ------------ float32: made without dtype\n"
        "  |\n"
        "  = scenarios: fp16 (device cpu)\n"
        "  = certainty: likely\n"
        "\n"
    )


def test_full_with_tabs_wide_characters_and_several_lines(project: Path) -> None:
    source = Source(project / "a.py", "\tw = '日本'; f(\n\t\ta,\n\t\tb,\n\t)\n".encode())
    finding = Finding(
        "AMP104",
        "n",
        "m",
        Severity.ERROR,
        Certainty.PROVEN,
        source.path,
        span(1, 12, 4, 3),
        (),
        "cuda",
        (Cause(source.path, span(1, 12, 4, 3), "here"),),
    )
    assert full(finding, source) == (
        "error[AMP104] n: m\n"
        " --> a.py:1:12\n"
        "  |\n"
        "1 |     w = '日本'; f(\n"
        "  |                 ^^\n"
        "...\n"
        "4 |     )\n"
        "  |     ^ here\n"
        "  |\n"
        "\n"
    )


@pytest.mark.parametrize(
    ("text", "printed", "wide"),
    [
        ("abc", "abc", 3),
        ("\tx", "    x", 5),
        ("ab\tx", "ab  x", 5),
        ("日本", "日本", 4),
        ("日\tx", "日  x", 5),
        ("e\u0301x", "e\u0301x", 2),
        ("a\x0cb", "a?b", 3),
        ("a\x1b[31m", "a?[31m", 6),
    ],
)
def test_columns(text: str, printed: str, wide: int) -> None:
    assert shown(text) == printed
    assert columns(text) == wide


def test_json(finding: Finding, model: Source) -> None:
    (finding,) = with_fingerprints([finding], model)
    (document,) = json.loads(plain(render("json", [finding], Context({}))))
    assert list(document) == [
        "code",
        "name",
        "message",
        "severity",
        "certainty",
        "filename",
        "cell",
        "location",
        "end_location",
        "scenarios",
        "device",
        "causes",
        "fix",
        "also",
        "doubts",
        "fingerprint",
        "url",
    ]
    assert document["location"] == {"row": 11, "column": 5}
    assert document["end_location"] == {"row": 11, "column": 30}
    assert document["filename"] == str(model.path)
    assert document["cell"] is None
    assert list(document["causes"][0]) == ["filename", "location", "end_location", "message"]
    assert document["fix"] == {
        "applicability": "safe",
        "message": "Cast the source",
        "edits": [
            {
                "content": ".to(out.dtype)",
                "location": {"row": 11, "column": 29},
                "end_location": {"row": 11, "column": 29},
            }
        ],
    }


def test_concise(finding: Finding) -> None:
    text = plain(render("concise", [finding], Context({})))
    assert text == "model.py:11:5: AMP105 index_add_ writes bfloat16 into float32 [autocast-bf16, fp16]\n"


def test_fingerprints_survive_edits_elsewhere(project: Path, run: Callable[..., Completed]) -> None:
    def fingerprints(text: str) -> list[str]:
        (project / "a.py").write_text(text)
        return [f["fingerprint"] for f in json.loads(run("check", "--output-format", "json").stdout)]

    first = fingerprints("x.double()\nx.double()\n")
    assert len(set(first)) == 2
    assert fingerprints("# new\n\nx.double()\nif y:\n    x.double()\n") == first
    assert fingerprints("x.double()\n") == first[:1]
    assert fingerprints("y.double()\nx.double()\nx.double()\n")[1:] == first
    assert fingerprints("z = f(x.double() + 1, (  # why\n    x  .double(\n    )))\n") == first
    assert not {*fingerprints("y.double()\nx.half()\n")} & {*first}


def test_fingerprints_say_nothing_of_rows_and_words(finding: Finding, model: Source) -> None:
    (before,) = with_fingerprints([finding], model)
    (other,) = with_fingerprints([replace(finding, message="as in line 7")], model)
    assert other.fingerprint == before.fingerprint
    (code,) = with_fingerprints([replace(finding, code="AMP104")], model)
    assert code.fingerprint != before.fingerprint


@pytest.mark.parametrize(
    ("written", "formatted"),
    [
        ("f(a,b)", "f(\n    a,  # first\n    b,\n)"),
        ("x[1:2, 'k'].to(dtype = torch.float16)", 'x[1:2, "k"].to(dtype=torch.float16)'),
        ("a if b else c", "a \\\n    if b\n    else c"),
        ("F'{x}'", 'f"{x}"'),
        ("f('''a''')", 'f("""a""")'),
        ("f(x)if y else'z'", "f(x) if y else 'z'"),
    ],
)
def test_a_formatter_changes_no_fingerprint(written: str, formatted: str) -> None:
    assert normalised(written) == normalised(formatted)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("not a", "nota"),
        ("f('a b')", "f('ab')"),
        ("f('# a')", "f('')"),
        ('f("it\'s")', "f('its')"),
        ("b'a'", "'a'"),
        ("f(a, b)", "f(b, a)"),
        ("x.float()", "x.double()"),
    ],
)
def test_what_differs_is_told_apart(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


def test_summary(project: Path, run: Callable[..., Completed]) -> None:
    (project / "a.py").write_text("x.half(); x.double(); x.bfloat16()\n")
    (project / "b.py").write_text("")
    assert run("check").stderr == (
        "Found 3 findings (2 errors, 1 warning) in 1 of 2 files; 1 fixable with --fix, 1 more with --unsafe-fixes.\n"
    )


def test_colour_on_a_terminal_only(finding: Finding, monkeypatch: pytest.MonkeyPatch, model: Source) -> None:
    import io
    import sys

    from amplint.cli.main import print_lines

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    lines = render("full", [finding], Context({}, {model.path: model}))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "20")
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    print_lines(lines)
    assert "\x1b[" in terminal.getvalue()
    assert terminal.getvalue().count("\n") == plain(lines).count("\n")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    print_lines(lines)
    assert terminal.getvalue() == plain(lines)
