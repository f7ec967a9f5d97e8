"""AMP403: parameters in 16 bit are trained with a GradScaler."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from amplint.claims.half_models import scaled_halves
from amplint.claims.training_steps import scaled_scenarios, spelled
from amplint.rule import ASSUMED, Applicability, Cause, Example, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Visit


class ScaledHalfParams(Rule):
    """The parameters that an optimizer trains were converted to 16 bit, and a GradScaler unscales their gradients.

    What it does
    ------------
    Follows a model from `.half()`, `.to(torch.float16)` or `from_pretrained(..., torch_dtype=torch.float16)`, and on
    CUDA from their like for bfloat16, to the optimizer that is made of its `parameters()`, and from there to
    `scaler.unscale_(optimizer)` or `scaler.step(optimizer)`. Silent where the model is converted back, wrapped by
    something unknown (adapters in float32 may be all that is trained), or converted under a test that the step is not
    under.

    Why it is bad
    -------------
    Gradients have their parameter's dtype. The scaler refuses to divide float16 gradients, since what the scale saved
    from underflow would be lost. For bfloat16, which needs no scale, CUDA has no kernel that divides them. Autocast
    needs float32 parameters and makes the 16-bit copies by itself.

    How it shows
    ------------
    ```text
    ValueError: Attempting to unscale FP16 gradients.
    NotImplementedError: "_amp_foreach_non_finite_check_and_unscale_cuda" not implemented for 'BFloat16'
    ```

    Example
    -------
    ```python
    model = Net().cuda().half()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    ```
    Use instead:
    ```python
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(x), target)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    ```

    Fix safety
    ----------
    Unsafe: the fix takes `.half()` away, so the model takes twice the memory and needs autocast or float32 inputs.
    """

    code: ClassVar[str] = "AMP403"
    name: ClassVar[str] = "scaled-half-params"
    severity: ClassVar[Severity] = Severity.ERROR
    of_weights = False
    tokens: ClassVar[tuple[str, ...]] = (".half()", "float16", "half", "bfloat16")
    context: ClassVar[tuple[str, ...]] = ("GradScaler", "unscale_(", ".scale(")
    claims_failure = False
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


def train(loader):
    model = nn.Linear(4, 4).half()  # expect
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    for x in loader:
        with torch.autocast("cpu", dtype=torch.float16):
            loss = model(x).float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def reproduce():
    train(torch.randn(2, 8, 4))
""",
            scenario="autocast-fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


def train(model, teacher, loader, low_memory):
    teacher = teacher.half()
    if low_memory:
        model = model.half()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in loader:
            model(x.half()).float().mean().backward()
            optimizer.step()
        return
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x.half()).float().mean() + teacher(x).float().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def train_adapters(model, add_adapters, loader):
    model = model.to(torch.float16)
    model = add_adapters(model)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        scaler.scale(model(x).mean()).backward()
        scaler.step(optimizer)
        scaler.update()
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        scenarios = scaled_scenarios(facts)
        for half in scaled_halves(facts) if scenarios else ():
            span = facts.span(half.node)
            refused = f"{spelled(half.moment)} refuses the gradients of these parameters"
            message = f"{refused}, which become {half.dtype}: keep them in float32"
            if half.dtype == "bfloat16":
                message += ", or scale nothing"
            cause = Cause(
                facts.path, facts.span(half.moment.event.node), f"the scaler gets {half.dtype} gradients here"
            )
            yield Suspect(span, span, message, scenarios, ASSUMED, (cause,))

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        import libcst as cst

        func = node.func
        parent = visit.parent(node)
        if not isinstance(func, cst.Attribute) or func.attr.value != "half" or isinstance(parent, cst.Expr):
            visit.report(suspect)
            return
        edit = visit.replace(node, visit.code(func.value))
        visit.report(suspect, visit.fix(Applicability.UNSAFE, "Keep the parameters in float32", edit))
