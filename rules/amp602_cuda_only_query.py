"""AMP602: autocast queries that ask CUDA's autocast alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.autocast_queries import Asked, asked_together, cuda_only_queries, evident_tensor, places_outside
from amplint.claims.legacy_names import DEPRECATED_SINCE
from amplint.claims.query_outcomes import steers_autocast
from amplint.claims.surroundings import Surroundings
from amplint.rewriting.legacy_calls import ask_device, rename
from amplint.rule import ASSUMED, Applicability, Edit, Example, Rule, Severity, Suspect, doubts

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.claims.autocast_queries import Query
    from amplint.rule import FileFacts, Visit

_DEVICE_ARGUMENT = DEPRECATED_SINCE
"""The release in which the queries took a device and the old ones became deprecated."""


class CudaOnlyQuery(Rule):
    """The code asks whether CUDA's autocast is on, or for its dtype, where another device's autocast may be the one.

    What it does
    ------------
    Reports `torch.is_autocast_enabled()` without an argument and `torch.get_autocast_gpu_dtype()`. Both together in one
    expression are one finding, as is a query with the dtypes that are asked for where it says yes. Silent under a test
    for CUDA (`x.is_cuda`, `device.type == "cuda"`), in a function that asks another device as well or sets CUDA's state,
    where the answer goes straight into CUDA's own autocast, and in a function that only CUDA runs, since it steers CUDA
    (with its streams, for example) or is decorated with `custom_fwd(device_type="cuda")`; there AMP601 reports the
    deprecated query. Elsewhere this rule reports `torch.get_autocast_gpu_dtype()` instead of AMP601: torch 2.4
    deprecates it. Possible only: a query whose answer is nothing but a test, behind which no region of autocast is
    opened and autocast is asked for no dtype, also where a private function returns it; and one that is not deprecated
    in a project that opens CUDA's regions of autocast and no others.

    Why it is bad
    -------------
    Autocast is a state of each device. Without an argument the question is about CUDA, so under autocast on CPU, MPS or
    XPU the answer is "off", and the float16 default: code that picks its dtype by it disagrees with what autocast does.

    How it shows
    ------------
    ```text
    RuntimeError: Index put requires the source and destination dtypes match, got Float for the destination and BFloat16 for the source.
    RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16
    ```
    or silently: a region that should be off stays on, or is not entered again when something is recomputed.

    Example
    -------
    ```python
    def compute_dtype(x):
        return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else x.dtype
    ```
    Use instead:
    ```python
    def compute_dtype(x):
        device = x.device.type
        return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
    ```

    Fix safety
    ----------
    Unsafe: on other devices the answer changes, which is the point; a tensor on the meta device has no autocast state
    and raises, and TorchScript does not know the form with an argument. Offered from torch 2.4 on, where a parameter of
    the function is evidently a tensor; elsewhere the form is only shown.
    """  # noqa: E501

    code: ClassVar[str] = "AMP602"
    name: ClassVar[str] = "cuda-only-query"
    severity: ClassVar[Severity] = Severity.WARNING
    of_weights = False
    tokens: ClassVar[tuple[str, ...]] = ("is_autocast_enabled", "get_autocast_gpu_dtype")
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
import torch.nn.functional as F


def project(x: torch.Tensor, weight: torch.Tensor):
    dtype = torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else x.dtype  # expect
    cache = torch.zeros(4, weight.shape[0], dtype=dtype)
    cache[torch.arange(2)] = F.linear(x, weight)  # expect AMP105
    return cache


def reproduce():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        project(torch.ones(2, 3), torch.ones(5, 3))
""",
            scenario="autocast-bf16",
            device="cpu",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch


def compute_dtype(x):
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype


def compute_dtype_of_cuda(x):
    if x.is_cuda and torch.is_autocast_enabled():
        return torch.get_autocast_dtype("cuda")
    return x.dtype


def states():
    return torch.is_autocast_enabled(), torch.is_autocast_cpu_enabled()
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        scenarios = tuple(scenario.name for scenario in facts.scenarios if scenario.autocast)
        if not scenarios or not any(reference.name.startswith("torch.") for reference in facts.references):
            return
        around = Surroundings.of(facts.source.tree)
        queries = list(cuda_only_queries(facts, around))
        for node, members in asked_together(queries, around):
            names = " and ".join(dict.fromkeys(f"{query.reference.name}()" for query in members))
            verb = "asks" if len({query.reference.name for query in members}) == 1 else "ask"
            message = f"{names} {verb} for CUDA's autocast only, not for another device's"
            deprecated = [q for q in members if q.asks_dtype] if facts.torch_version >= _DEVICE_ARGUMENT else []
            if deprecated:
                message += f"; {deprecated[0].reference.name}() is deprecated since torch 2.4"
            near = [node, *(a for a in around.ancestors(node) if isinstance(a, ast.stmt))][:2]
            tensor = evident_tensor(members[0], near)
            span = facts.source.span(node)
            also = places_outside(node, members, facts, around)
            steers = any(query.asks_dtype or steers_autocast(query.call, around) for query in members)
            standing = ASSUMED if steers else ASSUMED.doubted(doubts.STEERS_NOTHING)
            asked = Asked(tuple(members), tensor, outgrown=bool(deprecated))
            yield Suspect(span, span, message, scenarios, standing, also=also, data=asked)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        self._report(suspect, visit)

    def visit_IfExp(self, node: cst.IfExp, suspect: Suspect, visit: Visit) -> None:
        self._report(suspect, visit)

    def visit_BooleanOperation(self, node: cst.BooleanOperation, suspect: Suspect, visit: Visit) -> None:
        self._report(suspect, visit)

    def _report(self, suspect: Suspect, visit: Visit) -> None:
        asked: Asked = suspect.data
        if visit.facts.oldest_torch < _DEVICE_ARGUMENT:
            visit.report(suspect)
            return
        device = f"{asked.tensor}.device.type" if asked.tensor else "device_type"
        edits: list[Edit] = []
        for query in asked.members:
            renamed = _rename(query, visit, edits)
            if renamed is None:
                visit.report(suspect)
                return
            if query.asks_dtype:
                edits.append(renamed)
            edits.append(ask_device(query.call, device, visit.source))
        applicability = Applicability.UNSAFE if asked.tensor else Applicability.DISPLAY
        message = f"Ask the device of {asked.tensor}" if asked.tensor else "Ask the device that the tensors are on"
        visit.report(suspect, visit.fix(applicability, message, *dict.fromkeys(edits)))


def _rename(query: Query, visit: Visit, imports: list[Edit]) -> Edit | None:
    """``torch.get_autocast_dtype`` in the file's own spelling of torch; None where the name is not in the text."""
    torch, dot, _ = ast.unparse(query.reference.node).rpartition(".")
    if not dot and query.asks_dtype:
        torch, needed = visit.import_name("torch")
        imports += needed
    return rename(query.reference, f"{torch}.get_autocast_dtype", visit.source)
