"""One defect of a release: where it lies, what it does, and how to build what shows it."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

CASES = Path(__file__).resolve().parent / "cases"
"""One case a file, named by it."""


@dataclass(frozen=True)
class Case:
    """A defect in ``path`` (relative to site-packages), line ``line`` from 1, of a pinned release.

    Attributes:
        package: The distribution's name, as in ``releases.txt`` of the ecosystem benchmark.
        release: Its version.
        code: The rule that reports the line; None for what amplint does not report.
        scenario: The scenario in which it fails.
        error: What the message of the run contains.
        breaks: One sentence: what breaks for whom.
        build: Returns a module (or callable), its arguments and its keyword arguments: the smallest that runs the line,
            with random weights, in float32. Imports the package inside, so that a case can be read without it.
        mode: As of ``amplint verify``: train and eval run backward as well.
        device: Whose cast policy: ``cuda`` over the CPU's kernels, or ``cpu``, its own.
        imports: Modules to import before a GPU is emulated, as they ask for its driver when they are imported.
    """

    package: str
    release: str
    path: str
    line: int
    code: str | None
    scenario: str
    error: str
    breaks: str
    build: Callable[[], tuple[Any, tuple[Any, ...], dict[str, Any]]] = field(repr=False)
    mode: str = "train"
    device: str = "cuda"
    imports: tuple[str, ...] = ()

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.release}"

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


def load(folder: Path = CASES) -> dict[str, Case]:
    """The cases of a folder by name, sorted. Imports their files, which needs none of the packages.

    Raises ValueError where a file has no ``CASE``.
    """
    return {file.stem: _case(file) for file in sorted(folder.glob("*.py"))}


def _case(file: Path) -> Case:
    spec = importlib.util.spec_from_file_location(f"found_case_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    case = getattr(module, "CASE", None)
    if not isinstance(case, Case):
        raise ValueError(f"{file} has no CASE = Case(...)")
    return case
