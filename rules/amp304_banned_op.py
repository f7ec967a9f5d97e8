"""AMP304: an operation that autocast refuses to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from amplint.claims.banned_calls import SUFFIX, BannedCall, banned_calls
from amplint.claims.operands import short_name
from amplint.rule import Applicability, Cause, Edit, Example, Rule, Severity, Standing, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Fix, Visit


class BannedOp(Rule):
    """An operation that raises wherever autocast is on, such as binary cross-entropy of probabilities.

    What it does
    ------------
    Reports `F.binary_cross_entropy` and calls of `nn.BCELoss` inside an autocast region, and in a module's methods, for
    devices whose autocast refuses them (CUDA and XPU). Which operations these are is read from the table of torch's own
    policies.

    Why it is bad
    -------------
    The logarithm of a probability needs float32: in 16 bit a confident prediction rounds to 0 or 1, and the loss or its
    gradient is infinite. Instead of computing that, autocast raises, whatever dtypes the operands have; casting them to
    float32 does not help. The CPU's autocast runs the same line in float32, so that a test on a CPU passes.

    How it shows
    ------------
    ```text
    RuntimeError: torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.
    ```

    Example
    -------
    ```python
    with torch.autocast("cuda"):
        loss = F.binary_cross_entropy(torch.sigmoid(logits), target)
    ```
    Use instead:
    ```python
    with torch.autocast("cuda"):
        loss = F.binary_cross_entropy_with_logits(logits, target)
    ```

    Fix safety
    ----------
    Unsafe: the form that takes logits computes the same loss with other rounding. It is offered where the sigmoid
    stands in the call. Where the probabilities come from elsewhere, hand out logits instead, or compute the loss on
    `.float()` operands in a region with autocast off.
    """

    code: ClassVar[str] = "AMP304"
    name: ClassVar[str] = "banned-op"
    severity: ClassVar[Severity] = Severity.ERROR
    tokens: ClassVar[tuple[str, ...]] = ("binary_cross_entropy", "BCELoss")
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
import torch.nn.functional as F
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 1)

    def forward(self, x, target):
        logits = self.head(x)
        return F.binary_cross_entropy(torch.sigmoid(logits), target, reduction="sum")  # expect


def reproduce():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        Classifier()(torch.randn(2, 8), torch.ones(2, 1))
""",
            scenario="autocast-bf16",
            emulated=True,
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
import torch.nn.functional as F
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 1)
        self.criterion = nn.BCEWithLogitsLoss()

    def forward(self, x: torch.Tensor, target: torch.Tensor):
        logits = self.head(x)
        with torch.autocast(x.device.type, enabled=False):
            cost = F.binary_cross_entropy(logits.float().sigmoid(), target.float(), reduction="none")
        return cost.sum() + self.criterion(logits, target) + F.binary_cross_entropy_with_logits(logits, target)


def evaluate(model, x, target):
    criterion = nn.BCELoss()
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        logits = model(x)
    return criterion(torch.sigmoid(logits.float()), target.float())


def reproduce():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        Detector()(torch.randn(2, 8), torch.ones(2, 1))
    evaluate(nn.Linear(8, 1), torch.randn(2, 8), torch.ones(2, 1))
""",
            emulated=True,
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        for banned, scenarios in banned_calls(facts):
            yield _suspect(facts, banned, scenarios)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(node, suspect.data, visit))


def _suspect(facts: FileFacts, banned: BannedCall, scenarios: tuple[str, ...]) -> Suspect:
    span = facts.span(banned.node)
    regions = [Cause(facts.path, facts.span(region), "autocast is on from here on") for region in banned.regions]
    made = (
        [Cause(facts.path, facts.span(banned.made), "the layer that is called is constructed here")]
        if banned.made
        else []
    )
    operation = short_name(banned.operation)
    cure = "leave autocast for it"
    if banned.takes_logits:
        cure = f"give {operation}{SUFFIX} the values before the sigmoid, or {cure}"
    refused = f"autocast on {facts.device} refuses to run {operation}"
    if banned.name is None:
        refused = f"this runs {operation}, which autocast on {facts.device} refuses"
    return Suspect(
        span=span,
        node=span,
        message=f"{refused}, whatever the dtypes",
        scenarios=scenarios,
        standing=Standing(forced=bool(regions)),
        causes=(*made, *dict.fromkeys(regions), Cause(facts.path, span, cure)),
        data=banned,
    )


def _fix(node: cst.Call, banned: BannedCall, visit: Visit) -> Fix | None:
    """The call of the form that takes logits, where the code names the function and applies the sigmoid in the call."""
    import libcst as cst

    given = visit.argument(node, "input", 0)
    if banned.name is None or banned.sigmoid is None or given is None or not isinstance(given.value, cst.Call):
        return None
    sigmoid = given.value
    logits = sigmoid.func.value if banned.method and isinstance(sigmoid.func, cst.Attribute) else None
    if logits is None:
        argument = visit.argument(sigmoid, "input", 0)
        if argument is None or len(sigmoid.args) != 1:
            return None
        logits = argument.value
    module, _, operation = banned.name.rpartition(".")
    edits = [Edit(visit.outer_span(sigmoid), visit.code(logits))]
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == operation:
        edits.append(visit.replace(node.func.attr, operation + SUFFIX))
    else:
        spelled, imports = visit.import_name(module, operation + SUFFIX)
        edits += [*imports, visit.replace(node.func, spelled)]
    return visit.fix(Applicability.UNSAFE, f"Call {operation}{SUFFIX} on the logits", *edits)
