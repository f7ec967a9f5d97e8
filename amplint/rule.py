"""All that a rule imports from amplint, beside what ``amplint.claims`` asks and ``amplint.rewriting`` edits.

What a rule is:
    ``Rule`` is its base, ``Example`` a program that shows it, ``Evidence`` how that is shown, ``TENSOR_CODE`` the
    ``context`` of rules about tensors, ``Severity`` how bad it is, ``Applicability`` how safe its fix is.

What it says:
    A ``Suspect`` lies at a ``Span``, from one ``Location`` to another, for each ``Cause``; a ``Fix`` is made of each
    ``Edit``. ``Visit``, for types alone, carries a rule over the lossless source, reports and rewrites.

How sure it is:
    A ``Standing`` is ``FORCED`` or ``ASSUMED``, and lowered by each row of the table ``doubts`` that holds.

What it asks:
    ``FileFacts`` is what the inference knows of a file. A ``Conflict`` of some ``Kind`` has operands that disagree,
    each an ``Operand``, of which one may be a ``MadeOperand``. A ``Promotion`` has operands that promote, an ``Apart``
    some that reach one kernel in several dtypes; an ``Addressed`` tensor is read by its address. A ``CastCall`` is a
    cast.

How training goes:
    ``facts.training`` has each ``Moment`` at which there is a ``Step``, and what the ``Gradients`` are then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.claims.conflict import Conflict
from amplint.claims.suspect import Suspect
from amplint.finding import Applicability, Cause, Edit, Fix, Severity
from amplint.infer.flow.training.steps import Gradients, Moment, Step
from amplint.infer.state.facts import Addressed, Apart, CastCall, FileFacts, Kind, Promotion
from amplint.infer.state.operand import MadeOperand, Operand
from amplint.judge import doubts
from amplint.judge.certainty import ASSUMED, FORCED, Standing
from amplint.rule_base import TENSOR_CODE, Evidence, Example, Rule
from amplint.source import Location, Span

if TYPE_CHECKING:
    from amplint.visit import Visit as Visit

__all__ = [
    "ASSUMED",
    "FORCED",
    "TENSOR_CODE",
    "Addressed",
    "Apart",
    "Applicability",
    "CastCall",
    "Cause",
    "Conflict",
    "Edit",
    "Evidence",
    "Example",
    "FileFacts",
    "Fix",
    "Gradients",
    "Kind",
    "Location",
    "MadeOperand",
    "Moment",
    "Operand",
    "Promotion",
    "Rule",
    "Severity",
    "Span",
    "Standing",
    "Step",
    "Suspect",
    "doubts",
]
