"""A rule pack that needs no inference: it stands in for the built-in one where the engine itself is tested."""

from __future__ import annotations

import ast
import multiprocessing
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from amplint.finding import Applicability, Cause, Doubt, Effect, Fix, Severity
from amplint.judge.certainty import ASSUMED, FORCED
from amplint.rule import Evidence, Example, Rule, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterator

    import libcst as cst

    from amplint.infer.state.facts import FileFacts
    from amplint.visit import Visit


class _Method(Rule):
    """Flags every call of one method."""

    severity = Severity.ERROR
    method: str
    standing = FORCED

    def suspects(self, facts: FileFacts) -> Iterator[Suspect]:
        for node in ast.walk(facts.source.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == self.method:
                span = facts.span(node)
                causes = (Cause(facts.path, facts.span(node.func.value), f"float32: .{self.method}() is called on it"),)
                yield Suspect(span, span, f"{self.method}() is called", facts.all_scenarios(), self.standing, causes)


class Half(_Method):
    """Flags half().

    What it does
    ------------
    Rewrites it to a cast.
    """

    code, name, tokens, method = "TOY101", "toy-half", ("half",), "half"
    fix = Applicability.SAFE
    bad = (Example("x.half()  # expect\n", "fp16"),)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        import libcst as cst

        assert isinstance(node.func, cst.Attribute)
        dtype, edits = visit.import_name("torch", "float16")
        new = f"{visit.code(node.func.value)}.to({dtype})"
        visit.report(suspect, visit.fix(Applicability.SAFE, "Name the dtype", *edits, visit.replace(node, new)))


class Double(_Method):
    """Flags double() and has no visit method."""

    code, name, tokens, method = "TOY102", "toy-double", ("double",), "double"
    severity = Severity.WARNING
    standing = ASSUMED


class Boom(_Method):
    """Raises in its visit method."""

    code, name, tokens, method = "TOY103", "toy-boom", ("boom",), "boom"

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        raise TypeError("a rule's own mistake")


class Breaks(_Method):
    """Has a fix that breaks the file."""

    code, name, tokens, method = "TOY104", "toy-breaks", ("breaks",), "breaks"
    fix = Applicability.SAFE

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, visit.fix(Applicability.SAFE, "Break it", visit.replace(node, ")(")))


class Useless(_Method):
    """Has a fix that leaves its finding in place."""

    code, name, tokens, method = "TOY105", "toy-useless", ("useless",), "useless"
    fix = Applicability.SAFE

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, visit.fix(Applicability.SAFE, "Add nothing", visit.append(node, ".float()")))


class Unsafe(_Method):
    """Has an unsafe fix."""

    code, name, tokens, method = "TOY106", "toy-unsafe", ("bfloat16",), "bfloat16"
    fix = Applicability.UNSAFE

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        import libcst as cst

        assert isinstance(node.func, cst.Attribute)
        visit.report(suspect, visit.fix(Applicability.UNSAFE, "Drop it", visit.replace(node, node.func.value)))


class Maybe(_Method):
    """Is only ever possible."""

    code, name, tokens, method = "TOY107", "toy-maybe", ("maybe",), "maybe"
    standing = ASSUMED.doubted(Doubt("toy-doubt", ("TOY107",), Effect.POSSIBLE, "It is a toy."))


class Cited(_Method):
    """Claims more than cited evidence allows."""

    code, name, tokens, method = "TOY108", "toy-cited", ("cited",), "cited"
    evidence = Evidence.CITED


class Dropped(_Method):
    """Decides that none of its suspects is a finding."""

    code, name, tokens, method = "TOY109", "toy-dropped", ("dropped",), "dropped"

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        return None


class Off(_Method):
    """Is off by default."""

    code, name, tokens, method = "TOY201", "toy-off", ("off",), "off"
    default = False


class Shown(_Method):
    """Has a fix that is only shown."""

    code, name, tokens, method = "TOY202", "toy-shown", ("shown",), "shown"
    fix = Applicability.DISPLAY

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, Fix(Applicability.DISPLAY, "Think", (visit.replace(node, "thought"),)))


class Crashes(_Method):
    """Raises while it looks for suspects."""

    code, name, tokens, method = "TOY203", "toy-crashes", ("crashes",), "crashes"

    def suspects(self, facts: FileFacts) -> Iterator[Suspect]:
        raise ValueError("no facts")


class Dies(_Method):
    """Ends the process that it runs in, unless that is the first one."""

    code, name, tokens, method = "TOY204", "toy-dies", ("dies",), "dies"

    def suspects(self, facts: FileFacts) -> Iterator[Suspect]:
        if multiprocessing.parent_process() is not None:
            os._exit(3)
        return iter(())


class Long(_Method):
    """Has a message that takes long to send from one process to another."""

    code, name, tokens, method = "TOY205", "toy-long", ("long",), "long"

    def suspects(self, facts: FileFacts) -> Iterator[Suspect]:
        for suspect in super().suspects(facts):
            yield replace(suspect, message="x" * 30_000_000)


def all_rules() -> list[Rule]:
    kinds = (Half, Double, Boom, Breaks, Useless, Unsafe, Maybe, Cited, Dropped, Off, Shown, Crashes, Dies, Long)
    return [rule() for rule in kinds]
