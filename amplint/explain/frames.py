"""The frames of a pasted traceback, whatever printed it and whatever stands around it.

Read are tracebacks of Python (with log, rank, worker and exception-group prefixes, chained), of IPython and Jupyter old
and new, of rich, and the locations that pytest prints.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.explain.catalogue import without_colours
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Frame:
    """One entry of a traceback: ``path`` as printed, ``row`` from 1, ``text`` the source line, empty if none was."""

    path: str
    row: int
    function: str | None = None
    text: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        """The path's parts, of a Windows path too."""
        return tuple(part for part in re.split(r"[\\/]+", self.path) if part not in ("", "."))

    @property
    def of_torch(self) -> bool:
        """Whether the frame is torch's own."""
        return bool(_TORCH.search("/" + "/".join(self.parts)))

    @property
    def of_python(self) -> bool:
        """Whether the frame is the standard library's, a tool's launcher or no file at all."""
        return self.path.startswith("<") or bool(_PYTHON.search("/" + "/".join(self.parts)))


_TORCH = re.compile(
    r"/(?:site|dist)-packages/torch/|/torch/(?:nn|autograd|amp|optim|utils|cuda|distributed|_\w+)/|/torch/_\w+\.py$"
)
_PYTHON = re.compile(r"/lib/python3\.\d+/(?!site-packages|dist-packages)|/Lib/(?!site-packages)\w+\.py$")

_STREAM = re.compile(r"^\s*(?P<stream>\[(?:rank|default)?\d+\]:?|\(\w[\w.]* pid=\d+[^)]*\)|\d+:)(?=\s)\s?")
_GROUP = re.compile(r"^(?:\s*[|+] )+")
_PYTHON_FRAME = re.compile(r'File "(?P<path>[^"\n]+)", line (?P<row>\d+)(?:,? in (?P<function>[^\n│|]+))?')
_IPYTHON_FRAME = re.compile(r"^\s*File (?P<path>\S.*?):(?P<row>\d+)(?:, in (?P<function>[\w.<>]+).*)?$")
_OLD_IPYTHON_FRAME = re.compile(r"^(?P<path>(?:[A-Za-z]:)?[^\s:]+\.py) in (?P<function>[\w.<>]+)(?:\(.*)?$")
_RICH_FRAME = re.compile(
    r"^\s*[│|] (?P<path>(?:[A-Za-z]:)?[^\s:]+\.py):(?P<row>\d+) in (?P<function>[\w.<>]+)\s*[│|]?\s*$"
)
_PYTEST_FRAME = re.compile(
    r"^(?P<path>(?:[A-Za-z]:)?[^\s:]+\.py):(?P<row>\d+):"
    r"(?: in (?P<function>[\w.<>]+)| [\w.]+(?:Error|Exception|Warning)| ?)$"
)
_ARROW = re.compile(r"^\s*(?:-+>|│?\s*❱)\s*(?P<row>\d+)(?P<text>.*)$")
_MARKED = re.compile(r"^>\s+(?P<text>\S.*)$")
_BOUNDARY = re.compile(
    r"Traceback \(most recent call last\)|^During handling of the above|^The above exception was the direct"
    r"|^_{3,} \S.* _{3,}$"
)


@dataclass(slots=True)
class _Stream:
    """One rank's or worker's lines while they are read.

    ``segment`` counts its tracebacks, ``last`` is where its last frame is in the list of all. ``prefix`` is the column
    of a frame whose source line comes next, ``pending`` a header without a line number, ``marked`` pytest's last ``>``
    line.
    """

    segment: int = 0
    last: int | None = None
    prefix: int | None = None
    pending: tuple[str, str] | None = None
    marked: str = ""


@dataclass(frozen=True, slots=True)
class _Entry:
    stream: str
    segment: int
    frame: Frame


def parse_frames(text: str, near: str = "") -> tuple[Frame, ...]:
    """The frames of the traceback that ends in the line ``near``, outermost first; of the last one if none does."""
    entries: list[_Entry] = []
    streams: dict[str, _Stream] = {}
    wanted: tuple[str, int] | None = None
    for name, line in _lines(text):
        stream = streams.setdefault(name, _Stream())
        if _BOUNDARY.search(line):
            stream.segment += 1
            stream.pending = stream.prefix = None
        if wanted is None and near and near in line:
            wanted = (name, stream.segment)
        _read(line, name, stream, entries)
    if not entries:
        return ()
    places = {(entry.stream, entry.segment) for entry in entries}
    if wanted not in places:
        wanted = (entries[-1].stream, entries[-1].segment)
    return tuple(dict.fromkeys(entry.frame for entry in entries if (entry.stream, entry.segment) == wanted))


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """(rank or worker, line without its mark)."""
    for line in without_colours(text).split("\n"):
        match = _STREAM.match(line)
        name, rest = (match["stream"], line[match.end() :]) if match else ("", line)
        yield name, _GROUP.sub("", rest).rstrip()


def _read(line: str, name: str, stream: _Stream, entries: list[_Entry]) -> None:
    match = _PYTHON_FRAME.search(line)
    if match:
        stream.prefix, stream.pending = match.start(), None
        _add(_frame(match), name, stream, entries)
        return
    if stream.prefix is not None:
        start, stream.prefix = stream.prefix, None
        if line[start : start + 2] == "  " and line.strip():
            _say(line[start:].strip(), stream, entries)
            return
    arrow = _ARROW.match(line)
    if arrow:
        _point(arrow, name, stream, entries)
        return
    marked = _MARKED.match(line)
    if marked:
        stream.marked = marked["text"]
        return
    for pattern in (_IPYTHON_FRAME, _RICH_FRAME, _PYTEST_FRAME):
        match = pattern.match(line)
        if match:
            _add(_frame(match), name, stream, entries)
            if pattern is _PYTEST_FRAME:
                _say(stream.marked, stream, entries)
                stream.prefix = None if stream.marked else 0
                stream.marked = ""
            return
    match = _OLD_IPYTHON_FRAME.match(line)
    if match:
        stream.pending = (match["path"], match["function"])


def _frame(match: re.Match[str]) -> Frame:
    function = match["function"].strip() if match["function"] else None
    return Frame(match["path"], int(match["row"]), function)


def _add(frame: Frame, name: str, stream: _Stream, entries: list[_Entry]) -> None:
    stream.last = len(entries)
    entries.append(_Entry(name, stream.segment, frame))


def _point(arrow: re.Match[str], name: str, stream: _Stream, entries: list[_Entry]) -> None:
    """An arrow beside a source line: of the frame just named, or of an old header that gave no line."""
    row, text = int(arrow["row"]), arrow["text"].strip(" │")
    if stream.pending is not None:
        path, function = stream.pending
        stream.pending = None
        _add(Frame(path, row, function, text), name, stream, entries)
    elif stream.last is not None and entries[stream.last].frame.row == row and not entries[stream.last].frame.text:
        _say(text, stream, entries)


def _say(text: str, stream: _Stream, entries: list[_Entry]) -> None:
    """Give the stream's last frame its source line."""
    if stream.last is not None:
        entry = entries[stream.last]
        entries[stream.last] = replace(entry, frame=replace(entry.frame, text=text))
