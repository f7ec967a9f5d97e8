"""The libcst visitor that carries rules over a suspect file.

Rules find suspects on ``ast``, which is cheap; here the statement that holds one is parsed once more, losslessly, and
the suspect's own ``visit_*`` method sees its node, decides, and builds the rewrite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from amplint.claims.caught import is_caught
from amplint.complex_casts import casts_complex
from amplint.finding import Applicability, Edit, Finding, Fix, Severity
from amplint.importing import Imports
from amplint.lossless import Lossless
from amplint.orphans import without_orphans
from amplint.rule_base import Rule, finding_of
from amplint.source import Location, Source, Span

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplint.claims.suspect import Suspect
    from amplint.infer.state.facts import FileFacts

    Visitor = Callable[[cst.CSTNode, Suspect, "Visit"], None]

_POSTFIX = (
    *(cst.Name, cst.Attribute, cst.Call, cst.Subscript),
    *(cst.BaseString, cst.BaseList, cst.BaseDict, cst.BaseSet, cst.Float, cst.Imaginary),
)
"""Expressions that a trailer such as ``.to(...)`` can follow without parentheses."""


class RuleFailure(Exception):
    """A rule raised: an internal error of that rule, not of the file. The cause is chained."""

    def __init__(self, rule: Rule, error: Exception) -> None:
        super().__init__(f"{rule.code} ({type(rule).__module__}): {type(error).__name__}: {error}")
        self.rule = rule
        self.error = error


def run_rules(
    source: Source, facts: FileFacts, suspects: list[tuple[Rule, Suspect]], failures: list[RuleFailure] | None = None
) -> list[Finding]:
    """Carry each suspect to its rule's ``visit_*`` method and collect what the rules report.

    A suspect that a doubt drops is passed over. One whose rule visits no node at its place, or whose statement libcst
    refuses, is reported as it is, with no fix. A rule that raises is appended to ``failures``; without that list
    RuleFailure propagates.
    """
    findings: list[Finding] = []
    visit = Visit(source, facts)
    for rule, suspect in suspects:
        if suspect.standing.certainty is None:
            continue
        method, node = _choose(rule, visit.at(suspect.node))
        if method is None or node is None:
            findings.append(finding_of(rule, suspect, facts.path, facts.device))
            continue
        visit._begin(rule, findings)
        try:
            method(node, suspect, visit)
        except Exception as error:
            failure = RuleFailure(rule, error)
            if failures is None:
                raise failure from error
            failures.append(failure)
    return findings


def _choose(rule: Rule, nodes: list[cst.CSTNode]) -> tuple[Visitor | None, cst.CSTNode | None]:
    """The innermost node at a place that the rule has a visit method for."""
    for node in nodes:
        method = getattr(rule, f"visit_{type(node).__name__}", None)
        if method is not None:
            return method, node
    return None, None


class Visit:
    """What a rule's ``visit_*`` method works with: the file, its facts, and the means to report and to rewrite."""

    def __init__(self, source: Source, facts: FileFacts) -> None:
        self.source = source
        self.facts = facts
        self._lossless = Lossless(source)
        self._imports: Imports | None = None
        self._rule: Rule | None = None
        self._findings: list[Finding] = []
        self._last_edits: tuple[tuple[Edit, ...], tuple[Edit, ...]] = ((), ())
        """The edits of the fix reported last, and those with the imports that they orphan: fixes may share them all."""

    def _begin(self, rule: Rule, findings: list[Finding]) -> None:
        self._rule, self._findings = rule, findings

    def report(self, suspect: Suspect, fix: Fix | None = None, message: str | None = None) -> None:
        """Make the suspect a finding; a suspect never reported is dropped.

        The fix takes out the imports that it orphans. A safe one of an error that the file itself catches becomes
        unsafe: what catches it ran, and no longer will. One that casts what may be complex is left out.
        """
        assert self._rule is not None
        if fix is not None and casts_complex(self.source, fix):
            fix = None
        if fix is not None:
            fix = self._completed(suspect, fix)
        self._findings.append(finding_of(self._rule, suspect, self.facts.path, self.facts.device, fix, message))

    def _completed(self, suspect: Suspect, fix: Fix) -> Fix:
        assert self._rule is not None
        raises = (suspect.severity or self._rule.severity) is Severity.ERROR
        caught = fix.applicability is Applicability.SAFE and raises and is_caught(self.source, suspect.span)
        if fix.edits is not self._last_edits[0]:
            if any(edit.span.end.row > len(self.source.lines) + 1 for edit in fix.edits):
                raise ValueError("an edit of its fix lies behind the end of the file")
            orphans = without_orphans(self.source, fix.edits)
            self._last_edits = (fix.edits, tuple(sorted({*fix.edits, *orphans})) if orphans else fix.edits)
        return Fix(Applicability.UNSAFE if caught else fix.applicability, fix.message, self._last_edits[1])

    def fix(self, applicability: Applicability, message: str, *edits: Edit) -> Fix:
        """A fix of several edits, in source order."""
        return Fix(applicability, message, tuple(sorted(edits)))

    @property
    def module(self) -> cst.Module:
        """The whole file, which the first call parses, with nodes of its own: those that a rule visits belong to a
        module of their statement alone."""
        return self._lossless.module

    def at(self, span: Span) -> list[cst.CSTNode]:
        """The nodes that lie at a place, the inner ones first."""
        return self._lossless.at(span)

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node lies, without the parentheses around it. Raises KeyError for one that was made anew."""
        return self._lossless.span(node)

    def outer_span(self, node: cst.CSTNode) -> Span:
        """Where a node lies, with the parentheses around it."""
        return self._lossless.outer_span(node)

    def code(self, node: cst.CSTNode) -> str:
        """The node's source text, with the parentheses around it, as it stands in the file."""
        return self.source.segment(self.outer_span(node))

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node around this one; None for the module."""
        return self._lossless.parent(node)

    def replace(self, node: cst.CSTNode, new: str | cst.CSTNode) -> Edit:
        """Replace a node; parentheses around it stay, and words beside it stay apart from it: ``(a)else b``."""
        span, text = self.span(node), new if isinstance(new, str) else self._lossless.code_for(new)
        before = self.source.line(span.start.row)[span.start.column - 2 : span.start.column - 1]
        after = self.source.line(span.end.row)[span.end.column - 1 : span.end.column]
        left = " " if _is_of_word(before) and _is_of_word(text[:1]) else ""
        right = " " if _is_of_word(after) and _is_of_word(text[-1:]) else ""
        return Edit(span, f"{left}{text}{right}")

    def append(self, node: cst.CSTNode, text: str) -> Edit:
        """Put a trailer such as ``.to(x.dtype)`` after an expression, in parentheses where it needs them.

        ``a + b`` becomes ``(a + b).to(x.dtype)``. An argument or a starred element stands for its value.
        """
        while isinstance(node, cst.Arg | cst.StarredElement | cst.Element | cst.Index):
            node = node.value
        outer = self.outer_span(node)
        if isinstance(node, _POSTFIX) or getattr(node, "lpar", None):
            return Edit(Span(outer.end, outer.end), text)
        return Edit(outer, f"({self.source.segment(outer)}){text}")

    def insert_before(self, node: cst.CSTNode, text: str) -> Edit:
        """Put text before a node: on lines of its own before a statement, directly before an expression."""
        start = self._start(node)
        if isinstance(node, cst.BaseStatement | cst.BaseSmallStatement):
            return self.insert_statement(start, text)
        return Edit(Span(start, start), text)

    def insert_statement(self, start: Location, text: str) -> Edit:
        """Put a statement before the one that starts somewhere, on a line of its own if that one does."""
        before = self.source.line(start.row)[: start.column - 1]
        return Edit(Span(start, start), f"{text}\n{before}" if not before.strip() else f"{text}; ")

    def insert_after(self, line: cst.SimpleStatementLine, text: str) -> Edit:
        """Put a statement on a line of its own behind a line of simple statements."""
        start, row = self._start(line), self.span(line).end.row
        indent = self.source.line(start.row)[: start.column - 1]
        end = Location(row, len(self.source.line(row)) + 1)
        return Edit(Span(end, end), f"\n{indent}{text}")

    def delete(self, node: cst.CSTNode) -> Edit:
        """Take a node out: a statement with its line (the only one of a block becomes ``pass``), an argument or an
        imported name with its comma, a decorator with its line, an expression as it stands."""
        if isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement | cst.Decorator):
            return self._delete_lines(node)
        if isinstance(node, cst.BaseSmallStatement):
            parent = self.parent(node)
            if isinstance(parent, cst.SimpleStatementLine) and len(parent.body) == 1:
                return self._delete_lines(parent)
            return self.replace(node, "pass")
        if isinstance(node, cst.Arg | cst.ImportAlias | cst.Element | cst.WithItem):
            return self._delete_item(node)
        return Edit(self.outer_span(node), "")

    def argument(self, call: cst.Call, *where: str | int) -> cst.Arg | None:
        """The first argument that is given by one of the keywords, or at one of the positions (from 0).

        A position after ``*args`` cannot be told and gives None.
        """
        for key in where:
            if isinstance(key, str):
                found = next((a for a in call.args if a.keyword is not None and a.keyword.value == key), None)
            elif any(a.star for a in call.args[: key + 1]):
                found = None
            else:
                found = call.args[key] if key < len(call.args) and call.args[key].keyword is None else None
            if found is not None:
                return found
        return None

    def add_argument(self, call: cst.Call, text: str) -> Edit:
        """Add ``name=value`` after the arguments of a call, in the layout that the call has."""
        if not call.args:
            end = self.span(call).end
            place = Location(end.row, end.column - 1)
            return Edit(Span(place, place), text)
        last = call.args[-1]
        span = self.span(last)
        if isinstance(last.value, cst.GeneratorExp) and not last.value.lpar:
            return Edit(span, f"({self.source.segment(span)}), {text}")
        indent = self.source.line(span.start.row)[: span.start.column - 1]
        own_line = not indent.strip() and span.start.row != self.span(call).start.row
        if isinstance(last.comma, cst.Comma):
            comma = self.span(last.comma).end
            if not own_line:
                return Edit(Span(comma, comma), f" {text},")
            place = Location(comma.row, len(self.source.line(comma.row)) + 1)
            if self.span(call).end.row == comma.row:
                place = comma
            return Edit(Span(place, place), f"\n{indent}{text},")
        return Edit(Span(span.end, span.end), f",\n{indent}{text}" if own_line else f", {text}")

    def import_name(self, module: str, name: str | None = None) -> tuple[str, list[Edit]]:
        """How ``module.name`` (or the module) is spelled in this file, and the edits that make it importable.

        ``import torch as t`` gives ``t.amp.autocast`` and no edit. The names already bound in the file are respected.
        """
        if self._imports is None:
            self._imports = Imports(self.source)
        return self._imports.spell(module, name)

    def _start(self, node: cst.CSTNode) -> Location:
        if isinstance(node, cst.FunctionDef | cst.ClassDef) and node.decorators:
            return self.span(node.decorators[0]).start
        return self.outer_span(node).start

    def _delete_lines(self, node: cst.CSTNode) -> Edit:
        parent = self.parent(node)
        if isinstance(parent, cst.IndentedBlock) and len(parent.body) == 1:
            return Edit(Span(self._start(node), self.span(node).end), "pass")
        return Edit(Span(Location(self._start(node).row, 1), Location(self.span(node).end.row + 1, 1)), "")

    def _delete_item(self, node: cst.Arg | cst.ImportAlias | cst.Element | cst.WithItem) -> Edit:
        parent = self.parent(node)
        siblings = _items(parent)
        index = next(i for i, sibling in enumerate(siblings) if sibling is node)
        span = self.span(node)
        if len(siblings) == 1 and isinstance(parent, cst.Import | cst.ImportFrom):
            return self.delete(parent)
        if index + 1 < len(siblings):
            return Edit(Span(span.start, self.span(siblings[index + 1]).start), "")
        start = self.span(siblings[index - 1]).end if index else span.start
        return Edit(Span(start, span.end), "")


def _is_of_word(text: str) -> bool:
    return text.isalnum() or text == "_"


def _items(parent: cst.CSTNode | None) -> list[cst.CSTNode]:
    for field in ("args", "names", "elements", "items"):
        items = getattr(parent, field, None)
        if isinstance(items, list | tuple):
            return list(items)
    raise ValueError(f"no items in {type(parent).__name__}")
