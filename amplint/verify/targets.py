"""From paths and findings to targets: which classes to run, and which findings each may confirm. Reads source only."""

from __future__ import annotations

import ast
from dataclasses import field
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.project.files import parsed
from amplint.verify.job import Claim

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from amplint.finding import Finding
    from amplint.source import Source

EXAMPLE = "amplint_example"
"""The function, of a file or static in a class, that returns ``(module, args, kwargs)``."""

MODULE = "<module>"
"""The owner of what stands outside of every definition."""

_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Target:
    """What one child process runs: a class of a file (qualified name), a function, or, without a name, what the file's
    own example returns. ``runnable`` is False for what stands outside of both: only its expressions can run."""

    path: Path
    name: str | None
    findings: tuple[Finding, ...] = ()
    runnable: bool = True

    def __str__(self) -> str:
        return f"{self.path}::{self.name or EXAMPLE}"


@dataclass(frozen=True)
class Outline:
    """The definitions of one file."""

    tree: ast.Module
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)

    @property
    def has_example(self) -> bool:
        return EXAMPLE in self.functions

    def examples(self) -> list[str]:
        """The classes that have an example of their own."""
        return [name for name, node in self.classes.items() if EXAMPLE in _methods(node)]

    def reached(self, name: str) -> set[str]:
        """The outermost definitions of the file that this one names, directly or through others; itself left out."""
        definitions: dict[str, _Definition] = {**self.functions, **self.classes}
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            node = definitions.get(waiting.pop())
            if node is None:
                continue
            names = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)} & definitions.keys()
            waiting += names - seen
            seen |= names
        return seen - {name}

    def rows(self, name: str | None) -> list[tuple[int, int]]:
        """The first and last line of a definition; [] where there is none."""
        node = self.classes.get(name or "") or self.functions.get(name or "")
        return [(_first_row(node), node.end_lineno or node.lineno)] if node is not None else []

    def owner(self, row: int) -> tuple[str | None, bool]:
        """The outermost definition of the file around a line, and whether it is a class."""
        for name, node in (*self.classes.items(), *self.functions.items()):
            if "." not in name and _first_row(node) <= row <= (node.end_lineno or row):
                return name, isinstance(node, ast.ClassDef)
        return None, False


def outline(source: Source) -> Outline:
    """Classes (nested ones too, outside of functions) and functions of a file. Raises SourceError."""
    found = Outline(source.tree)
    _collect(source.tree.body, "", found)
    return found


def _collect(body: Sequence[ast.stmt], prefix: str, found: Outline) -> None:
    for node in body:
        if isinstance(node, ast.ClassDef):
            found.classes[prefix + node.name] = node
            _collect(node.body, f"{prefix}{node.name}.", found)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if not prefix:
                found.functions[node.name] = node
        elif isinstance(node, (ast.If, ast.Try)):
            blocks = [node.body, node.orelse, *(handler.body for handler in getattr(node, "handlers", ()))]
            for block in blocks:
                _collect(block, prefix, found)


def _methods(node: ast.ClassDef) -> set[str]:
    return {item.name for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))}


def _first_row(node: _Definition) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def targets_of(path: Path, found: Outline, findings: Sequence[Finding]) -> list[Target]:
    """The targets of a whole file: every class with an example, and every class or function that owns a finding.

    A class also answers for the findings of the functions that it reaches by name, and with an example for those of
    the classes. The file's own example comes first: which class it builds, and so speaks for, its run tells.
    """
    examples = found.examples()
    owned: dict[str, list[Finding]] = {name: [] for name in examples}
    free: dict[str, list[Finding]] = {}
    for finding in findings:
        name, is_class = found.owner(finding.span.start.row)
        if is_class and name is not None:
            owned.setdefault(name, []).append(finding)
        else:
            free.setdefault(name or MODULE, []).append(finding)
    reached = {name: found.reached(name) for name in owned}
    targets = [Target(path, None, tuple(findings))] if found.has_example else []
    for name, items in owned.items():
        more = [f for other, found_there in free.items() if other in reached[name] for f in found_there]
        if name in examples:
            more += [f for other in owned if other != name and other in reached[name] for f in owned[other]]
        targets.append(Target(path, name, tuple(dict.fromkeys([*items, *more]))))
    everywhere = {other for names in reached.values() for other in names}
    targets += [Target(path, n, tuple(items), runnable=n != MODULE) for n, items in free.items() if n not in everywhere]
    return targets


