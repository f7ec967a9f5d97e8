"""The report as people read it on a terminal: what is wrapped, cut, linked and shown of a fix."""

from __future__ import annotations

import io
import re
import sys
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT, amplint

from amplint.finding import Applicability, Cause, Certainty, Edit, Finding, Fix, Severity
from amplint.report import Context, plain, render
from amplint.report.changes import change
from amplint.report.columns import clipped, columns, fold
from amplint.source import Location, Source, Span

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Completed

    Run = Callable[..., Completed]


def span(row: int, start: int, end: int) -> Span:
    return Span(Location(row, start), Location(row, end))


def find(source: Source, text: str) -> Span:
    """The span of the first occurrence of a text within one line."""
    row, line = next((row, line) for row, line in enumerate(source.lines, 1) if text in line)
    return span(row, line.index(text) + 1, line.index(text) + 1 + len(text))


def finding_of(source: Source, text: str, *causes: tuple[str, str], **more: object) -> Finding:
    """A finding at a text of a source, with causes at others."""
    at = [Cause(source.path, find(source, place), said) for place, said in causes]
    given = {"message": "this is what is wrong here", "scenarios": ("fp16",), **more}
    return Finding(
        code="AMP999",
        name="a-rule",
        severity=Severity.ERROR,
        certainty=Certainty.PROVEN,
        filename=source.path,
        span=find(source, text),
        device="cuda",
        causes=tuple(at),
        **given,  # type: ignore[arg-type]
    )


def full(finding: Finding, source: Source, width: int | None = None) -> str:
    return plain(render("full", [finding], Context({}, {source.path: source}, columns=width)))


@pytest.fixture
def source(project: Path) -> Source:
    long = "value = first_function(argument, other) + second_function(argument, other) + third(argument)"
    lines = ["short = one(x)", long, "last = two(short)"]
    return Source(project / "model.py", "".join(f"{line}\n" for line in lines).encode())


# ---- width --------------------------------------------------------------------------------------------------------


def test_words_are_wrapped_and_lines_cut(source: Source) -> None:
    finding = finding_of(
        source,
        "third(argument)",
        ("one(x)", "float32: because of this and that and the other"),
        message="a message of a few words more than fit",
        scenarios=("autocast-fp16", "autocast-bf16", "fp16", "bf16"),
    )
    assert full(finding, source, 60) == (
        "error[AMP999] a-rule: a message of a few words more than fit\n"
        " --> model.py:2:78\n"
        "  |\n"
        "1 | short = one(x)\n"
        "  |         ------\n"
        "  |         float32: because of this and that and the other\n"
        "2 | …) + second_function(argument, other) + third(argument)\n"
        "  |                                         ^^^^^^^^^^^^^^^\n"
        "  |\n"
        "  = scenarios: autocast-fp16, autocast-bf16, fp16, bf16\n"
        "               (device cuda)\n"
        "\n"
    )


@pytest.mark.parametrize("width", [45, 60, 79, 80, 120])
def test_no_line_is_longer_than_the_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """But for the lines that a fix changes, which are whole, and for words and paths that do not fit."""
    monkeypatch.chdir(ROOT)
    report = on_terminal(monkeypatch, width, "check", "fixtures/incidents").splitlines()
    narrow = [line for line in report if columns(line) > width]
    assert [
        line for line in narrow if not re.match(r" *\d+ [-+] |.*\S*fixtures/", line) and len(line.split()) > 3
    ] == []
    flat = amplint("check", "fixtures/incidents").stdout.splitlines()
    assert len(report) > len(flat) or width == 120
    assert {line for line in flat if re.match(r" *\d+ [-+] ", line)} <= {*report}


@pytest.mark.parametrize("width", [40, 60, 80])
def test_carets_stay_below_what_they_mark(source: Source, width: int) -> None:
    for marked in ("first_function(argument, other)", "second_function", "third(argument)"):
        lines = full(finding_of(source, marked), source, width).splitlines()
        (row,) = (
            number for number, line in enumerate(lines) if set(line[4:]) & {"^"} and not set(line[4:]) - {"^", " "}
        )
        carets = lines[row]
        assert lines[row - 1][carets.index("^") : carets.rindex("^") + 1] == marked


def test_nothing_is_wrapped_in_a_pipe(source: Source) -> None:
    finding = finding_of(source, "third(argument)", message=" ".join(["word"] * 60))
    lines = full(finding, source).splitlines()
    assert lines[0].endswith("word " * 59 + "word")
    assert source.line(2) in lines[3]


