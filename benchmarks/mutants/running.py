"""One run of a target in a scenario, on one variant of its inputs; gradients of parameters and of inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from amplint.infer.lattice.scenarios import CONTROL, Scenario
from amplint.verify.build.recipe import seed_everything
from amplint.verify.modes import invoke
from amplint.verify.run import Run, Where, prepare, region
from amplint.verify.tensors import tensors
from mutants.inputs import INNER, Case, varied

if TYPE_CHECKING:
    from amplint.verify.build import Recipe

WITH_GRADIENTS = ("train", "eval")


def run(recipe: Recipe, scenario: Scenario, case: Case, where: Where) -> Run:
    """Build the target afresh and run it once, inside of ``where.policy()``. Errors of the target are returned."""
    low = None
    if case.variant == INNER and scenario is not CONTROL:
        low = getattr(torch, scenario.autocast or scenario.inputs)
    try:
        built = prepare(varied(recipe, case.variant), scenario, case.call, where, low)
        inputs = [t for t in tensors((built.args, built.kwargs)) if t.requires_grad]
        for tensor in inputs:
            tensor.retain_grad()
        seed_everything(0)
        with torch.set_grad_enabled(case.call.mode in WITH_GRADIENTS):
            with region(scenario.autocast, where):
                result = invoke(case.call, built)
            outputs = [t for t in tensors(result) if t.is_floating_point() or t.is_complex()]
            losses = [o.float().mean() for o in outputs if o.requires_grad and o.is_floating_point()]
            if losses and torch.is_grad_enabled():
                torch.autograd.backward(torch.stack(losses).sum())
        parameters = built.module.parameters() if isinstance(built.module, torch.nn.Module) else ()
        gradients = [t.grad for t in (*parameters, *inputs) if t.grad is not None]
        return Run(tuple(o.detach() for o in outputs), tuple(g.detach() for g in gradients if not g.is_sparse))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Run(error=error)


def distance(reference: Run, other: Run) -> float | None:
    """The larger of the relative L2 distances of a result, and of all gradients together; None where results cannot be
    compared. Only finite values count."""
    if len(reference.outputs) != len(other.outputs):
        return None
    apart = [_apart([pair]) for pair in zip(reference.outputs, other.outputs, strict=True)]
    if len(reference.gradients) == len(other.gradients):
        apart.append(_apart(list(zip(reference.gradients, other.gradients, strict=True))))
    return None if None in apart else max((one for one in apart if one is not None), default=0.0)


def _apart(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> float | None:
    apart = total = 0.0
    for a, b in pairs:
        if a.shape != b.shape or a.is_complex() or b.is_complex():
            return None
        x, y = a.double(), b.double()
        finite = torch.isfinite(x) & torch.isfinite(y)
        apart += float((x[finite] - y[finite]).square().sum())
        total += float(x[finite].square().sum())
    return (apart / total) ** 0.5 if total else 0.0


def became_nonfinite(reference: Run, other: Run) -> bool:
    """Whether inf or nan stands in a result or gradient where the reference has neither."""
    return any(
        len(before) == len(after)
        and any(
            a.shape == b.shape and bool((torch.isfinite(a) & ~torch.isfinite(b)).any())
            for a, b in zip(before, after, strict=True)
        )
        for before, after in ((reference.outputs, other.outputs), (reference.gradients, other.gradients))
    )
