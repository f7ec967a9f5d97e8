"""What is found in a buffer, which dtypes it has and what fixing makes of it, by its own project's configuration.

All of it runs in the worker's thread: amplint's caches know one file at a time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from amplint import contents
from amplint.annotate.rows import FileDtypes, file_dtypes
from amplint.config import UsageError
from amplint.engine import Options, check_file
from amplint.finding import Applicability, FileResult
from amplint.frozen import dataclass
from amplint.infer.lattice.scenarios import SCENARIOS
from amplint.source import SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amplint.infer.lattice.scenarios import Scenario
    from amplint.server.buffers import Buffer

OptionsOf: TypeAlias = Callable[[Path], Options]
"""What a file is judged by. Raises UsageError where its configuration is not valid."""


@dataclass(frozen=True, slots=True)
class World:
    """What lies around a buffer: the texts of files that are not saved yet, and how often files on disk changed."""

    unsaved: Mapping[Path, bytes] = field(default_factory=dict)
    changes: int = 0


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of checking a buffer; ``options`` are None where ``problem`` says why it was not checked."""

    buffer: Buffer
    result: FileResult
    options: Options | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Inferred:
    """The dtypes of a buffer's expressions in all scenarios; ``named`` are those that its configuration names."""

    buffer: Buffer
    file: FileDtypes
    named: tuple[Scenario, ...]


class Analyser:
    """``new_options`` reads configurations afresh; ``world`` is set from outside, and heeded by whatever runs next."""

    def __init__(self, new_options: Callable[[], OptionsOf]) -> None:
        self.world = World()
        self._new_options = new_options
        self._options_of = new_options()
        self._seen = self.world

    def check(self, buffer: Buffer) -> Checked:
        """The findings. Never raises for what is in the file or its configuration."""
        try:
            options = self._options(buffer)
        except UsageError as error:
            return Checked(buffer, FileResult(buffer.path), None, str(error))
        return Checked(buffer, check_file(buffer.source, options), options)

    def dtypes(self, buffer: Buffer) -> Inferred | None:
        """The dtypes; None where the buffer does not parse or cannot be judged."""
        try:
            options = self._options(buffer)
            torch_version = options.torch_for(buffer.path).newest
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                file = file_dtypes(
                    buffer.source, scenarios=SCENARIOS, device=options.device, torch_version=torch_version
                )
        except (UsageError, SourceError, RecursionError):
            return None
        return Inferred(buffer, file, options.scenarios or ())

    def fixed(self, buffer: Buffer) -> bytes | None:
        """The buffer's bytes after all safe fixes; None where these change nothing."""
        options = replace(self._options(buffer), fix=Applicability.SAFE)
        return check_file(buffer.source, options).after

    def _options(self, buffer: Buffer) -> Options:
        world = self.world
        if world != self._seen:
            contents.stand(world.unsaved)
            if world.changes != self._seen.changes:
                self._options_of = self._new_options()
            self._seen = world
        return self._options_of(buffer.path)
