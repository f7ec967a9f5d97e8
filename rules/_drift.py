"""Promotions to float32 that a module hands out: from the fact to a suspect and its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.finding import Applicability, Certainty, Severity
from amplint.rule import Suspect

from ._alignment import dtype_of_tensor
from ._disagreement import find_operand
from ._makers import quoted, reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    import libcst as cst

    from amplint.infer.facts import FileFacts, Promotion
    from amplint.visit import Visit


def promotions_of(facts: FileFacts, *, fixed: bool) -> Iterator[Suspect]:
    """A suspect for each promotion: by a table of a fixed dtype, or by anything else.

    None where the same tensor makes an operation fail too: that is the finding, and this is on the way to it.
    """
    spoken = {conflict.culprit for conflict in facts.conflicts}
    makers = set()
    for promotion in facts.promotions:
        made = promotion.made
        if (made is not None and made.fixed) is not fixed:
            continue
        maker = made.maker.span if made is not None else None
        if (maker is not None and maker in spoken) or (maker, promotion.function) in makers:
            continue
        makers.add((maker or facts.span(promotion.node), promotion.function))
        span = facts.span(promotion.node)
        yield Suspect(
            span=span,
            node=span,
            message=_message(promotion),
            scenarios=promotion.scenarios,
            certainty=Certainty.LIKELY,
            causes=promotion.causes,
            severity=Severity.WARNING,
            data=promotion,
        )


def report_promotion(visit: Visit, node: cst.CSTNode, suspect: Suspect) -> None:
    """Report a promotion, with a cast of the wide operand where it can be written."""
    promotion: Promotion = suspect.data
    narrow, wide = promotion.narrow.node, find_operand(visit, node, promotion.wide)
    dtype = dtype_of_tensor(narrow) if narrow is not None else None
    if dtype is None or wide is None:
        visit.report(suspect)
        return
    edit = visit.append(wide, f".to({dtype})")
    visit.report(suspect, visit.fix(Applicability.UNSAFE, "Cast to the dtype of the other operand", edit))


def _message(promotion: Promotion) -> str:
    narrow = quoted(promotion.narrow.node) or promotion.narrow.name
    wide = quoted(promotion.wide.node) or promotion.wide.name
    why = reason(promotion.made) if promotion.made is not None else "a parameter keeps float32"
    return f"float32 {wide} makes the half-precision {narrow} float32, and so is what the module returns: {why}"
