"""What IPython adds to Python: magics, shell commands and help, found in a cell and replaced by Python.

What stands in for them lies on the same lines, and leaves the columns of all Python around it as they were.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

_PYTHON_CELLS = frozenset(
    ("capture", "debug", "ipytest", "memit", "prun", "pyinstrument", "scalene", "snakeviz", "time", "timeit", "wandb")
)
"""Cell magics whose cell is Python that this program runs."""
_OTHER_CELLS = frozenset(("fs", "md", "r", "scala", "sh", "sql"))
"""Line magics that make a whole cell another language on hosted notebooks."""

_AUTOMATIC = frozenset(
    (
        *("alias", "alias_magic", "autoawait", "autocall", "automagic", "bookmark", "cat", "cd", "clear", "colors"),
        *("conda", "config", "connect_info", "cp", "debug", "dhist", "dirs", "doctest_mode", "ed", "edit", "env"),
        *("gui", "hist", "history", "killbgscripts", "ldir", "less", "lf", "lk", "ll", "load", "load_ext"),
        *("loadpy", "logoff", "logon", "logstart", "logstate", "logstop", "ls", "lsmagic", "lx", "macro", "magic"),
        *("man", "matplotlib", "mkdir", "more", "mv", "notebook", "page", "pastebin", "pdb", "pdef", "pdoc"),
        *("pfile", "pinfo", "pinfo2", "pip", "popd", "pprint", "precision", "prun", "psearch", "psource", "pushd"),
        *("pwd", "pycat", "pylab", "qtconsole", "quickref", "recall", "rehashx", "reload_ext", "rep", "rerun"),
        *("reset", "reset_selective", "rm", "rmdir", "run", "save", "sc", "set_env", "sx", "system", "tb", "time"),
        *("timeit", "unalias", "unload_ext", "who", "who_ls", "whos", "xdel", "xmode"),
    )
)
"""Line magics that need no ``%`` where they are all of a cell: ``lsmagic`` of IPython 8.12 and ipykernel."""

_CELL_MAGIC = re.compile(r"%%(?P<name>[\w.]+)[^\r\n?]*(?:\r\n|\r|\n|\Z)")
_BEFORE_CELL_MAGIC = re.compile(r"(?:\s|#[^\r\n]*)*")
"""Blank lines and, on hosted notebooks, comments."""
_ALONE = re.compile(r"\s*(?P<name>\w+)[ \t]+[^\s=,][^\r\n]*\s*")
_LINE_MAGIC = re.compile(r"(?:\s*\n)?%(?P<name>\w+)\b")
_ESCAPED = re.compile(r"[ \t]*(?=[%!?,;/])")
_REST = re.compile(r"(?:[^\r\n]*\\(?:\r\n|\r|\n))*[^\r\n]*")
"""The rest of a line, with those that a backslash at its end joins to it."""
_INDENTED = re.compile(r"(?P<blanks>[ \t]+)\S")
_LINE = re.compile(r"[^\r\n]+")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_ASSIGNED = re.compile(r"[ \t]*[A-Za-z_][\w.,\[\]\"' \t]*=[ \t]*(?=[%!])")
_TIMED = re.compile(r"%(?:time|timeit|prun|memit)[ \t]+(?:-\w+(?:[ \t]+\d+)?[ \t]+)*(?=[^\s%!?])")
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""|' + r"'''(?:\\.|[^\\])*?'''" + r'|"(?:\\.|[^"\\\r\n])*"|' + r"'(?:\\.|[^'\\\r\n])*'"
    r"|(?P<comment>#[^\r\n]*)|\\(?:\r\n|\r|\n)|(?P<open>[\[({])|(?P<close>[\])}])|(?P<newline>\r\n|\r|\n)"
    r"|(?P<blank>[ \t\f]+)|(?P<help>\?)|\w+|.",
    re.DOTALL,
)

NOTHING, STATEMENT, VALUE = "", "pass", "get_ipython()"
"""What stands in for a line, for one in a block, and for a value."""


@dataclass(frozen=True, slots=True)
class Magic:
    """Text on one line that is no Python: where it starts and ends in the cell, and what stands in for it."""

    start: int
    end: int
    stand_in: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a cell is to Python: its magics in order, none where it is plain; ``other`` for one that is no Python, or
    that IPython alone can read."""

    magics: tuple[Magic, ...] = ()
    other: bool = False