def target_named(path: Path, found: Outline, name: str, findings: Sequence[Finding]) -> Target | None:
    """One class or function of a file with the findings inside it and in what it reaches; None if there is none."""
    if name == EXAMPLE and found.has_example:
        return Target(path, None, tuple(findings))
    if name == MODULE:
        outside = tuple(finding for finding in findings if found.owner(finding.span.start.row)[0] is None)
        return Target(path, MODULE, outside, runnable=False)
    node: _Definition | None = found.classes.get(name) or found.functions.get(name)
    if node is None:
        return None
    reached = found.reached(name.partition(".")[0])
    last = node.end_lineno or node.lineno
    concerned = tuple(
        finding
        for finding in findings
        if _first_row(node) <= finding.span.start.row <= last or found.owner(finding.span.start.row)[0] in reached
    )
    return Target(path, name, concerned)


def claims_of(findings: Iterable[Finding], found: Outline) -> tuple[Claim, ...]:
    """The findings as claims: each with the lines on which a failure confirms it, and those that decide its dtypes."""
    return tuple(_claim(finding, found.tree) for finding in findings)


def _claim(finding: Finding, tree: ast.Module) -> Claim:
    """The statement of the finding; for a header (def, class, decorator, with), what it governs; and where a layer is
    constructed and kept as ``self.name``, every statement that uses it."""
    statement, around = _enclosing(finding.span.start.row, tree)
    rows = [(finding.span.start.row, finding.span.end.row)]
    governs = isinstance(statement, (_Definition, ast.With, ast.AsyncWith))
    if isinstance(statement, (_Definition, ast.With, ast.AsyncWith)):
        rows = [(statement.body[0].lineno, statement.end_lineno or rows[0][1])]
    elif statement is not None and not hasattr(statement, "body"):
        rows = [(statement.lineno, statement.end_lineno or rows[0][1])]
    if around is not None and isinstance(statement, (ast.Assign, ast.AnnAssign)):
        assigned = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        kept = {self_attribute(target) for target in assigned} - {None}
        calls = [node for node in ast.walk(around) if isinstance(node, ast.Call)]
        rows += [(c.lineno, c.end_lineno or c.lineno) for c in calls if self_attribute(c.func) in kept]
    through = tuple(dict.fromkeys(_through(finding, tree)))
    return Claim(
        finding.fingerprint,
        finding.code,
        str(finding.filename),
        tuple(rows),
        finding.scenarios,
        governs=governs,
        through=through,
    )


def _through(finding: Finding, tree: ast.Module) -> Iterator[tuple[str, int, int]]:
    """The statements of functions in which the causes of a finding lie: file, first and last line."""
    trees = {finding.filename: tree}
    for cause in finding.causes:
        if cause.filename not in trees:
            source = parsed(cause.filename)
            trees[cause.filename] = source.tree if source is not None else ast.Module([], [])
        row = cause.span.start.row
        statement, _ = _enclosing(row, trees[cause.filename])
        within = any(
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body[0].lineno <= row <= (node.end_lineno or row)
            for node in ast.walk(trees[cause.filename])
        )
        if within and statement is not None and not isinstance(statement, _Definition):
            body = getattr(statement, "body", None)
            last = body[0].lineno - 1 if body else statement.end_lineno
            yield str(cause.filename), statement.lineno, max(statement.lineno, last or 0)


def _enclosing(row: int, tree: ast.Module) -> tuple[ast.stmt | None, ast.ClassDef | None]:
    """The innermost statement and the innermost class around a line."""
    statement: ast.stmt | None = None
    around: ast.ClassDef | None = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        first = _first_row(node) if isinstance(node, _Definition) else node.lineno
        if first <= row <= (node.end_lineno or first):
            statement = node if statement is None or first >= statement.lineno else statement
            if isinstance(node, ast.ClassDef):
                around = node
    return statement, around


def self_attribute(node: ast.AST | None) -> str | None:
    """``x`` of ``self.x``; None for anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return None
