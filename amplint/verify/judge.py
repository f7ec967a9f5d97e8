"""What a run means: compared with float32, a dtype failure, an overflow, a loss, or nothing wrong."""

from __future__ import annotations

import os
import re
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import torch

import amplint
from amplint.emulation.gaps import Gap, gap
from amplint.explain.catalogue import recognise
from amplint.frozen import dataclass
from amplint.verify.job import CLEAN, CPU_GAP, FAILED, HARDWARE, LOSS, OTHER, OVERFLOW
from amplint.verify.loading import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amplint.verify.run import Run

LOSS_FLOOR = 0.1
"""Relative L2 distance from float32 up to which a result is taken for what low precision costs anywhere."""
SMALL_LOSS = 2.0**-16
"""By what the loss is multiplied to see whether an overflowing gradient is a matter of its scale."""
LOSS_FACTOR = 16.0
"""How many times the distance that rounding parameters and inputs alone causes is still taken for that."""

_HARDWARE = re.compile(
    r"not compiled with \w+ enabled|requires \w+ support|without \w+ backend|dummy base class"
    r"|Found no NVIDIA driver|CUDA error: |libcuda|'torch\._C' has no attribute '_(cuda|xpu|mps)_"
)
"""What torch 2.4, 2.8 and 2.13 and Triton said without a GPU to streams, events, graphs, memory queries and kernel
launches, in CPU and in CUDA builds (``tests/test_verify_judge.py`` asks the build it runs under)."""
_TORCH = str(Path(torch.__file__).parent) + os.sep
_OWN = str(Path(amplint.__file__).parent) + os.sep


@dataclass(frozen=True)
class Verdict:
    """``kind`` as in Outcome; ``family`` is the rule code that the error's text or kind belongs to."""

    kind: str
    error: str | None = None
    family: str | None = None