@pytest.mark.parametrize(
    ("text", "room", "first", "lines"),
    [
        ("a bb ccc", None, None, ["a bb ccc"]),
        ("a bb ccc", 4, None, ["a bb", "ccc"]),
        ("a bb ccc", 5, 1, ["a", "bb", "ccc"]),
        ("toolongaword b", 4, None, ["toolongaword", "b"]),
        ("toolong b", 8, 2, ["", "toolong", "b"]),
        ("日本 日本", 8, None, ["日本", "日本"]),
        ("日本 日本", 9, None, ["日本 日本"]),
    ],
)
def test_fold(text: str, room: int | None, first: int | None, lines: list[str]) -> None:
    assert fold(text, room, first) == lines


@pytest.mark.parametrize(
    ("text", "left", "room", "shown"),
    [
        ("abcdef", 0, None, "abcdef"),
        ("abcdef", 0, 6, "abcdef"),
        ("abcdef", 0, 5, "abcd…"),
        ("abcdef", 2, 4, "…def"),
        ("abcdef", 2, 3, "…d…"),
        ("日本日本", 0, 6, "日本…"),
        ("a日本日本", 1, 6, "…本…"),
    ],
)
def test_clipped(text: str, left: int, room: int | None, shown: str) -> None:
    assert clipped(text, left, room) == shown
    assert room is None or columns(shown) <= room


# ---- on a terminal ------------------------------------------------------------------------------------------------


def on_terminal(monkeypatch: pytest.MonkeyPatch, width: int, *arguments: str, **environment: str) -> str:
    """What the command prints to a terminal of some width, without colours unless the environment asks for them."""
    from amplint.cli.main import main

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"NO_COLOR": "1"} | environment).items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    with pytest.raises(SystemExit):
        main(list(arguments))
    monkeypatch.undo()
    return terminal.getvalue()


LINK = re.compile(r"\x1b\]8;[^;]*;([^\x1b]*)\x1b\\([^\x1b]*(?:\x1b\[[0-9;]*m[^\x1b]*)*)\x1b\]8;;\x1b\\")


@pytest.mark.parametrize("output_format", ["full", "concise", "grouped"])
def test_the_code_leads_to_the_rule(monkeypatch: pytest.MonkeyPatch, output_format: str) -> None:
    path = str(ROOT / "fixtures/incidents/lookup_free_quantizer/failing.py")
    arguments = ("check", "--output-format", output_format, path)
    coloured = on_terminal(monkeypatch, 80, *arguments, NO_COLOR="")
    found = LINK.findall(coloured)
    assert [url for url, _ in found] == ["https://amplint.readthedocs.io/en/latest/rules/AMP106/"]
    assert re.sub(r"\x1b\[[0-9;]*m", "", found[0][1]) in ("error[AMP106]", "AMP106")
    assert "\x1b" not in on_terminal(monkeypatch, 80, *arguments)
    assert "\x1b" not in amplint(*arguments).stdout


def test_an_address_with_blanks_is_no_style(source: Source) -> None:
    class Rule:
        url = "https://example.org/a page"

    assert Context({"AMP999": Rule()}).link(finding_of(source, "two")) == ""  # type: ignore[dict-item]


# ---- what is said -------------------------------------------------------------------------------------------------


def test_what_is_said_of_one_place_is_said_once(source: Source) -> None:
    causes = (("one(x)", "float16: by autocast"), ("one(x)", "here they meet"), ("one(x)", "here they meet"))
    text = full(finding_of(source, "two(short)", *causes), source)
    assert "  |         ------ float16: by autocast; here they meet\n" in text
    assert text.count("------") == 1


def test_causes_at_the_finding_itself_are_all_told(source: Source) -> None:
    text = full(finding_of(source, "two(short)", ("two(short)", "one"), ("two(short)", "another")), source)
    assert "^^^^^^^^^^ one; another\n" in text


def test_control_characters_in_messages_are_escaped(source: Source) -> None:
    text = full(finding_of(source, "two(short)", ("one(x)", "a\nb\x1b[0m"), message="c\x07"), source)
    assert "------ a\\nb\\x1b[0m\n" in text
    assert "a-rule: c\\x07\n" in text


# ---- fixes --------------------------------------------------------------------------------------------------------


