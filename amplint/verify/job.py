"""What parent and child tell each other: the job, and what came of each cell. Plain data, JSON both ways."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from amplint.frozen import dataclass
from amplint.verify.plain import Plain

BASE = ("train", "eval", "eval-no-grad")
MODES = (*BASE, "eval-mask", "second-call")
"""The ways a target is called, in the order of the report.

``train`` and ``eval`` run backward, outside of autocast. ``eval-mask`` gives a right-padding mask under no_grad where
the signature takes one, ``second-call`` calls twice under no_grad where there is a cache.
"""


BUILD_SHARE = 0.4
"""How much of a target's time may go into finding out how to build it."""

VARIANTS_SHARE = 0.7
"""The share of a target's time after which no further variant of it is begun."""

CLEAN, FAILED, OVERFLOW, LOSS = "clean", "failed", "overflow", "loss"
CPU_GAP, HARDWARE, OTHER, NO_REFERENCE = "cpu-gap", "hardware", "other", "no-reference"
"""What a cell can come to: see :class:`Outcome`."""

CONFIRMING = (FAILED, OVERFLOW, LOSS)
"""The kinds that confirm a hazard of mixed precision."""

Cell = tuple[str, str, str]
"""The variant of the target (empty for what is built first), scenario and mode."""


@dataclass(frozen=True)
class Claim(Plain):
    """A finding, as far as a run can confirm it.

    ``rows`` are the inclusive line ranges of ``filename`` in which a failure confirms it: the statement it lies in, or,
    where that is the header of a class, function or block (``governs``), all that this holds.
    ``through`` are the statements (file, first, last) that decide its dtypes, where they run with a call: a run that
    leaves one out says nothing against the claim.
    ``scenarios`` are those in which it claims to fail. ``settled_by_failure`` is False for what claims no failure, such
    as a deprecation: a run reaches it at most.
    """

    fingerprint: str
    code: str
    filename: str
    rows: tuple[tuple[int, int], ...]
    scenarios: tuple[str, ...]
    governs: bool = False
    settled_by_failure: bool = True
    through: tuple[tuple[str, int, int], ...] = ()

    def covers(self, filename: str, row: int) -> bool:
        return filename == self.filename and any(first <= row <= last for first, last in self.rows)


@dataclass(frozen=True)
class Job(Plain):
    """One target for one child process.

    ``name`` is the qualified name of a class of the file, or None for what the file's own ``amplint_example`` returns.
    ``overlay`` maps absolute paths to text that is imported in the place of the file's. ``skip`` are cells that are not
    to be run again, ``inner`` those whose float inputs come in autocast's dtype. ``variants`` are the labels of those
    to run besides what is built first; None leaves the choice to the child, which looks for those that reach ``lines``
    (file, row). ``own`` are the lines (file, first, last) of the target itself. ``answers`` is where the outputs go,
    ``baseline`` where those of an earlier child are to compare with; each is a file, or None.
    With ``snippets`` (see :class:`~amplint.verify.snippet.Snippet`) those are run instead, and the file is not
    imported.
    """

    path: str
    name: str | None
    device: str
    run_on: str
    scenarios: tuple[str, ...]
    results: str
    root: str
    factory: str | None = None
    claims: tuple[Claim, ...] = ()
    overlay: dict[str, str] = field(default_factory=dict)
    skip: tuple[Cell, ...] = ()
    inner: tuple[Cell, ...] = ()
    variants: tuple[str, ...] | None = None
    lines: tuple[tuple[str, int], ...] = ()
    own: tuple[tuple[str, int, int], ...] = ()
    capability: tuple[int, int] | None = None
    seed: int = 0
    timeout: float = 120.0
    memory: int = 0
    trace: bool = False
    answers: str | None = None
    baseline: str | None = None
    snippets: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Outcome(Plain):
    """What one cell did.

    ``kind``: ``clean`` | ``failed`` (a dtype error) | ``overflow`` (inf or nan where float32 has neither) | ``loss``
    (beyond tolerance against float32) | ``cpu-gap`` (only the CPU's kernels lack it) | ``hardware`` (needs a real GPU)
    | ``other`` (an error that is none of precision) | ``no-reference`` (fails in float32 too).

    ``confirmed`` and ``reached`` are fingerprints: of the claims that the failure confirms, and of those whose lines
    ran. ``error`` is one line. ``location`` is where it failed, in user code. ``family`` is the rule code that the
    error's text or kind belongs to. ``difference`` is the largest absolute difference from the baseline's float32
    outputs, relative to their largest value; None where there is no baseline or it cannot be compared. ``dtypes`` are
    those of the floating results, in order. ``inner``: its float inputs came in autocast's dtype. ``variant`` says how
    what ran differs from what is built first; ``built`` and ``inputs`` are what was built and passed, each in one line.
    ``frames`` are the lines of user code (file, row) that a failure went through, outermost first.
    """

    scenario: str
    mode: str
    kind: str
    seconds: float
    error: str | None = None
    location: tuple[str, int] | None = None
    family: str | None = None
    confirmed: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()
    difference: float | None = None
    timeline: dict[str, Any] | None = None
    dtypes: tuple[str, ...] = ()
    inner: bool = False
    variant: str = ""
    built: str = ""
    inputs: str = ""
    frames: tuple[tuple[str, int], ...] = ()

    @property
    def cell(self) -> Cell:
        return (self.variant, self.scenario, self.mode)
