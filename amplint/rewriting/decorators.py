"""How ``custom_fwd`` and ``custom_bwd`` are added to an autograd Function, or put right on it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.custom_autograd import BACKWARD, FORWARD, SINCE
from amplint.finding import Applicability, Edit
from amplint.source import Location, Span

if TYPE_CHECKING:
    from amplint.claims.decorator_wiring import Wiring
    from amplint.claims.suspect import Suspect
    from amplint.infer.state.facts import FileFacts
    from amplint.infer.state.function_facts import AutogradFunction
    from amplint.visit import Visit

_BASES = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})


def report_missing(suspect: Suspect, visit: Visit) -> None:
    """Report one of two missing decorators; the fix adds both, since one alone is worse than none."""
    function: AutogradFunction = suspect.data
    facts = visit.facts
    if function.setup_context is not None or facts.oldest_torch < SINCE or not _plain_base(facts, function.node):
        visit.report(suspect)
        return
    spelled, edits = _spellings(visit)
    for method, role in ((function.forward, FORWARD), (function.backward, BACKWARD)):
        assert method is not None
        edits.append(_insert_decorator(visit, method, f'{spelled[role]}(device_type="{facts.device}")'))
    visit.report(suspect, visit.fix(Applicability.UNSAFE, "Run backward in the autocast state of forward", *edits))


def rewired(wiring: Wiring, visit: Visit) -> list[Edit]:
    """Each decorator on its own method, with the arguments that are there; empty where that is not clear."""
    function, written = wiring.function, (*wiring.forward, *wiring.backward)
    casts = [custom.cast_inputs for custom in written if custom.cast_inputs is not None]
    named = all(custom.name is not None and custom.device_type is not None for custom in written)
    if function.forward is None or function.backward is None or function.setup_context is not None:
        return []
    if visit.facts.oldest_torch < SINCE or not named or wiring.device is None or len(casts) > 1:
        return []
    spelled, edits = _spellings(visit)
    for method, role, own in (
        (function.forward, FORWARD, wiring.forward),
        (function.backward, BACKWARD, wiring.backward),
    ):
        if len(own) > 1:
            return []
        if own and own[0].role == role:
            continue
        text = f"{spelled[role]}(device_type={wiring.device}"
        if role == FORWARD and casts:
            text += f", cast_inputs={visit.source.segment(visit.source.span(casts[0]))}"
        if own:
            edits.append(Edit(visit.source.span(own[0].node), f"{text})"))
        else:
            edits.append(_insert_decorator(visit, method, f"{text})"))
    return edits


def _spellings(visit: Visit) -> tuple[dict[str, str], list[Edit]]:
    """How the two decorators are spelled in this file, and the edits that import them."""
    spelled = {role: visit.import_name("torch.amp", role) for role in (FORWARD, BACKWARD)}
    if not any(edits for _, edits in spelled.values()):
        return {role: text for role, (text, _) in spelled.items()}, []
    torch, edits = visit.import_name("torch")
    return {role: f"{torch}.amp.{role}" for role in spelled}, list(edits)


def _insert_decorator(visit: Visit, method: ast.FunctionDef, text: str) -> Edit:
    """A decorator directly below ``@staticmethod``, or above all others where there is none."""
    source = visit.source
    row = min((source.span(d).start.row for d in method.decorator_list), default=method.lineno)
    for decorator in method.decorator_list:
        if isinstance(decorator, ast.Name) and decorator.id == "staticmethod":
            row = source.span(decorator).end.row + 1
    indent = source.line(method.lineno)[: source.header_span(method).start.column - 1]
    place = Location(row, 1)
    return Edit(Span(place, place), f"{indent}@{text}\n")


def _plain_base(facts: FileFacts, node: ast.ClassDef) -> bool:
    """Whether the class inherits from torch's Function alone, so that no base class can define ``setup_context``."""
    names = {id(r.node): r.name for r in facts.references}
    return len(node.bases) == 1 and names.get(id(node.bases[0])) in _BASES
