"""What the frames of a traceback tell beyond its text: where autocast cannot have been on, and why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.explain.frames import Frame


@dataclass(frozen=True, slots=True)
class Clue:
    """``path``, ``function`` and ``text`` are searched in one frame; an empty one fits any. ``innermost`` looks at the
    last frame only that is not torch's. ``codes`` are the rules that this makes the likeliest. ``family`` restricts the
    clue to one family of texts."""

    says: str
    codes: tuple[str, ...]
    path: str = ""
    function: str = ""
    text: str = ""
    innermost: bool = False
    family: str = ""

    def fits(self, frames: Sequence[Frame]) -> bool:
        if self.innermost:
            frames = [frame for frame in frames if not frame.of_torch][-1:]
        return any(
            re.search(self.path, "/".join(frame.parts))
            and re.search(self.function, frame.function or "")
            and re.search(self.text, frame.text)
            for frame in frames
        )


CLUES = (
    Clue(
        "The call went through the inference fast path of torch's transformer layers: it exists in eval mode without "
        "gradients only, and closes itself to CUDA's autocast but not to another device's.",
        ("AMP108",),
        text=r"_transformer_encoder_layer_fwd|_native_multi_head_attention",
    ),
    Clue(
        "The call is in the backward of an autograd Function. Autocast is off there unless custom_bwd restores it: "
        "grad_output has the dtype that forward returned, what ctx saved has its own.",
        ("AMP204", "AMP202", "AMP201"),
        function=r"^(?:\w+\.)*backward$",
        innermost=True,
    ),
    Clue(
        "The product is written in place or with out=, and autocast casts nothing in these forms.",
        ("AMP107",),
        text=r"[(,]\s*out\s*=[^=]|\.(?:addmm|baddbmm|addbmm|addmv|addr)_\(",
        innermost=True,
    ),
    Clue(
        "The call is an nn.Linear without bias: the left operand is its input, the right one its weight.",
        (),
        path=r"torch/nn/modules/linear\.py$",
        family="matmul-operands",
    ),
    Clue(
        "Activation checkpointing was recomputing forward: the recomputation ran under another autocast state.",
        (),
        path=r"torch/utils/checkpoint\.py$",
        function=r"recompute|unpack|backward",
    ),
    Clue(
        "The call ran in a worker thread, and autocast is a switch of one thread: enter it inside forward.",
        (),
        path=r"torch/nn/parallel/(?:parallel_apply|data_parallel)\.py$|(?:^|/)threading\.py$",
    ),
    Clue(
        "The call came from evaluation or generation, which often runs outside the autocast region of training.",
        (),
        function=r"(?:^|[._])(?:generate|sample|predict|evaluate|evaluation|validate|validation_step|eval_step|inference)$",
    ),
    Clue(
        "A function on the way is decorated with autocast; one with enabled=False leaves every tensor as it comes.",
        ("AMP106",),
        function=r"^decorate_autocast$",
    ),
)


def clues(frames: Sequence[Frame], family: str) -> list[Clue]:
    """The clues that the frames of one traceback give on a text; where some point to a rule, those alone."""
    found = [clue for clue in CLUES if clue.family in ("", family) and clue.fits(frames)]
    return [clue for clue in found if clue.codes] or found
