"""What IPython adds to Python is taken out, and everything else stays in its place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from notebooks import code, notebook

from amplint.notebook.document import Notebook
from amplint.notebook.layout import Layout
from amplint.notebook.magics import Reading, read_magics, stood_in
from amplint.notebook.program import Program

PYTHON = [
    ("%matplotlib inline\nx = 1", "\nx = 1"),
    ("%time x = f(1)", "0    ;x = f(1)"),
    ("%timeit -n 10 -r3 x = f(1)", f"0{' ' * 16};x = f(1)"),
    ("if a:\n    %prun f(1)\n    !ls\n", "if a:\n    0    ;f(1)\n    pass\n"),
    ("%time for i in x: pass", ""),
    ("%%time\nx = 1", "\nx = 1"),
    ("\n%%capture out\n%%time\nx = 1", "\n\n\nx = 1"),
    ("%%timeit x = 1\nx + 1", "\nx + 1"),
    ("# a\n\n  # b\n%%time\nx = 1", "# a\n\n  # b\n\nx = 1"),
    ("!pip install 'a b\nx = 1", "\nx = 1"),
    ("!echo a \\\n  b\nx = 1", "\n\nx = 1"),
    ("files = !ls *.py", "files = get_ipython()"),
    ("a.b['c'], d = %who_ls  int", "a.b['c'], d = get_ipython()"),
    ("files = !ls \\\n  b\nx = 1", "files = get_ipython()\n\nx = 1"),
    ("?torch\ntorch.nn?\nx = 1\nprint??", "\n\nx = 1\n"),
    ("if a:\n    torch?\n", "if a:\n    pass\n"),
    ("x = '''\n%time\n!ls\n'''\n!ls", "x = '''\n%time\n!ls\n'''\n"),
    ("x = (1\n  % 2)\n!ls", "x = (1\n  % 2)\n"),
    ("x = 3 \\\n  % 2\n!ls", "x = 3 \\\n  % 2\n"),
    ("# what?\nx = 'no?'\n!ls", "# what?\nx = 'no?'\n"),
    ("x != 1\ny = x == 2\n!ls", "x != 1\ny = x == 2\n"),
    ("%time x = 1 # amplint: ignore", "0    ;x = 1 # amplint: ignore"),
    ("!ls\r\nx = 1\r\n", "\r\nx = 1\r\n"),
    ("await f()\nasync with a as b:\n    pass\n", "await f()\nasync with a as b:\n    pass\n"),
    ("/f 1\n,f a b\n;f a b\nx = 1", "\n\n\nx = 1"),
]


@pytest.mark.parametrize(("cell", "python"), PYTHON)
def test_a_magic_gives_way_to_python(cell: str, python: str) -> None:
    reading = read_magics(cell)
    assert not reading.other
    assert stood_in(cell, list(reading.magics)) == python
    ast.parse(python)


@pytest.mark.parametrize("cell", [cell for cell, _ in PYTHON])
def test_python_beside_magics_stays_in_its_row_and_columns(cell: str) -> None:
    program = Program.of(Path("/a.ipynb"), Notebook.read(notebook("x = 0", cell).encode()))
    assert (program.refused, program.sources(program.source)) == ((), {})
    layout = Layout.of(program.source)
    assert layout is not None
    rows = cell.splitlines()
    names = [node for node in ast.walk(program.source.tree) if isinstance(node, ast.Name) and node.lineno > 5]
    for node in names:
        number, span = layout.placed(program.source.span(node))
        if node.id != "get_ipython":
            assert (number, rows[span.start.row - 1][span.start.column - 1 : span.end.column - 1]) == (2, node.id)


@pytest.mark.parametrize(
    "cell",
    [
        "%%bash\nls | (",
        "%%html\n<b>",
        "#@title Install\n\n%%shell\nls | (",
        "%%writefile a.py\nx = 1",
        "%%script python\nx = 1",
        "%sql\nSELECT * FROM t WHERE (",
        "%md\nA title, not Python",
    ],
)
def test_a_cell_in_another_language_is_left_out(cell: str) -> None:
    assert read_magics(cell) == Reading(other=True)
    program = Program.of(Path("/a.ipynb"), Notebook.read(notebook("x = 0", cell, "y = 1").encode()))
    assert program.refused == ()
    assert [node.lineno for node in program.source.tree.body] == [4, 6]


def test_a_line_magic_for_another_language_leaves_the_python_below() -> None:
    reading = read_magics("%sql SELECT 1\nx = 1")
    assert stood_in("%sql SELECT 1\nx = 1", list(reading.magics)) == "\nx = 1"


def test_a_cell_whose_editor_names_another_language_is_left_out() -> None:
    other = code("x =", vscode={"languageId": "sql"})
    program = Program.of(Path("/a.ipynb"), Notebook.read(notebook("x = 0", other).encode()))
    assert (len(program.source.tree.body), program.refused) == (1, ())


def test_an_encoding_line_in_a_cell_is_a_comment() -> None:
    program = Program.of(Path("/a.ipynb"), Notebook.read(notebook("# -*- coding: latin-1 -*-\nx = 'é'").encode()))
    assert program.source.tree.body[0].value.value == "é"  # type: ignore[attr-defined]


def test_the_words_of_the_program_are_none_of_a_cell() -> None:
    program = Program.of(Path("/a.ipynb"), Notebook.read(notebook("#nb0 cell 9\nx = 1  #nb1 end\n", "!ls").encode()))
    assert program.source.text.startswith("#nb2\n")
    assert len(program.source.tree.body) == 1


@pytest.mark.parametrize("cell", ["cd folder", "cd ../src/", "  ls -l\n", "pip install torch", "\nrm -rf folder\n"])
def test_a_magic_that_is_all_of_a_cell_needs_no_mark(cell: str) -> None:
    reading = read_magics(cell)
    assert not reading.other
    assert not stood_in(cell, list(reading.magics)).strip()


@pytest.mark.parametrize("cell", ["cd folder\nx = 1", "folder cd", "ls = =", "cd, folder =", "cd(", "x = cd folder"])
def test_other_cells_with_its_name_are_not_python(cell: str) -> None:
    assert read_magics(cell).magics == ()


@pytest.mark.parametrize("cell", ["    x = 1\n    y = 2\n", "\tif x:\n\t    y = 2\n", '  x = 1\n\n  y = """a\nb"""\n'])
def test_a_cell_that_is_indented_as_a_whole_is_left_to_ipython(cell: str) -> None:
    assert read_magics(cell) == Reading(other=True)
    program = Program.of(Path("/a.ipynb"), Notebook.read(notebook("x = 0", cell).encode()))
    assert program.refused == ()


@pytest.mark.parametrize("cell", ["  x = (\n", "x = 1\n  y = 2\n"])
def test_a_cell_that_no_indentation_makes_python_is_refused(cell: str) -> None:
    program = Program.of(Path("/a.ipynb"), Notebook.read(notebook("x = 0", cell).encode()))
    assert len(program.refused) == 1
