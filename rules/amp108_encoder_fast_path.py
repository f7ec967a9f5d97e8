"""AMP108: a transformer encoder whose inference fast path is open to autocast on devices other than CUDA."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from amplint.claims.surroundings import Surroundings
from amplint.finding import Applicability, Cause, Severity
from amplint.infer.dtypes import AUTOCASTABLE, FLOAT32
from amplint.infer.values import UNKNOWN, Const, Device, DTypeValue, Layer, Number, TorchName
from amplint.judge import doubts
from amplint.judge.certainty import ASSUMED, holding
from amplint.rule import Example, Rule, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import libcst as cst

    from amplint.infer.facts import FileFacts, TorchCall
    from amplint.infer.values import Value
    from amplint.visit import Visit

_ENCODER = "torch.nn.TransformerEncoder"
_MASK = "src_key_padding_mask"
_NEEDS_MASK = (2, 6)
"""From this release on only the nested tensor fails; before, the fused layer itself does."""

_AUTOCASTS = frozenset({"torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast"})
_CPU_AUTOCASTS = frozenset({"torch.cpu.amp.autocast", "torch.cpu.amp.autocast_mode.autocast"})
_CLOSED_DEVICES = ("cuda", "mps")
"""CUDA's autocast closes the fast path, and the fast path itself does not run on MPS."""

_FAST_ACTIVATIONS = frozenset({"relu", "gelu", "torch.nn.functional.relu", "torch.nn.functional.gelu"})
_FAST_LAYERS = frozenset({"torch.nn.ReLU", "torch.nn.GELU"})


class _Use(NamedTuple):
    """A call that hands the encoder a padding mask; ``alone`` unless an attention mask may come with it."""

    node: ast.Call
    alone: bool


class EncoderFastPath(Rule):
    """An `nn.TransformerEncoder` in eval mode crashes under autocast on a device other than CUDA.

    What it does
    ------------
    Reports `nn.TransformerEncoder(...)` whose arguments leave its inference fast path open, where the file calls it
    with `src_key_padding_mask`. The path is open if the layer has `batch_first=True`, an even number of heads, ReLU or
    GELU as its activation, biases, and not `norm_first=True`, and if the encoder keeps `enable_nested_tensor=True`.
    An encoder with an odd number of heads, or with any other of these conditions broken, is never reported.

    The finding is shown if the file uses autocast on a device that is not literally `"cuda"` (`"cpu"`, `"xpu"`,
    `x.device.type`), or if the device judged is not CUDA. Otherwise it is only possible, and `--pedantic` shows it.
    Whether the model is ever run in eval mode without gradients cannot be seen in a file. A file that switches the fast
    path off with `torch.backends.mha.set_fastpath_enabled(False)` is left alone.

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
    changes: ClassVar[tuple[tuple[int, int], ...]] = (_NEEDS_MASK,)
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
        encoders = [call for call in facts.calls if call.name == _ENCODER and "encoder_layer" in call.arguments]
        if not scenarios or not encoders or _switched_off(facts):
            return
        evidence = _other_device(facts)
        around = Surroundings.of(facts.source.tree)
        for call in encoders:
            opened = _open(call, facts)
            if opened is None:
                continue
            asked = {
                doubts.FAST_PATH_MAY_BE_SHUT: not opened,
                doubts.CUDA_ALONE: evidence is None and facts.device == "cuda",
            }
            standing = ASSUMED.doubted(*holding(asked))
            causes = [*_layer_cause(call, facts)]
            when = "with or without a padding mask before torch 2.6"
            if facts.torch_version >= _NEEDS_MASK:
                used = _use(call, facts, around)
                if used is None:
                    continue
                if not used.alone:
                    standing = standing.doubted(doubts.OTHER_MASK_TOO, span=facts.span(used.node))
                when = "when it gets a padding mask"
                causes.append(Cause(facts.path, facts.span(used.node), "called with src_key_padding_mask"))
            if evidence is not None:
                causes.append(Cause(facts.path, facts.span(evidence), "autocast on a device that need not be CUDA"))
            span = facts.span(call.node)
            message = f"nn.TransformerEncoder raises under autocast outside of CUDA, in eval mode with no_grad, {when}"
            yield Suspect(span, span, message, scenarios, standing, tuple(causes))

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        if visit.facts.torch_version < _NEEDS_MASK or any(argument.star for argument in node.args):
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


def _open(call: TorchCall, facts: FileFacts) -> bool | None:
    """Whether the constructors' arguments leave the fast path open: None if not, False if that cannot be told."""
    layer = call.arguments["encoder_layer"]
    if not isinstance(layer, Layer) or layer.name != "torch.nn.TransformerEncoderLayer":
        return None
    options = layer.options
    if options.get("batch_first") != Const(True):
        return None
    dtype = options.get("dtype")
    if isinstance(dtype, DTypeValue) and any(lane.mask & AUTOCASTABLE & ~FLOAT32 for lane in dtype.dtypes):
        return None
    heads = options.get("nhead", UNKNOWN)
    answers = [
        _differs(options.get("norm_first"), True),
        _differs(options.get("bias"), False),
        _differs(call.arguments.get("enable_nested_tensor"), False),
        _is_fast(options.get("activation")),
        heads.value % 2 == 0 if isinstance(heads, Const) and isinstance(heads.value, int) else True,
    ]
    if False in answers:
        return None
    return None not in answers and not _open_ended(call.node) and not _open_ended(_constructor(layer, facts))