def diff(source: Source, *edits: tuple[Span, str], room: int | None = None) -> str:
    return plain(change([Edit(place, content) for place, content in edits], source, 1, room))


def numbered(project: Path, count: int) -> Source:
    return Source(project / "a.py", "".join(f"line {row}\n" for row in range(1, count + 1)).encode())


def test_a_change_has_its_neighbours(project: Path) -> None:
    assert diff(numbered(project, 5), (span(3, 6, 7), "three")) == (
        "2 | line 2\n3 - line 3\n3 + line three\n4 | line 4\n"
    )


def test_changes_at_the_ends(project: Path) -> None:
    source = numbered(project, 2)
    first, after = Location(1, 1), Location(3, 1)
    assert diff(source, (Span(first, first), "import torch\n")) == "1 + import torch\n2 | line 1\n"
    assert diff(source, (Span(after, after), "end\n")) == "2 | line 2\n3 + end\n"
    assert diff(source, (Span(first, Location(2, 1)), "")) == "1 - line 1\n1 | line 2\n"


def test_rows_count_as_in_the_fixed_file(project: Path) -> None:
    source, first = numbered(project, 12), Location(1, 1)
    edits = ((Span(first, first), "import torch\n"), (span(4, 1, 5), "LINE"), (span(12, 1, 5), "LINE"))
    assert diff(source, *edits) == (
        " 1 + import torch\n"
        " 2 | line 1\n"
        "...\n"
        " 4 | line 3\n"
        " 5 - line 4\n"
        " 5 + LINE 4\n"
        " 6 | line 5\n"
        "...\n"
        "12 | line 11\n"
        "13 - line 12\n"
        "13 + LINE 12\n"
    )


def test_neighbouring_changes_share_what_is_between(project: Path) -> None:
    source = numbered(project, 6)
    edits = ((span(2, 1, 5), "LINE"), (span(4, 1, 5), "LINE"), (span(5, 1, 5), "LINE"))
    assert diff(source, *edits) == (
        "1 | line 1\n2 - line 2\n2 + LINE 2\n3 | line 3\n4 - line 4\n4 + LINE 4\n5 - line 5\n5 + LINE 5\n6 | line 6\n"
    )


def test_neighbours_are_cut_and_changes_are_not(source: Source) -> None:
    text = diff(source, (find(source, "two"), "another_function_of_a_long_name"), room=30)
    assert text == (
        "2 | value = first_function(argume…\n3 - last = two(short)\n3 + last = another_function_of_a_long_name(short)\n"
    )


def test_the_diff_is_what_fix_does(project: Path, run: Run) -> None:
    before = ["import os", "", "", "def f(x):", "    y = x.half()", "    return y", ""]
    (project / "a.py").write_text("\n".join(before))
    shown = run("check").stdout
    assert run("check", "--fix").status == 0
    after = (project / "a.py").read_text().split("\n")
    help_at = next(index for index, line in enumerate(shown.splitlines()) if "= help:" in line)
    lines = [
        (int(match[1]), match[2], match[3])
        for line in shown.splitlines()[help_at:]
        if (match := re.match(r" *(\d+) ([-+|]) ?(.*)$", line))
    ]
    assert all(after[row - 1] == text for row, sign, text in lines if sign in "+|")
    assert [text for _, sign, text in lines if sign == "-"] == ["    y = x.half()"]
    assert [text for _, sign, text in lines if sign == "+"] == [line for line in after if line not in before]


def test_a_fix_that_findings_share_is_shown_once(source: Source) -> None:
    edits = (Edit(find(source, "one"), "1"), Edit(find(source, "two"), "2"))
    other = Fix(Applicability.SAFE, "Count", (edits[0], Edit(find(source, "two"), "3")))
    fixes = [Fix(Applicability.SAFE, "Count", edits), Fix(Applicability.SAFE, "Count", (*edits,)), other]
    findings = [finding_of(source, text, fix=fix) for text, fix in zip(("one", "two", "last"), fixes, strict=True)]
    shown = plain(render("full", findings, Context({}, {source.path: source})))
    assert re.findall(r"= help: .*|3 \+ .*", shown) == [
        "= help: Count (safe fix: --fix)",
        "3 + last = 2(short)",
        "= help: Count (safe fix: --fix), as shown at line 1",
        "= help: Count (safe fix: --fix)",
        "3 + last = 3(short)",
    ]
