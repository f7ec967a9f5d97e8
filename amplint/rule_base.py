"""What a rule is.

A rule is one file with one class. Its docstring is its documentation, ``bad`` and ``good`` are the pair of examples on
its page, :meth:`Rule.suspects` picks places from the facts of the inference (on ``ast``, cheap), and a libcst visit
decides each and rewrites it. libcst is imported only when a file has a suspect.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from amplint.finding import Applicability, Finding, Fix, Severity
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from amplint.claims.suspect import Suspect
    from amplint.infer.state.facts import FileFacts

_WORD = re.compile(rb"\w+")
CODE = re.compile(r"[A-Z]+[0-9]{3}")
HEADINGS = ("What it does", "Why it is bad", "How it shows", "Example", "Fix safety")
TENSOR_CODE = ("torch", "def forward(")
"""The ``context`` of rules about tensors: a file with neither has none that the inference could know of."""

DOCUMENTATION_SITE = "https://amplint.readthedocs.io/en/latest/rules"


class Evidence(str, Enum):
    """``run``: the bad examples fail when run. ``cited``: no run here can show it, so never an error, never proven."""

    RUN = "run"
    CITED = "cited"


@dataclass(frozen=True, slots=True)
class Example:
    """A whole module as source text.

    A bad example marks each hazard line with ``# expect`` at its end. ``scenario`` names the one in which it fails;
    its ``reproduce()`` then raises when run there. ``device`` is the cast policy to judge it by. ``emulated``: the
    CPU's own autocast does not show the failure; ``reproduce()`` raises in a process where ``amplint.emulation``
    has put that device's policy over the CPU's. ``pedantic``: its findings are possible ones.
    """

    source: str
    scenario: str | None = None
    device: str = "cuda"
    torch_version: str | None = None
    emulated: bool = False
    pedantic: bool = False


class Announced:
    """What is known of a rule without importing it: what it is called, and which files it has to see.

    Subclasses set the class attributes. A pack may announce its rules so, and each is imported for the first file that
    it may find something in.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    evidence: ClassVar[Evidence] = Evidence.RUN
    default: ClassVar[bool] = True
    tokens: ClassVar[tuple[str, ...]]
    """Plain strings: a file that contains none of them cannot have a finding of this rule and is not parsed for it."""

    context: ClassVar[tuple[str, ...]] = ()
    """More such strings, of which one must be there too where the tokens alone are too common; none by default."""

    devices: ClassVar[tuple[str, ...]] = ()
    """The cast policies by which it fails, where that is not all of them; ``verify`` runs its findings by the first."""
    changes: ClassVar[tuple[tuple[int, int], ...]] = ()
    """Releases of torch from which on it claims something else than before; those by which the dtypes themselves change
    are known without it. A project that runs with older ones too is judged by the last before each as well."""
    claims_failure: ClassVar[bool] = True
    """Whether a run that fails on the finding's line confirms it; a deprecation claims no failure."""
    of_weights: ClassVar[bool] = True
    """Whether what it claims of scenarios with half weights rests on these; not so where the source itself fixes the
    dtype, or where the claim is about settings, a training step or an API."""
    mend: ClassVar[str] = ""
    """A name for what mends its findings, where that mends another rule's findings of the same culprit too."""
    fix: ClassVar[Applicability | None] = None
    """The best applicability a fix of this rule can have; None where it never offers one."""
    pack: str = ""
    """The pack that brings it, which amplint sets when it loads one; empty for the built-in rules."""

    def imported(self) -> Rule:
        """The rule itself."""
        raise NotImplementedError

    def may_find(self, data: bytes) -> bool:
        """Whether a file of these bytes can have a finding of this rule, going by its tokens."""
        words = _words(data)
        for strings in (self.context, self.tokens) if self.context else (self.tokens,):
            if not any(word in words and (word is whole or whole in data) for word, whole in _spelled(strings)):
                return False
        return True

    @property
    def url(self) -> str | None:
        """Its page; a rule of a pack has none, unless it says so itself."""
        return None if self.pack else f"{DOCUMENTATION_SITE}/{self.code}/"


class Rule(Announced):
    """Base of all rules. Subclasses set the class attributes and override :meth:`suspects` and ``visit_*`` methods.

    The visitor calls ``visit_Call(node, suspect, visit)`` (likewise ``visit_With``, ``visit_ClassDef``, ``visit_Name``
    and so on, by the class name of the libcst node) for each suspect at its node; without such a method the suspect is
    reported as it is, with no fix.
    """

    bad: ClassVar[tuple[Example, ...]] = ()
    good: ClassVar[tuple[Example, ...]] = ()

    def imported(self) -> Rule:
        return self

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        """The places in one file that may deserve a finding."""
        raise NotImplementedError

    @property
    def visits(self) -> bool:
        """Whether it has a ``visit_*`` method."""
        return any(name.startswith("visit_") for name in dir(self))

    @property
    def summary(self) -> str:
        """The first sentence of the documentation."""
        return documentation(self).split("\n", 1)[0].rstrip(".")


@lru_cache(maxsize=1)
def _words(data: bytes) -> bytes:
    """The words of a file, each once: a third of it, in which what is not there is not found sooner."""
    return b" ".join({*_WORD.findall(data)})


@lru_cache(maxsize=256)
def _spelled(strings: tuple[str, ...]) -> tuple[tuple[bytes, bytes], ...]:
    """The longest word of each of some strings, and the string: the same object where it is that word."""
    found = [(max(_WORD.findall(whole), key=len, default=b""), whole) for whole in map(str.encode, strings)]
    return tuple((whole, whole) if word == whole else (word, whole) for word, whole in found)


def documentation(rule: Announced) -> str:
    """A rule's docstring with its indentation removed."""
    return inspect.getdoc(type(rule.imported())) or ""


def finding_of(
    rule: Rule, suspect: Suspect, path: Path, device: str, fix: Fix | None = None, message: str | None = None
) -> Finding:
    """The finding that a suspect makes, which no doubt drops. Cited evidence forces nothing, and never makes an
    error."""
    severity, standing = suspect.severity or rule.severity, suspect.standing
    if rule.evidence is Evidence.CITED:
        severity, standing = Severity.WARNING, replace(standing, forced=False)
    assert standing.certainty is not None
    return Finding(
        code=rule.code,
        name=rule.name,
        message=message or suspect.message,
        severity=severity,
        certainty=standing.certainty,
        filename=path,
        span=suspect.span,
        scenarios=suspect.scenarios,
        device=device,
        causes=suspect.causes,
        fix=fix,
        doubts=standing.lowering,
        also=suspect.also,
        culprit=suspect.culprit,
        mend=rule.mend,
    )
