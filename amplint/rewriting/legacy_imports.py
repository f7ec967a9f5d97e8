"""Uses of deprecated names that are rewritten together, since the import that they share then goes."""

from __future__ import annotations

import ast
import re
from dataclasses import field
from typing import TYPE_CHECKING

from amplint.claims.legacy_names import LEGACY, LEGACY_MODULES
from amplint.claims.legacy_uses import bound_name, root_of
from amplint.finding import Applicability
from amplint.frozen import dataclass
from amplint.orphans import is_exported
from amplint.rewriting.legacy_calls import rewrite_annotation, rewrite_bare, rewrite_call, rewrite_partial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.claims.legacy_uses import LegacyUse
    from amplint.claims.surroundings import Surroundings
    from amplint.finding import Edit
    from amplint.infer.state.facts import FileFacts
    from amplint.infer.syntax.references import Reference
    from amplint.rewriting.legacy_calls import Rewrite
    from amplint.source import Source
    from amplint.visit import Visit

_SILENCED = re.compile(r"#.*(amplint:\s*ignore|noqa\s*($|[^:\s])|noqa:.*AMP)", re.IGNORECASE)


@dataclass(slots=True, eq=False)
class Group:
    """The uses through one imported name, whose imports go when all of them are rewritten."""

    uses: list[LegacyUse] = field(default_factory=list)
    _done: Rewritten | None = None

    def rewritten(self, visit: Visit) -> Rewritten:
        """The rewrites of all uses, made once for all their findings."""
        if self._done is None:
            imports: list[Edit] = []
            rewrites = {id(use): _rewrite(use, visit, imports) for use in self.uses}
            exact = all(use.exact for use in self.uses)
            self._done = Rewritten(rewrites, tuple(dict.fromkeys(imports)), exact)
        return self._done


class Rewritten:
    """How the uses of a group are rewritten, by ``id``, and what that needs imported."""

    def __init__(self, rewrites: dict[int, Rewrite | None], imports: tuple[Edit, ...], exact: bool) -> None:
        self.rewrites = rewrites
        self.imports = imports
        made = [rewrite for rewrite in rewrites.values() if rewrite is not None]
        self.whole = len(made) == len(rewrites)
        """Whether all uses can be rewritten: then they are so together, as the import goes."""
        self.edits = tuple(sorted({*imports, *(edit for rewrite in made for edit in rewrite.edits)}))
        self.safe = exact and all(rewrite.applicability is Applicability.SAFE for rewrite in made)


def groups_of(facts: FileFacts, uses: list[LegacyUse]) -> dict[str, Group]:
    """By local name: the uses of imports that can go, because every use is to be rewritten."""
    groups: dict[str, Group] = {}
    reads: dict[str, int] = {}
    imports: dict[str, list[Reference]] = {}
    for reference in facts.references:
        if isinstance(reference.node, ast.alias):
            imports.setdefault(bound_name(reference), []).append(reference)
        else:
            reads[root_of(reference)] = reads.get(root_of(reference), 0) + 1
    source = facts.source
    for local, found in imports.items():
        members = [use for use in uses if root_of(use.reference) == local and not _silenced(use, source)]
        removable = all(r.name in LEGACY or (r.name in LEGACY_MODULES and _binds_itself(r)) for r in found)
        if members and removable and len(members) == reads.get(local, 0) and not is_exported(source, local):
            groups[local] = Group(members)
    return groups


def _binds_itself(reference: Reference) -> bool:
    """``import torch.cuda.amp`` binds torch; with a name of its own, or out of torch.cuda, it binds the module."""
    assert isinstance(reference.node, ast.alias)
    return isinstance(reference.statement, ast.ImportFrom) or reference.node.asname is not None


def _silenced(use: LegacyUse, source: Source) -> bool:
    span = source.span(use.node)
    return any(_SILENCED.search(source.line(row)) for row in range(span.start.row, span.end.row + 1))


def _rewrite(use: LegacyUse, visit: Visit, imports: list[Edit]) -> Rewrite | None:
    """The rewrite of one use with the file's own spelling of torch, which ``imports`` makes available.

    None where a release that the file has to run with lacks what it would name.
    """
    if use.legacy.successor_since > visit.facts.oldest_torch:
        return None
    written = ast.unparse(use.reference.node)
    torch, dot, rest = written.partition(".")
    if dot and use.reference.name == f"torch.{rest}":
        return _written(use, visit.source, torch)
    torch, edits = visit.import_name("torch")
    rewrite = _written(use, visit.source, torch)
    if rewrite is not None:
        imports += edits
    return rewrite


def _written(use: LegacyUse, source: Source, torch: str) -> Rewrite | None:
    """The rewrite of one use, by its form; None where it has none."""
    reference, legacy = use.reference, use.legacy
    if use.form == "call":
        return rewrite_call(reference, legacy, source, torch)
    if use.form == "bare":
        return rewrite_bare(reference, legacy, source, torch)
    if use.form == "annotation":
        return rewrite_annotation(reference, legacy, source, torch)
    if use.form == "partial" and isinstance(use.node, ast.Call):
        return rewrite_partial(reference, use.node, legacy, source, torch)
    return None


def unused_imports(facts: FileFacts, around: Surroundings) -> Iterator[tuple[ast.alias, str, bool]]:
    """Imports of deprecated names that nothing in the file reads, or that others may read out of it, with whether they
    may."""
    read = {root_of(reference) for reference in facts.references if not isinstance(reference.node, ast.alias)}
    for reference in facts.references:
        alias = reference.node
        if not isinstance(alias, ast.alias) or reference.name not in LEGACY or around.version_guarded(alias):
            continue
        exported = is_exported(facts.source, bound_name(reference))
        if exported or bound_name(reference) not in read:
            yield alias, reference.name, exported
