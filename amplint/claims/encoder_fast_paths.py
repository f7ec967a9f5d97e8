"""Transformer encoders whose inference fast path is open to the autocast of devices other than CUDA."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.claims.surroundings import Surroundings
from amplint.frozen import dataclass
from amplint.infer.lattice.dtypes import AUTOCASTABLE, FLOAT32
from amplint.infer.lattice.values import UNKNOWN, Const, Device, DTypeValue, Layer, Number, TorchName
from amplint.infer.syntax.by_kind import nodes_of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.lattice.values import Value
    from amplint.infer.state.facts import FileFacts, TorchCall
    from amplint.source import Span

_ENCODER = "torch.nn.TransformerEncoder"
_MASK = "src_key_padding_mask"
NEEDS_MASK = (2, 6)
"""From this release on only the nested tensor fails; before, the fused layer itself does."""
_AUTOCASTS = frozenset({"torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast"})
_CPU_AUTOCASTS = frozenset({"torch.cpu.amp.autocast", "torch.cpu.amp.autocast_mode.autocast"})
_CLOSED_DEVICES = ("cuda", "mps")
"""CUDA's autocast closes the fast path, and the fast path itself does not run on MPS."""
_FAST_ACTIVATIONS = frozenset({"relu", "gelu", "torch.nn.functional.relu", "torch.nn.functional.gelu"})
_FAST_LAYERS = frozenset({"torch.nn.ReLU", "torch.nn.GELU"})


@dataclass(frozen=True, slots=True)
class OpenEncoder:
    """An encoder that a call makes with its fast path open.

    ``layer`` is where its layer is made, ``masked`` the call with a padding mask, where the release of torch needs one,
    and ``elsewhere`` a use of autocast that need not be CUDA's.
    """

    node: ast.Call
    layer: Span | None
    masked: ast.Call | None
    elsewhere: ast.Call | None


def _may_be_open(call: TorchCall) -> bool:
    """Whether nothing in the constructors' arguments shuts the fast path."""
    layer = call.arguments["encoder_layer"]
    if not isinstance(layer, Layer) or layer.name != "torch.nn.TransformerEncoderLayer":
        return False
    options = layer.options
    if options.get("batch_first") != Const(True):
        return False
    dtype = options.get("dtype")
    if isinstance(dtype, DTypeValue) and any(lane.mask & AUTOCASTABLE & ~FLOAT32 for lane in dtype.dtypes):
        return False
    heads = options.get("nhead", UNKNOWN)
    return not (
        _is(options.get("norm_first"), True)
        or _is(options.get("bias"), False)
        or _is(call.arguments.get("enable_nested_tensor"), False)
        or _is_slow(options.get("activation"))
        or (isinstance(heads, Const) and isinstance(heads.value, int) and heads.value % 2 != 0)
    )


def _is(value: Value | None, closing: bool) -> bool:
    return isinstance(value, Const) and bool(value.value) is closing


def _is_slow(activation: Value | None) -> bool:
    """Whether the fused operation does not know an activation."""
    if isinstance(activation, Const):
        return activation.value not in _FAST_ACTIVATIONS
    if isinstance(activation, TorchName):
        return activation.name not in _FAST_ACTIVATIONS
    return isinstance(activation, Layer) and activation.name not in _FAST_LAYERS


def _constructor(layer: Layer, facts: FileFacts) -> ast.Call | None:
    return next((c.node for c in facts.calls if c.name == layer.name and facts.span(c.node) == layer.span), None)


def _layer_span(call: TorchCall, facts: FileFacts) -> Span | None:
    """Where the encoder's layer is made, if that is in this file."""
    layer = call.arguments["encoder_layer"]
    return layer.span if isinstance(layer, Layer) and _constructor(layer, facts) is not None else None


def _masked_call(encoder: TorchCall, facts: FileFacts, around: Surroundings) -> ast.Call | None:
    """The call that gives this encoder a padding mask.

    Calls of the name that the encoder is assigned to decide; where there are none, any call in the file does.
    """
    calls = nodes_of_kind(facts.source.tree, ast.Call)
    own = _calls_of(encoder.node, calls, around)
    shielded = {id(r.call) for r in facts.references if r.name in _AUTOCASTS and r.call and _disables(r.call)}
    uses = (node for node in own or calls if _is_masked(node, bool(own)))
    return next((use for use in uses if not _inside(use, shielded, around)), None)


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
        and (owner is None or isinstance(call.func, ast.Name) or around.is_within(call, owner))
    ]


def _is_masked(call: ast.Call, own: bool) -> bool:
    """Whether a call has a padding mask. ``own``: it is known to call the encoder, so that positions mean something."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    positional = call.args if own and not any(isinstance(arg, ast.Starred) for arg in call.args) else []
    padding = given.get(_MASK, positional[2] if len(positional) > 2 else None)
    return padding is not None and not (isinstance(padding, ast.Constant) and padding.value is None)


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


def open_encoders(facts: FileFacts) -> Iterator[OpenEncoder]:
    """The encoders of a file that autocast outside of CUDA may break.

    Judged for CUDA, that takes a use of autocast that need not be CUDA's.
    """
    encoders = [call for call in facts.calls if call.name == _ENCODER and "encoder_layer" in call.arguments]
    if not encoders or _switched_off(facts):
        return
    elsewhere = _other_device(facts)
    if elsewhere is None and facts.device == "cuda":
        return
    around = Surroundings.of(facts.source.tree)
    for call in encoders:
        if not _may_be_open(call):
            continue
        masked = _masked_call(call, facts, around) if facts.torch_version >= NEEDS_MASK else None
        if masked is not None or facts.torch_version < NEEDS_MASK:
            yield OpenEncoder(call.node, _layer_span(call, facts), masked, elsewhere)
