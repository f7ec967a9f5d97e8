"""Places and edits go from a notebook's program to its cells and back exactly, and a rewrite touches nothing else."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from notebooks import code, markdown, notebook

from amplint.finding import Applicability, Certainty, Edit, Finding, Fix, Severity
from amplint.fix import apply_edits
from amplint.notebook.document import Notebook
from amplint.notebook.layout import Layout
from amplint.notebook.narrowing import told_together
from amplint.notebook.placing import Placing, rows_of
from amplint.notebook.program import Program
from amplint.source import Location, Source, Span

PATH = Path("/a.ipynb")
MANY = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])

PLAIN = ("x = 1", "y = 'é☃'", "", "# nb0 ü", "s = '''\n  !ls\n'''", "t = (1,\n  2)", "z = 'a\\\\'")
MAGICS = ("%time x = f(x)", "!ls", "files = !ls", "x?", "if x:\n    !ls\n    y = 2", "%%time")
LINES = st.sampled_from((*PLAIN, *MAGICS))
PYTHON_CELLS = st.builds(
    lambda lines, ending, end: ending.join(lines) + end,
    st.lists(LINES, max_size=6),
    st.sampled_from(["\n", "\n", "\n", "\r\n"]),
    st.sampled_from(["", "\n"]),
)
NOTEBOOKS = st.lists(
    st.one_of(PYTHON_CELLS, PYTHON_CELLS, st.just("def ("), st.just("%%bash\nls"), st.just(markdown("# é\n"))),
    min_size=1,
    max_size=5,
)


def program_of(cells: list[str | dict[str, Any]]) -> tuple[Notebook, Program, Layout]:
    read = Notebook.read(notebook(*cells).encode())
    program = Program.of(PATH, read)
    layout = Layout.of(program.source)
    assert layout is not None
    return read, program, layout


@MANY
@given(NOTEBOOKS)
def test_every_place_of_a_cell_comes_back_to_it(cells: list[str | dict[str, Any]]) -> None:
    read, program, layout = program_of(cells)
    texts = {cell.number: cell.text for cell in read.cells}
    assert program.sources(program.source) == {}
    assert len(layout.marks) == len(layout.numbers) + 1
    for number, mark, end in zip(layout.numbers, layout.marks, layout.marks[1:], strict=False):
        rows = rows_of(texts[number])
        assert end - mark - 1 == len(rows)
        for row, text in enumerate(rows, 1):
            for column in range(1, len(text.rstrip("\r\n")) + 2):
                place = Location(mark + row, column)
                own = Location(row, column)
                assert layout.placed(Span(place, place)) == (number, Span(own, own))


@MANY
@given(st.lists(st.text(st.sampled_from("%!?=x1 \n\\'\"#()[{;:,/\r\t\f\ud800\x00\ufeffé"), max_size=30), max_size=3))
def test_any_text_in_cells_is_a_program_or_is_refused(cells: list[str]) -> None:
    program = Program.of(PATH, Notebook.read(notebook(*cells, ensure_ascii=True).encode()))
    assert program.sources(program.source) == {}
    assert isinstance(program.source.tree, ast.Module)


@MANY
@given(NOTEBOOKS, st.data())
def test_an_edit_of_the_program_is_the_same_edit_of_its_cell(
    cells: list[str | dict[str, Any]], data: st.DataObject
) -> None:
    read, program, layout = program_of(cells)
    if not layout.numbers:
        return
    source = program.source
    first = data.draw(st.integers(source.offset(Location(layout.marks[0] + 1, 1)), len(source.text)))
    start = source.location(first)
    end = data.draw(
        st.sampled_from([start, Location(start.row + 1, 1), source.location(min(first + 3, len(source.text)))])
    )
    if end < start or end.row > len(source.lines) or start.row > len(source.lines):
        return
    content = data.draw(st.sampled_from(["", "q = 1\n", ".to(x)", "a\nb\n"]))
    edit = Edit(Span(start, end), content)
    finding = Finding(
        *("T", "t", "t", Severity.ERROR, Certainty.PROVEN, PATH, Span(start, start), (), "cuda"),
        fix=Fix(Applicability.SAFE, "t", (edit,)),
    )
    [[narrowed]] = told_together([finding], source)
    if narrowed.fix is None:
        return
    changed = program.sources(apply_edits(source, [edit]))
    texts = {cell.number: cell.text for cell in read.cells}
    placed = Placing(PATH, layout, texts).finding(narrowed)
    assert placed.fix is not None
    [own] = placed.fix.edits
    assert own.cell is not None
    cell = Source(PATH, texts[own.cell].encode())
    by_hand = apply_edits(cell, [own]).text if cell.text else own.content
    assert set(changed) <= {own.cell}
    assert changed.get(own.cell, cell.text).replace("\r\n", "\n") == by_hand.replace("\r\n", "\n")


TEXTS = st.text(st.sampled_from('ab \n\n\r"\\/\té☃\u2028𝄞\x7f'), max_size=12)
STYLES = st.sampled_from(
    [{}, {"indent": None}, {"indent": 2, "ensure_ascii": True}, {"indent": "\t"}, {"separators": (",", ":")}]
)


@MANY
@given(st.data(), STYLES)
def test_rewriting_sources_leaves_all_else_byte_for_byte(data: st.DataObject, style: dict[str, Any]) -> None:
    cells = [
        code(data.draw(TEXTS), as_list=data.draw(st.booleans())) if data.draw(st.booleans()) else markdown("a\n")
        for _ in range(3)
    ]
    text = notebook(*cells, **style)
    if data.draw(st.booleans()):
        text = text.replace("/", "\\/").removesuffix("\n")
    read = Notebook.read(text.encode())
    new = {cell.number: data.draw(st.one_of(st.just(cell.text), near(cell.text), TEXTS)) for cell in read.cells}
    written = read.with_sources(new).decode()
    again = Notebook.read(written.encode())
    assert {cell.number: cell.text for cell in again.cells} == new
    assert outside(again, written) == outside(read, text)
    for before, after in zip(read.cells, again.cells, strict=True):
        old, made = text[before.start : before.end], written[after.start : after.end]
        assert isinstance(json.loads(made), type(json.loads(old)))
        if before.text == after.text:
            assert made == old
    if style.get("ensure_ascii") and "\\u" in text:
        assert written.isascii()


@st.composite
def near(draw: st.DrawFn, text: str) -> str:
    """A text with one line changed, added or taken out."""
    lines = text.splitlines(True)
    at = draw(st.integers(0, len(lines)))
    return "".join([*lines[:at], *draw(st.sampled_from([[], ["new\n"]])), *lines[at + draw(st.integers(0, 1)) :]])


def outside(read: Notebook, text: str) -> list[str]:
    """What a notebook holds besides the sources of its code cells, as it is written."""
    ends = [0, *(cell.end for cell in read.cells)]
    starts = [*(cell.start for cell in read.cells), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)]


def test_only_the_changed_line_is_written_anew() -> None:
    odd = '{"cells": [{"cell_type": "code", "source": ["a\\u0041\\n" ,\n\n "b\\/\\n","c", "d"]}], "nbformat": 4}'
    assert Notebook.read(odd.encode()).with_sources({1: "aA\nB\ncd"}).decode() == odd.replace("b\\/", "B")
    one = '{"cells": [{"cell_type": "code", "source": "a\\u0041\\nb\\/\\ncd"}], "nbformat": 4}'
    assert Notebook.read(one.encode()).with_sources({1: "aA\nB\ncd"}).decode() == one.replace("b\\/", "B")


def test_inserted_lines_stand_as_the_others_do() -> None:
    text = notebook("a\nb")
    made = Notebook.read(text.encode()).with_sources({1: "new\na\nb\nlast"}).decode()
    assert made == notebook("new\na\nb\nlast")
    assert Notebook.read(text.encode()).with_sources({1: ""}).decode() == notebook("")
