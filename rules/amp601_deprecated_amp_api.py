"""AMP601: names of ``torch.cuda.amp`` and ``torch.cpu.amp``, and the queries that went with them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.autocast_queries import cuda_only_queries
from amplint.claims.legacy_names import DEPRECATED_SINCE, LEGACY, LEGACY_MODULES, Legacy
from amplint.claims.surroundings import Surroundings
from amplint.finding import Applicability, Edit, Fix, Severity
from amplint.judge import doubts
from amplint.judge.certainty import ASSUMED, Standing
from amplint.orphans import is_exported
from amplint.rewriting.legacy_calls import Rewrite, rewrite_annotation, rewrite_bare, rewrite_call, rewrite_partial
from amplint.rule import Example, Rule, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.infer.facts import FileFacts
    from amplint.infer.references import Reference
    from amplint.source import Source
    from amplint.visit import Visit

_FIRST_OF_2 = (2, 0)
_SILENCED = re.compile(r"#.*(amplint:\s*ignore|noqa\s*($|[^:\s])|noqa:.*AMP)", re.IGNORECASE)


@dataclass(slots=True, eq=False)
class _Use:
    """One use of a deprecated name in the file; ``node`` is where its finding lies."""

    reference: Reference
    legacy: Legacy
    form: str
    node: ast.expr
    exact: bool = True
    """No precondition is in doubt; else a rewrite is unsafe."""

    def rewrite(self, source: Source, torch: str) -> Rewrite | None:
        reference, legacy = self.reference, self.legacy
        if self.form == "call":
            return rewrite_call(reference, legacy, source, torch)
        if self.form == "bare":
            return rewrite_bare(reference, legacy, source, torch)
        if self.form == "annotation":
            return rewrite_annotation(reference, legacy, source, torch)
        if self.form == "partial" and isinstance(self.node, ast.Call):
            return rewrite_partial(reference, self.node, legacy, source, torch)
        return None


@dataclass(slots=True, eq=False)
class _Group:
    """The uses through one imported name, whose imports go when all of them are rewritten."""

    uses: list[_Use] = field(default_factory=list)
    _done: _Rewritten | None = None

    def rewritten(self, visit: Visit) -> _Rewritten:
        """The rewrites of all uses, made once for all their findings."""
        if self._done is None:
            imports: list[Edit] = []
            rewrites = {id(use): _rewrite(use, visit, imports) for use in self.uses}
            self._done = _Rewritten(rewrites, tuple(dict.fromkeys(imports)))
        return self._done


class _Rewritten:
    """How the uses of a group are rewritten, by ``id``, and what that needs imported."""

    def __init__(self, rewrites: dict[int, Rewrite | None], imports: tuple[Edit, ...]) -> None:
        self.rewrites = rewrites
        self.imports = imports
        made = [rewrite for rewrite in rewrites.values() if rewrite is not None]
        self.whole = len(made) == len(rewrites)
        """Whether all uses can be rewritten: then they are so together, as the import goes."""
        self.edits = tuple(sorted({*imports, *(edit for rewrite in made for edit in rewrite.edits)}))
        self.safe = all(rewrite.applicability is Applicability.SAFE for rewrite in made)


class DeprecatedAmpApi(Rule):
    """The code uses `torch.cuda.amp`, `torch.cpu.amp` or an autocast query of one device, deprecated since torch 2.4.

    What it does
    ------------
    Reports every use of `autocast`, `GradScaler`, `custom_fwd` and `custom_bwd` from `torch.cuda.amp` or
    `torch.cpu.amp`, and of `torch.is_autocast_cpu_enabled`, `torch.get_autocast_gpu_dtype` and their relatives, through
    whatever import or alias. An import that the file itself never uses is reported where it stands. Silent below
    torch 2.4, and where the file chooses by torch's version or falls back after an exception. Where the project still
    supports a release without the successor (`torch.amp.autocast` is there from 1.13 on, `torch.amp.GradScaler` from
    2.3, the others from 2.4), the finding has no fix. It is no more than likely there, and where nothing states which
    releases the project supports, unless all of torch 2 have the successor.

    A `torch.get_autocast_gpu_dtype()` that may ask the wrong device is AMP602's.

    Why it is bad
    -------------
    The old names are bound to one device, warn at each use and will go. Replacing them by hand goes wrong easily:
    `torch.amp.autocast` takes its arguments in another order, and without `dtype` it inherits the dtype of the region
    around it, while `torch.cuda.amp.autocast()` always means float16.

    How it shows
    ------------
    ```text
    FutureWarning: `torch.cuda.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cuda', args...)`
    DeprecationWarning: torch.get_autocast_gpu_dtype() is deprecated. Please use torch.get_autocast_dtype('cuda')
    ```

    Example
    -------
    ```python
    from torch.cuda.amp import autocast

    with autocast(use_amp):
        loss = model(batch)
    ```
    Use instead:
    ```python
    import torch

    with torch.amp.autocast("cuda", dtype=torch.float16, enabled=use_amp):
        loss = model(batch)
    ```

    Fix safety
    ----------
    Safe. Positional arguments are named, the old default dtype is written out, and imports follow. When every use of
    an imported name can be rewritten, one fix rewrites them all and drops the import; `__init__.py` and names in
    `__all__` keep it. The weight cache, which the old names always switched on, is written out in files that mention
    `cache_enabled`. The fix is unsafe where the file compares classes (`isinstance` with the old class), where a
    `functools.partial` leaves `enabled` to its callers, and for `is_autocast_*_enabled` in files that use TorchScript,
    which does not know the new form. There is none for `*args`, `**kwargs`, a call inside
    an f-string and the bare class as a value.
    """

    code: ClassVar[str] = "AMP601"
    name: ClassVar[str] = "deprecated-amp-api"
    severity: ClassVar[Severity] = Severity.WARNING
    of_weights = False
    tokens: ClassVar[tuple[str, ...]] = ("autocast", "GradScaler", "custom_fwd", "custom_bwd")
    fix: ClassVar[Applicability | None] = Applicability.SAFE

    claims_failure = False
    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import warnings

from torch.cuda.amp import GradScaler, autocast


def reproduce():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        scaler = GradScaler(1024.0)  # expect
        with autocast(False):  # expect
            return scaler
"""
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch


def train(model, batch, use_amp):
    scaler = torch.amp.GradScaler("cuda", enabled=use_amp)
    with torch.amp.autocast("cuda", dtype=torch.float16, enabled=use_amp):
        loss = model(batch)
    scaler.scale(loss).backward()
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        if facts.torch_version < DEPRECATED_SINCE:
            return
        if not any(r.name in LEGACY or r.name.rpartition(".")[0] in LEGACY for r in facts.references):
            return
        around = Surroundings.of(facts.source.tree)
        uses = _uses(facts, around)
        groups = _groups(facts, around, uses)
        named_only = all(use.form == "annotation" for use in uses)
        for use in uses:
            old = use.reference.name
            message = f"{old} is deprecated since torch 2.4: use {_successor(use.legacy, facts)}"
            span = facts.source.span(use.node)
            group = groups.get(_root(use.reference), _Group([use]))
            data = (use, group if use in group.uses else _Group([use]))
            likely = use.form in ("value", "annotation") or not _is_replaceable(use.legacy, facts)
            suspect = Suspect(span, span, message, facts.all_scenarios(), Standing(forced=not likely), data=data)
            yield suspect.doubted(doubts.NAMED_ONLY) if named_only else suspect
        for alias, name in _unused_imports(facts, around):
            message = (
                f"imports {name}, deprecated since torch 2.4: its replacement is {_successor(LEGACY[name], facts)}"
            )
            span = facts.source.span(alias)
            yield Suspect(span, span, message, facts.all_scenarios(), ASSUMED)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        self._report(suspect, visit)

    def visit_Name(self, node: cst.Name, suspect: Suspect, visit: Visit) -> None:
        self._report(suspect, visit)

    def visit_Attribute(self, node: cst.Attribute, suspect: Suspect, visit: Visit) -> None:
        self._report(suspect, visit)

    def _report(self, suspect: Suspect, visit: Visit) -> None:
        if suspect.data is None:
            visit.report(suspect)
            return
        use, group = suspect.data
        done = group.rewritten(visit)
        rewrite = done.rewrites[id(use)]
        if rewrite is None:
            visit.report(suspect)
            return
        message = f"Use {use.legacy.modern}"
        if done.whole:
            safe = done.safe and all(member.exact for member in group.uses)
            edits = done.edits
        else:
            safe = use.exact and rewrite.applicability is Applicability.SAFE
            edits = tuple(sorted({*done.imports, *rewrite.edits}))
        visit.report(suspect, Fix(Applicability.SAFE if safe else Applicability.UNSAFE, message, edits))


def _is_replaceable(legacy: Legacy, facts: FileFacts) -> bool:
    """Whether every torch that the file has to run with has what replaces a name; where nothing says which those are,
    every one of torch 2."""
    return legacy.successor_since <= (facts.oldest or _FIRST_OF_2)


def _successor(legacy: Legacy, facts: FileFacts) -> str:
    """What replaces a name, and from when on where the file has to run with a release that lacks it."""
    since = legacy.successor_since
    return (
        legacy.modern
        if since <= facts.oldest_torch
        else f"{legacy.modern} where torch is {since[0]}.{since[1]} or later"
    )


def _rewrite(use: _Use, visit: Visit, imports: list[Edit]) -> Rewrite | None:
    """The rewrite of one use with the file's own spelling of torch, which ``imports`` makes available.

    None where a release that the file has to run with lacks what it would name.
    """
    if use.legacy.successor_since > visit.facts.oldest_torch:
        return None
    written = ast.unparse(use.reference.node)
    torch, dot, rest = written.partition(".")
    if dot and use.reference.name == f"torch.{rest}":
        return use.rewrite(visit.source, torch)
    torch, edits = visit.import_name("torch")
    rewrite = use.rewrite(visit.source, torch)
    if rewrite is not None:
        imports += edits
    return rewrite


def _uses(facts: FileFacts, around: Surroundings) -> list[_Use]:
    """The uses to report, in source order."""
    of_602 = {id(query.call) for query in cuda_only_queries(facts, around)}
    by_version = {
        _local(reference)
        for reference in facts.references
        if isinstance(reference.node, ast.alias) and around.version_guarded(reference.node)
    }
    compared: set[str] = set()
    uses = []
    for reference in facts.references:
        node, legacy = reference.node, LEGACY.get(reference.name)
        if legacy is None or isinstance(node, ast.alias) or not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        if _is_compared(node, around):
            compared.add(legacy.target)
        if reference.call is not None and id(reference.call) in of_602:
            continue
        if around.version_guarded(node) or _root(reference) in by_version:
            continue
        uses.append(_use(reference, node, legacy, around))
    scripted = any(reference.name.startswith("torch.jit") for reference in facts.references)
    for use in uses:
        target = use.legacy.target
        use.exact = target not in compared and not (scripted and target == "is_autocast_enabled")
    return uses


def _use(reference: Reference, node: ast.expr, legacy: Legacy, around: Surroundings) -> _Use:
    if reference.call is not None:
        # Quotes inside an f-string would end it before Python 3.12, so a call in one has no rewrite.
        quoted = any(isinstance(ancestor, ast.JoinedStr) for ancestor in around.ancestors(node))
        return _Use(reference, legacy, "quoted call" if quoted else "call", reference.call)
    parent = around.parent(node)
    if isinstance(parent, ast.Call) and parent.args[:1] == [node] and _is_partial(parent.func):
        return _Use(reference, legacy, "partial", parent)
    if reference.decorates is not None:
        return _Use(reference, legacy, "bare", node)
    return _Use(reference, legacy, "annotation" if around.in_annotation(node) else "value", node)


def _is_partial(callee: ast.expr) -> bool:
    return ast.unparse(callee) in ("partial", "functools.partial")


def _is_compared(node: ast.expr, around: Surroundings) -> bool:
    """Whether a class is asked for by identity: ``isinstance``, a comparison, a base class."""
    for ancestor in around.ancestors(node):
        if isinstance(ancestor, ast.Call) and ast.unparse(ancestor.func) in ("isinstance", "issubclass"):
            return True
        if isinstance(ancestor, ast.ClassDef):
            return node in ancestor.bases
        if isinstance(ancestor, ast.Compare):
            return True
        if isinstance(ancestor, ast.Call | ast.stmt):
            return False
    return False


def _root(reference: Reference) -> str:
    node = reference.node
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _local(reference: Reference) -> str:
    """The name that an import binds."""
    assert isinstance(reference.node, ast.alias)
    return reference.node.asname or reference.node.name.partition(".")[0]


def _groups(facts: FileFacts, around: Surroundings, uses: list[_Use]) -> dict[str, _Group]:
    """By local name: the uses of imports that can go, because every use is to be rewritten."""
    groups: dict[str, _Group] = {}
    reads: dict[str, int] = {}
    imports: dict[str, list[Reference]] = {}
    for reference in facts.references:
        if isinstance(reference.node, ast.alias):
            imports.setdefault(_local(reference), []).append(reference)
        else:
            reads[_root(reference)] = reads.get(_root(reference), 0) + 1
    source = facts.source
    for local, found in imports.items():
        members = [use for use in uses if _root(use.reference) == local and not _silenced(use, source)]
        removable = all(r.name in LEGACY or (r.name in LEGACY_MODULES and _binds_itself(r)) for r in found)
        if members and removable and len(members) == reads.get(local, 0) and not is_exported(source, local):
            groups[local] = _Group(members)
    return groups


def _binds_itself(reference: Reference) -> bool:
    """``import torch.cuda.amp`` binds torch; with a name of its own, or out of torch.cuda, it binds the module."""
    assert isinstance(reference.node, ast.alias)
    return isinstance(reference.statement, ast.ImportFrom) or reference.node.asname is not None


def _silenced(use: _Use, source: Source) -> bool:
    span = source.span(use.node)
    return any(_SILENCED.search(source.line(row)) for row in range(span.start.row, span.end.row + 1))


def _unused_imports(facts: FileFacts, around: Surroundings) -> Iterable[tuple[ast.alias, str]]:
    """Imports of deprecated names that nothing in the file reads, or that others may read out of it."""
    read = {_root(reference) for reference in facts.references if not isinstance(reference.node, ast.alias)}
    for reference in facts.references:
        alias = reference.node
        if not isinstance(alias, ast.alias) or reference.name not in LEGACY or around.version_guarded(alias):
            continue
        if _local(reference) not in read or is_exported(facts.source, _local(reference)):
            yield alias, reference.name
