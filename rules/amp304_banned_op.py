"""AMP304: an operation that autocast refuses to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.operands import short_name
from amplint.finding import Applicability, Cause, Edit, Severity
from amplint.infer.torch_ops import BANNED, find_op
from amplint.judge.certainty import Standing
from amplint.rule import Example, Rule, Suspect

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

    import libcst as cst

    from amplint.finding import Fix
    from amplint.infer.facts import FileFacts, TorchCall
    from amplint.visit import Visit

_SIGMOIDS = ("sigmoid", "expit")
_SUFFIX = "_with_logits"


@dataclass(frozen=True, slots=True)
class _Banned:
    """A banned call. ``name`` is its function where the code names that itself, None where it calls a layer or alias;
    ``sigmoid`` is the call that gives its input, a method where ``method`` says so."""

    name: str | None
    sigmoid: ast.Call | None
    method: bool


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
        for calls in _by_node(facts):
            lanes = {lane for call in calls for lane in _banned_lanes(facts, call)}
            scenarios = tuple(name for name in facts.names(lanes) if name in facts.all_scenarios())
            if scenarios:
                yield _suspect(facts, calls, scenarios)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _fix(node, suspect.data, visit))


def _by_node(facts: FileFacts) -> Iterable[list[TorchCall]]:
    """The calls of banned operations; several for one node where it runs in several states."""
    found: dict[int, list[TorchCall]] = {}
    for call in facts.calls:
        op = find_op(call.name, facts.torch_version)
        if op is not None and op.policy.get(facts.device) == BANNED:
            found.setdefault(id(call.node), []).append(call)
    return found.values()


def _banned_lanes(facts: FileFacts, call: TorchCall) -> Iterable[int]:
    """The scenarios in which a call runs under an autocast that the code or the module it belongs to can count on."""
    for lane in range(len(facts.scenarios)):
        explicit = call.region is not None and call.region.inside[lane].on
        if call.autocast[lane].on and call.live >> lane & 1 and (explicit or call.in_module):
            yield lane


def _suspect(facts: FileFacts, calls: list[TorchCall], scenarios: tuple[str, ...]) -> Suspect:
    node = calls[0].node
    regions = [call.region for call in calls if call.region is not None and any(s.on for s in call.region.inside)]
    causes = tuple(dict.fromkeys(Cause(facts.path, facts.span(r.node), "autocast is on from here on") for r in regions))
    banned = _describe(facts, calls[0])
    operation = short_name(calls[0].name)
    cure = "leave autocast for it"
    if find_op(calls[0].name + _SUFFIX) is not None:
        cure = f"give {operation}{_SUFFIX} the values before the sigmoid, or {cure}"
    refused = f"autocast on {facts.device} refuses to run {operation}"
    if banned.name is None:
        refused = f"this runs {operation}, which autocast on {facts.device} refuses"
    return Suspect(
        span=facts.span(node),
        node=facts.span(node),
        message=f"{refused}, whatever the dtypes",
        scenarios=scenarios,
        standing=Standing(forced=bool(regions)),
        causes=(*causes, Cause(facts.path, facts.span(node), cure)),
        data=banned,
    )


def _describe(facts: FileFacts, call: TorchCall) -> _Banned:
    direct = any(r.call is call.node and r.name == call.name for r in facts.references)
    given = next((keyword.value for keyword in call.node.keywords if keyword.arg == "input"), None)
    given = given or next(iter(call.node.args), None)
    sigmoid = next((c for c in facts.calls if c.node is given and short_name(c.name) in _SIGMOIDS), None)
    return _Banned(
        name=call.name if direct else None,
        sigmoid=sigmoid.node if sigmoid is not None else None,
        method=sigmoid is not None and sigmoid.name.startswith("torch.Tensor."),
    )


def _fix(node: cst.Call, banned: _Banned, visit: Visit) -> Fix | None:
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
        edits.append(visit.replace(node.func.attr, operation + _SUFFIX))
    else:
        spelled, imports = visit.import_name(module, operation + _SUFFIX)
        edits += [*imports, visit.replace(node.func, spelled)]
    return visit.fix(Applicability.UNSAFE, f"Call {operation}{_SUFFIX} on the logits", *edits)
