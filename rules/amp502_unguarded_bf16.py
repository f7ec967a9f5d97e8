"""AMP502: bfloat16 is demanded of a GPU that may not have it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.bfloat16_demands import asks_for_support, bfloat16_demands
from amplint.rule import ASSUMED, Evidence, Example, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.rule import FileFacts


class UnguardedBf16(Rule):
    """A script demands bfloat16 on CUDA and nowhere asks whether the GPU has it.

    What it does
    ------------
    In files that run as a script, reports a CUDA autocast region with `dtype=torch.bfloat16` and `bf16=True`,
    `mixed_precision="bf16"` or `precision="bf16-mixed"` in the arguments of a call, where nothing in the file asks
    `torch.cuda.is_bf16_supported()`, the device's capability or the like. The first one of a file is reported. Off
    until selected: whoever has the GPUs knows which they are, and `amplint preflight --gpu NAME` holds settings against
    them.

    Why it is bad
    -------------
    GPUs before compute capability 8.0 (V100, T4, RTX 20) have no bfloat16 units. Some settings raise there, others
    emulate it at a fraction of the speed of float16.

    How it shows
    ------------
    ```text
    RuntimeError: Current CUDA Device does not support bfloat16. Please switch dtype to float16.
    ValueError: Your setup doesn't support bf16/gpu. You need torch>=1.10, using Ampere GPU with cuda>=11.0
    ```

    Example
    -------
    ```python
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(batch)
    ```
    Use instead:
    ```python
    dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    with torch.autocast("cuda", dtype=dtype):
        loss = model(batch)
    ```

    Fix safety
    ----------
    There is no fix: float16 needs a GradScaler besides.
    """

    code: ClassVar[str] = "AMP502"
    name: ClassVar[str] = "unguarded-bf16"
    severity: ClassVar[Severity] = Severity.WARNING
    evidence: ClassVar[Evidence] = Evidence.CITED
    default: ClassVar[bool] = False
    of_weights = False
    tokens: ClassVar[tuple[str, ...]] = ("bfloat16", "bf16")
    context: ClassVar[tuple[str, ...]] = ("__main__",)
    claims_failure = False

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


def main():
    model = nn.Linear(4, 4).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):  # expect
        print(model(torch.randn(2, 4).cuda()))


if __name__ == "__main__":
    main()
""",
            scenario="autocast-bf16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


def main():
    model = nn.Linear(4, 4).cuda()
    dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    with torch.autocast("cuda", dtype=dtype):
        print(model(torch.randn(2, 4).cuda()))
    with torch.autocast("cuda", dtype=torch.bfloat16):
        print(model(torch.randn(2, 4).cuda()))


if __name__ == "__main__":
    main()
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        scenarios = tuple(scenario.name for scenario in facts.scenarios if scenario.autocast == "bfloat16")
        if not scenarios:
            return
        if not any(_is_main_guard(statement) for statement in facts.source.tree.body):
            return
        first = min(bfloat16_demands(facts), key=lambda call: (call.lineno, call.col_offset), default=None)
        if first is not None and not asks_for_support(facts.source.tree):
            span = facts.span(first)
            message = "demands bfloat16 without asking torch.cuda.is_bf16_supported()"
            yield Suspect(span, span, message, scenarios, ASSUMED)


def _is_main_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__main__" in ast.unparse(statement.test)