def read_magics(text: str) -> Reading:
    """Find the magics of a cell."""
    if _parses(text):
        return Reading()
    alone = _ALONE.fullmatch(text)
    if alone is not None and alone["name"] in _AUTOMATIC:
        return Reading(tuple(_lines(text, 0, len(text))))
    if _is_indented(text):
        return Reading(other=True)
    position = _end(_BEFORE_CELL_MAGIC, text, 0)
    if not text.startswith("%%", position):
        position = len(text) - len(text.lstrip())
    magics: list[Magic] = []
    while (cell := _CELL_MAGIC.match(text, position)) is not None:
        if cell["name"] not in _PYTHON_CELLS:
            return Reading(other=True)
        magics += _lines(text, position, cell.end())
        position = cell.end()
    magics += _in_statements(text, position)
    line = _LINE_MAGIC.match(text)
    if line is not None and line["name"] in _OTHER_CELLS and not _parses(stood_in(text, magics)):
        return Reading(other=True)
    return Reading(tuple(magics))


def _is_indented(text: str) -> bool:
    """Whether a cell is Python once the blanks before its first line are gone from every line, as IPython has it."""
    indented = _INDENTED.match(text)
    return indented is not None and _parses(re.sub(rf"^{indented['blanks']}", "", text, flags=re.MULTILINE))


def stood_in(text: str, magics: list[Magic]) -> str:
    """A cell with what stands in for its magics."""
    pieces, position = [], 0
    for magic in magics:
        pieces += [text[position : magic.start], magic.stand_in]
        position = magic.end
    return "".join([*pieces, text[position:]])


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _lines(text: str, start: int, end: int) -> Iterator[Magic]:
    """Each line of a stretch that is no Python, without its ending; in a block, a statement stands in for the first."""
    stand_in = STATEMENT if re.search(r"[ \t]\Z", text[:start]) else NOTHING
    for line in _LINE.finditer(text, start, end):
        yield Magic(line.start(), line.end(), stand_in)
        stand_in = NOTHING


def _in_statements(text: str, position: int) -> Iterator[Magic]:
    """The magics in place of statements, and of values that are assigned."""
    while position < len(text):
        escaped, assigned = _ESCAPED.match(text, position), _ASSIGNED.match(text, position)
        if escaped is not None:
            start = escaped.end()
            position = _end(_REST, text, start)
            timed = _TIMED.match(text, start)
            if timed is not None and _is_statement(text[timed.end() : position]):
                yield Magic(start, timed.end(), f"0{' ' * (timed.end() - start - 2)};")
            else:
                yield from _lines(text, start, position)
        elif assigned is not None:
            start, line_end = assigned.end(), _end(_LINE, text, assigned.end())
            position = _end(_REST, text, start)
            yield Magic(start, line_end, VALUE)
            yield from _lines(text, line_end, position)
        else:
            start = position
            position, asks = _statement(text, start)
            if asks:
                yield from _lines(text, *_stripped(text, start, position))
            continue
        position = _end(_NEWLINE, text, position)


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Where what a pattern matches at a position ends; the position itself where it does not match."""
    found = pattern.match(text, position)
    return found.end() if found is not None else position


def _statement(text: str, position: int) -> tuple[int, bool]:
    """Where a logical line ends, behind its line ending, and whether it asks for help: its last mark is ``?``."""
    depth, asks = 0, False
    while position < len(text):
        token = _TOKEN.match(text, position)
        assert token is not None
        position = token.end()
        kind = token.lastgroup
        if kind == "newline" and depth == 0:
            break
        depth += (kind == "open") - (kind == "close" and depth > 0)
        if kind not in ("newline", "blank", "comment"):
            asks = kind == "help"
    return position, asks


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """A stretch without the white space around it."""
    inside = text[start:end]
    return start + len(inside) - len(inside.lstrip()), start + len(inside.rstrip())


def _is_statement(text: str) -> bool:
    """Whether text is a simple statement on one line."""
    return "\n" not in text and "\r" not in text and _parses(f"0;{text}")