def _differs(value: Value | None, closing: bool) -> bool | None:
    """Whether an argument is known not to close the path; None where its value is the caller's."""
    if value is None:
        return True
    return bool(value.value) is not closing if isinstance(value, Const) else None


def _is_fast(activation: Value | None) -> bool | None:
    """Whether the fused operation knows an activation; None where it is the caller's."""
    if activation is None:
        return True
    if isinstance(activation, Const):
        return activation.value in _FAST_ACTIVATIONS
    if isinstance(activation, TorchName):
        return activation.name in _FAST_ACTIVATIONS
    if isinstance(activation, Layer):
        return activation.name in _FAST_LAYERS
    return None


def _constructor(layer: Layer, facts: FileFacts) -> ast.Call | None:
    return next((c.node for c in facts.calls if c.name == layer.name and facts.span(c.node) == layer.span), None)


def _open_ended(call: ast.Call | None) -> bool:
    """Whether a call hands on arguments that it does not name."""
    return call is not None and any(keyword.arg is None for keyword in call.keywords)


def _layer_cause(call: TorchCall, facts: FileFacts) -> Iterator[Cause]:
    layer = call.arguments["encoder_layer"]
    if isinstance(layer, Layer) and layer.span is not None:
        constructor = _constructor(layer, facts)
        if constructor is not None:
            yield Cause(facts.path, layer.span, "the layer's arguments leave the inference fast path open")


def _use(encoder: TorchCall, facts: FileFacts, around: Surroundings) -> _Use | None:
    """The call that gives this encoder a padding mask, preferably with nothing that would close the fast path.

    Calls of the name that the encoder is assigned to decide; where there are none, any call in the file does.
    """
    calls = [node for node in ast.walk(facts.source.tree) if isinstance(node, ast.Call)]
    own = _calls_of(encoder.node, calls, around)
    uses = [use for node in own or calls if (use := _masked(node, bool(own))) is not None]
    shielded = {id(r.call) for r in facts.references if r.name in _AUTOCASTS and r.call and _disables(r.call)}
    uses = [use for use in uses if not _inside(use.node, shielded, around)]
    return next((use for use in uses if use.alone), uses[0] if uses else None)


def _calls_of(constructor: ast.Call, calls: list[ast.Call], around: Surroundings) -> list[ast.Call]:
    """The calls of what a constructor's result is assigned to: ``self.encoder`` in its class, a name in the file."""
    statement = around.parent(constructor)
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.NamedExpr):
        targets = [statement.target]
    else:
        return []
    spelled = {ast.unparse(target) for target in targets}
    owner = next((a for a in around.ancestors(constructor) if isinstance(a, ast.ClassDef)), None)
    return [
        call
        for call in calls
        if ast.unparse(call.func) in spelled
        and (owner is None or isinstance(call.func, ast.Name) or owner in around.ancestors(call))
    ]


def _masked(call: ast.Call, own: bool) -> _Use | None:
    """A call with a padding mask. ``own``: it is known to call the encoder, so that positions mean something."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    positional = call.args if own and not any(isinstance(arg, ast.Starred) for arg in call.args) else []
    padding = given.get(_MASK, positional[2] if len(positional) > 2 else None)
    if padding is None or _is_none(padding):
        return None
    masks = [given.get("mask"), given.get("src_mask"), positional[1] if len(positional) > 1 else None]
    return _Use(call, all(mask is None or _is_none(mask) for mask in masks))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _inside(node: ast.AST, contexts: set[int], around: Surroundings) -> bool:
    """Whether a node stands in a ``with`` block of one of these calls, or in a function that one decorates."""
    for ancestor in around.ancestors(node):
        if isinstance(ancestor, ast.With) and any(id(item.context_expr) in contexts for item in ancestor.items):
            return True
        if isinstance(ancestor, ast.FunctionDef) and any(id(d) in contexts for d in ancestor.decorator_list):
            return True
    return False


def _disables(call: ast.Call) -> bool:
    return any(k.arg == "enabled" and isinstance(k.value, ast.Constant) and not k.value.value for k in call.keywords)


def _other_device(facts: FileFacts) -> ast.Call | None:
    """A use of autocast that need not be CUDA's."""
    evaluated = {id(call.node): call.arguments for call in facts.calls if call.name in _AUTOCASTS}
    for reference in facts.references:
        call = reference.call
        if call is None or _disables(call):
            continue
        if reference.name in _CPU_AUTOCASTS:
            return call
        if reference.name not in _AUTOCASTS:
            continue
        node = next((k.value for k in call.keywords if k.arg == "device_type"), call.args[0] if call.args else None)
        arguments = evaluated.get(id(call), {})
        value = arguments.get("device_type", arguments.get("0", UNKNOWN))
        if isinstance(value, Number) or node is None:
            continue
        kind = value.value if isinstance(value, Const) else value.type if isinstance(value, Device) else None
        if isinstance(node, ast.Constant):
            kind = node.value
        if not isinstance(kind, str) or kind.partition(":")[0] not in _CLOSED_DEVICES:
            return call
    return None


def _switched_off(facts: FileFacts) -> bool:
    """Whether the file switches the fast path off for the whole process."""
    for reference in facts.references:
        if reference.name == "torch.backends.mha.set_fastpath_enabled" and reference.call is not None:
            values = [*reference.call.args, *(keyword.value for keyword in reference.call.keywords)]
            if any(isinstance(value, ast.Constant) and value.value is False for value in values):
                return True
    return False
