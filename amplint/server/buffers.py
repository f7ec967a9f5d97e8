"""What an editor holds of one file: its text, in one version."""

from __future__ import annotations

import io
import os
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from pygls.uris import to_fs_path

from amplint.frozen import dataclass
from amplint.source import Source, SourceError

NOTEBOOK_SCHEME = "vscode-notebook-cell"


@dataclass(frozen=True, slots=True)
class Buffer:
    """One version of an open file. ``source`` is its text in the encoding that the text itself declares."""

    uri: str
    version: int
    text: str
    source: Source

    @property
    def path(self) -> Path:
        """Where the file lies, or, never saved, would lie."""
        return self.source.path

    @property
    def lines(self) -> list[str]:
        """The text's lines with their endings, as the protocol counts them."""
        return lines_of(self.text)


def buffer_of(uri: str, version: int, text: str, folder: Path) -> Buffer:
    """The buffer of a document; ``folder`` is where one that is not a file counts as being."""
    return Buffer(uri, version, text, _source(path_of(uri, folder), text))


def path_of(uri: str, folder: Path) -> Path:
    """The absolute path of a document; one that was never saved lies in ``folder`` by the name that it has."""
    parts = urlsplit(uri)
    if parts.scheme == "file" and (name := to_fs_path(uri)):
        return Path(os.path.abspath(name))
    return Path(os.path.abspath(folder / (PurePosixPath(unquote(parts.path)).name or "untitled")))


def is_python(uri: str, language: str | None) -> bool:
    """Whether a document is to be checked: Python source, and no cell of a notebook, which says little by itself."""
    if urlsplit(uri).scheme == NOTEBOOK_SCHEME:
        return False
    return language == "python" or uri.endswith((".py", ".pyi"))


def lines_of(text: str) -> list[str]:
    """Lines with their endings: line feed, carriage return, or both."""
    return list(io.StringIO(text, newline=""))


def _source(path: Path, text: str) -> Source:
    source = Source(path, text.encode(errors="replace"))
    try:
        encoding = source.encoding
    except SourceError:
        return source
    return source if encoding.startswith("utf-8") else Source(path, text.encode(encoding, errors="replace"))