def judge_error(error: BaseException, *, emulated: str | None, op: str | None = None) -> Verdict:
    """What an error says.

    ``emulated`` is the device whose policy lies over CPU kernels, if any; ``op`` is the ATen op that raised it, where
    an instrumented run told.
    """
    text = one_line(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in text or "not enough memory" in text:
        return Verdict(OTHER, text)
    limit = gap(error, op, emulated or "cuda")
    if limit is Gap.CPU_ONLY and emulated is not None:
        return Verdict(CPU_GAP, text)
    known = [match for match in recognise(f"{type(error).__name__}: {error}") if match.kind in _PRECISION]
    if known:
        unsupported = "AMP305" if any(match.kind == "unsupported" for match in known) else None
        return Verdict(FAILED, text, next((code for match in known for code in match.codes), unsupported))
    if limit is Gap.DEVICE_TOO:
        return Verdict(FAILED, text, "AMP305")
    if emulated is not None and _HARDWARE.search(text):
        return Verdict(HARDWARE, text)
    return Verdict(OTHER, text)


_PRECISION = ("dtype", "overflow", "unsupported")
"""Kinds of the catalogue that a run settles; the others are about hardware, settings or the training step."""


def judge_values(
    reference: Run,
    ran: Run,
    *,
    numerics: bool,
    repeated: Callable[[], Run],
    rounded: Callable[[], Run],
    smaller: Callable[[], Run],
) -> Verdict:
    """What the results say.

    inf or nan where float32 is finite is an overflow; in a gradient only if it stays with a ``smaller`` loss, since
    choosing the scale of the loss is the scaler's part. A loss is claimed only of runs without randomness
    (``numerics``), only where float32 gives exactly the same once more, under another seed (``repeated``): what draws
    random numbers draws others in another dtype. And only if the relative L2 distance exceeds both
    :data:`LOSS_FLOOR` and :data:`LOSS_FACTOR` times what rounding parameters and inputs alone does.
    """
    if _became_nonfinite(reference.outputs, ran.outputs):
        return Verdict(OVERFLOW, "inf or nan in the result, which is finite in float32", "AMP303")
    if _became_nonfinite(reference.gradients, ran.gradients) and _became_nonfinite(
        reference.gradients, smaller().gradients
    ):
        return Verdict(OVERFLOW, "inf or nan in a gradient, which is finite in float32", "AMP303")
    if not numerics:
        return Verdict(CLEAN)
    distance = difference(reference.outputs, ran.outputs)
    if distance is None or distance <= LOSS_FLOOR:
        return Verdict(CLEAN)
    again, noise = repeated(), rounded()
    if again.error is not None or noise.error is not None or difference(reference.outputs, again.outputs) != 0:
        return Verdict(CLEAN)
    inherent = difference(reference.outputs, noise.outputs)
    if inherent is None or distance <= LOSS_FACTOR * inherent:
        return Verdict(CLEAN)
    return Verdict(LOSS, f"differs from float32 by {distance:.0%}, where rounding alone makes {inherent:.1%}")


def departs(reference: Run, ran: Run, kind: str) -> bool:
    """Whether results are not finite where float32's are, or, for a loss, far from them."""
    if kind == OVERFLOW:
        return _became_nonfinite(reference.outputs, ran.outputs)
    distance = difference(reference.outputs, ran.outputs)
    return distance is None or distance > LOSS_FLOOR


def _extreme(tensor: torch.Tensor) -> torch.Tensor:
    """Where a tensor holds about the greatest or lowest number of its dtype, or half of that."""
    return tensor.double().abs() >= 0.49 * torch.finfo(tensor.dtype).max


def difference(reference: tuple[torch.Tensor, ...], other: tuple[torch.Tensor, ...]) -> float | None:
    """The largest relative L2 distance of paired finite floating results; None where they cannot be compared.

    Numbers at the end of the range in both dtypes count as infinite: masks are filled with them.
    """
    if len(reference) != len(other):
        return None
    worst = 0.0
    for a, b in zip(reference, other, strict=True):
        if a.shape != b.shape or a.is_complex() or b.is_complex():
            return None
        x, y = a.double(), b.double()
        finite = torch.isfinite(x) & torch.isfinite(y) & ~(_extreme(a) & _extreme(b))
        norm = float(x[finite].norm())
        if norm:
            worst = max(worst, float((x[finite] - y[finite]).norm()) / norm)
    return worst


def largest_error(reference: tuple[torch.Tensor, ...], other: tuple[torch.Tensor, ...]) -> float | None:
    """The largest absolute difference of paired results over the largest absolute value; None if incomparable."""
    if len(reference) != len(other) or any(a.shape != b.shape for a, b in zip(reference, other, strict=True)):
        return None
    worst = 0.0
    for a, b in zip(reference, other, strict=True):
        if a.numel() == 0 or a.is_complex() or b.is_complex():
            continue
        x, y = a.double().nan_to_num(), b.double().nan_to_num()
        worst = max(worst, float((x - y).abs().max()) / max(float(x.abs().max()), 1e-12))
    return worst


def _became_nonfinite(reference: tuple[torch.Tensor, ...], other: tuple[torch.Tensor, ...]) -> bool:
    if len(reference) != len(other):
        return False
    return any(
        a.shape == b.shape and bool((torch.isfinite(a) & ~torch.isfinite(b)).any())
        for a, b in zip(reference, other, strict=True)
    )


def user_frames(error: BaseException) -> Iterator[tuple[str, int]]:
    """File and line of the frames that are neither torch's nor ours, innermost first."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = frame.filename
        if not file.startswith((_TORCH, _OWN, "<")) and frame.lineno is not None:
            yield file, frame.lineno


def location(error: BaseException, target: str) -> tuple[str, int] | None:
    """Where it failed: the innermost frame in the target's file, else the innermost in any user code."""
    frames = list(user_frames(error))
    own = [frame for frame in frames if os.path.realpath(frame[0]) == os.path.realpath(target)]
    return next(iter([*own[:1], *frames[:1]]), None)
