"""The precision settings of the files given, and which of them belong to one run."""

from __future__ import annotations

import os
import re
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.files import display_path
from amplint.frozen import dataclass
from amplint.preflight.configs import TOKENS, calls_of_document, deepspeed_call
from amplint.preflight.document import DocumentError, Mapping, Node
from amplint.preflight.frameworks import SCRIPT_TOKENS
from amplint.preflight.python_settings import PythonFile, read_python
from amplint.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.preflight.call import Call
    from amplint.preflight.discovery import InputFile

CONFIG_ARGUMENTS = ("deepspeed", "hf_ds_config", "config")
"""Arguments that hold a DeepSpeed configuration or the path of one."""


@dataclass(slots=True)
class SettingsFile:
    """One script or configuration: its calls, and for a script how it was read."""

    path: Path
    named: bool
    calls: list[Call]
    python: PythonFile | None = None


@dataclass(slots=True)
class Settings:
    """What the files say, the files that could not be read (exit status 2), and what was left out."""

    files: list[SettingsFile] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)

    @property
    def calls(self) -> list[Call]:
        return [call for file in self.files for call in file.calls]

    def runs(self) -> list[list[SettingsFile]]:
        """The files that act together.

        All files named on the command line are one run. A file found below a folder is a run of its own, with the
        configurations that it names by path.
        """
        named = [file for file in self.files if file.named]
        documents = {file.path: file for file in self.files if file.python is None}
        linked = {file.path: [documents[path] for path in _paths(file) if path in documents] for file in self.files}
        joined = {document.path for others in linked.values() for document in others}
        found = [[file, *linked[file.path]] for file in self.files if not file.named]
        alone = [run for run in found if len(run) > 1 or run[0].path not in joined]
        return [named, *alone] if named else alone


def read_settings(inputs: Iterable[InputFile], tokens: Iterable[str]) -> Settings:
    """The settings of scripts and configurations; other kinds of files are passed over.

    A script without any of the ``tokens`` is not parsed.
    """
    wanted = re.compile("|".join(map(re.escape, sorted({*SCRIPT_TOKENS, *tokens}))).encode())
    settings = Settings()
    for file in inputs:
        try:
            if file.kind == "python":
                _python(file, settings, wanted)
            elif file.kind in ("json", "yaml"):
                _document(file, settings)
        except OSError as error:
            settings.errors.append(f"cannot read {display_path(file.path)}: {error.strerror or error}")
    return settings


def _python(file: InputFile, settings: Settings, wanted: re.Pattern[bytes]) -> None:
    source = Source(file.path, file.path.read_bytes())
    if wanted.search(source.data) is None:
        return
    try:
        read = read_python(source)
    except SourceError as error:
        _unreadable(file, f"{error.message} (line {error.location.row})", settings)
        return
    calls = list(read.calls)
    for call in read.calls:
        for key in CONFIG_ARGUMENTS:
            value = call.values.get(key)
            if value is not None and isinstance(value.value, Mapping):
                found = deepspeed_call(Node(value.value, value.place.row, value.place.column), file.path)
                if found.values:
                    calls.append(found)
    settings.files.append(SettingsFile(file.path, file.named, calls, read))


def _document(file: InputFile, settings: Settings) -> None:
    try:
        text = file.path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _unreadable(file, f"not UTF-8: {error.reason}", settings)
        return
    if not any(token in text for token in TOKENS):
        return
    try:
        if file.kind == "json":
            from amplint.preflight.json_document import read_json

            roots = [read_json(text)]
        else:
            from amplint.preflight.yaml_document import read_yaml

            roots = read_yaml(text)
    except DocumentError as error:
        _unreadable(file, str(error), settings)
        return
    calls = [call for root in roots for call in calls_of_document(root, file.path)]
    if calls:
        settings.files.append(SettingsFile(file.path, file.named, calls))


def _unreadable(file: InputFile, why: str, settings: Settings) -> None:
    """An error for a file that was named; below a folder, where it may be no settings at all, only a line."""
    line = f"{display_path(file.path)} was not read: {why}"
    (settings.errors if file.named else settings.unseen).append(line)


def _paths(file: SettingsFile) -> list[Path]:
    """The files that a file names as configurations, relative to its own folder or to the current one."""
    found = []
    for call in file.calls:
        for key in CONFIG_ARGUMENTS:
            value = call.get(key)
            if isinstance(value, str) and value.endswith((".json", ".yaml", ".yml")):
                found += [Path(os.path.abspath(folder / value)) for folder in (file.path.parent, Path.cwd())]
    return list(dict.fromkeys(path for path in found if path != file.path))
