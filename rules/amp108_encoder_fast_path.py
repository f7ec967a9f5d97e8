"""AMP108: a transformer encoder whose inference fast path is open to autocast on devices other than CUDA."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from amplint.claims.encoder_fast_paths import NEEDS_MASK, open_encoders
from amplint.rule import ASSUMED, Applicability, Cause, Example, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Visit


class EncoderFastPath(Rule):
    """An `nn.TransformerEncoder` in eval mode crashes under autocast on a device other than CUDA.

    What it does
    ------------
    Reports `nn.TransformerEncoder(...)` whose arguments leave its inference fast path open, where the file calls it
    with `src_key_padding_mask`. The path is open if the layer has `batch_first=True`, an even number of heads, ReLU or
    GELU as its activation, biases, and not `norm_first=True`, and if the encoder keeps `enable_nested_tensor=True`.
    An encoder with an odd number of heads, or with any other of these conditions broken, is never reported.

    Silent unless the file uses autocast on a device that is not literally `"cuda"` (`"cpu"`, `"xpu"`,
    `x.device.type`), or the device judged is not CUDA. Whether the model is ever run in eval mode without gradients
    cannot be seen in a file. A file that switches the fast path off with
    `torch.backends.mha.set_fastpath_enabled(False)` is left alone.

    Why it is bad
    -------------
    In eval mode without gradients the encoder packs a padded batch into a nested tensor and calls one fused operation.
    It means to leave that path under autocast, but it asks `torch.is_autocast_enabled()`, which answers for CUDA alone.
    Under autocast on CPU or XPU it goes on, and the fused operation gets hidden states in 16 bit and weights in
    float32. Training runs, and so does evaluation with gradients or without autocast: the first validation batch
    crashes. Before torch 2.6 it crashes without a mask as well. The path does not exist on MPS; a model developed there
    meets it when it runs on a CPU.

    How it shows
    ------------
    ```text
    RuntimeError: expected scalar type Float but found BFloat16
    RuntimeError: mat1 and mat2 must have the same dtype, but got BFloat16 and Float
    ```

    Example
    -------
    ```python
    layer = nn.TransformerEncoderLayer(dim, heads, batch_first=True)
    self.encoder = nn.TransformerEncoder(layer, num_layers=6)
    ...
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = self.encoder(hidden, src_key_padding_mask=padding)
    ```
    Use instead:
    ```python
    layer = nn.TransformerEncoderLayer(dim, heads, batch_first=True)
    self.encoder = nn.TransformerEncoder(layer, num_layers=6, enable_nested_tensor=False)
    ```

    Fix safety
    ----------
    Unsafe. Without nested tensors the encoder gives other numbers in eval mode where it ran before: padded positions
    hold computed values instead of zeros (which a mean over all positions sees), and the others differ by rounding.
    From torch 2.6 on the argument cures the crash; before, a padded batch crashes as an unpadded one does, so no fix is
    offered. There, run the encoder inside `torch.autocast(device_type, enabled=False)` on inputs cast to the dtype of
    its weights, or switch the fast path off with `torch.backends.mha.set_fastpath_enabled(False)`.
    """

    code: ClassVar[str] = "AMP108"
    changes: ClassVar[tuple[tuple[int, int], ...]] = (NEEDS_MASK,)
    name: ClassVar[str] = "encoder-fast-path"
    severity: ClassVar[Severity] = Severity.ERROR
    tokens: ClassVar[tuple[str, ...]] = ("TransformerEncoder",)
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    devices = ("cpu", "mps")
    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class SentenceEncoder(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.tokens = nn.Embedding(50, dim, padding_idx=0)
        layer = nn.TransformerEncoderLayer(dim, heads, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)  # expect

    def forward(self, token_ids):
        return self.encoder(self.tokens(token_ids), src_key_padding_mask=token_ids == 0)


def reproduce():
    model = SentenceEncoder().eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        model(torch.tensor([[3, 4, 5], [6, 7, 0]]))
""",
            scenario="autocast-bf16",
            device="cpu",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch import nn


class Encoders(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        layer = nn.TransformerEncoderLayer
        self.padded = nn.TransformerEncoder(layer(dim, heads, batch_first=True), 2, enable_nested_tensor=False)
        self.first = nn.TransformerEncoder(layer(dim, heads, batch_first=True, norm_first=True), 2)
        self.sequence_first = nn.TransformerEncoder(layer(dim, heads), 2)
        self.odd = nn.TransformerEncoder(layer(dim, 1, batch_first=True), 2)
        self.silu = nn.TransformerEncoder(layer(dim, heads, activation=nn.SiLU(), batch_first=True), 2)
        self.plain = nn.TransformerEncoder(layer(dim, heads, batch_first=True, bias=False), 2)
        self.unmasked = nn.TransformerEncoder(layer(dim, heads, batch_first=True), 2)

    def forward(self, x, padding):
        for encoder in (self.padded, self.first, self.odd, self.silu, self.plain):
            x = encoder(x, src_key_padding_mask=padding)
        return self.unmasked(self.sequence_first(x))


def run(model, x, padding):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(x, padding)
""",
            device="cpu",
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        scenarios = tuple(scenario.name for scenario in facts.scenarios if scenario.autocast)
        for found in open_encoders(facts) if scenarios else ():
            causes = []
            when = "with or without a padding mask before torch 2.6"
            if found.layer is not None:
                text = "the layer's arguments leave the inference fast path open"
                causes.append(Cause(facts.path, found.layer, text))
            if found.masked is not None:
                place = facts.span(found.masked)
                when = "when it gets a padding mask"
                causes.append(Cause(facts.path, place, "called with src_key_padding_mask"))
            if found.elsewhere is not None:
                place = facts.span(found.elsewhere)
                causes.append(Cause(facts.path, place, "autocast on a device that need not be CUDA"))
            span = facts.span(found.node)
            message = f"nn.TransformerEncoder raises under autocast outside of CUDA, in eval mode with no_grad, {when}"
            yield Suspect(span, span, message, scenarios, ASSUMED, tuple(causes))

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        if visit.facts.torch_version < NEEDS_MASK or any(argument.star for argument in node.args):
            visit.report(suspect)
            return
        given = visit.argument(node, "enable_nested_tensor", 3)
        if given is None:
            edit = visit.add_argument(node, "enable_nested_tensor=False")
        elif visit.code(given.value) == "True":
            edit = visit.replace(given.value, "False")
        else:
            visit.report(suspect)
            return
        visit.report(suspect, visit.fix(Applicability.UNSAFE, "Leave nested tensors out of this encoder", edit))
