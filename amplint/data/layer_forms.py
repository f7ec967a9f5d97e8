"""Constructions and calls of ``torch.nn`` layers that ModuleInfo has no samples for.

Each form is a layer, a builder of its constructor's ``(args, kwargs)`` and a builder of the call's arguments: small
float32 CPU tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from amplint.data.forms import t

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Form = tuple[str, Callable[[], Arguments], Callable[[], Arguments]]
FORMS: list[Form] = []


def _add(names: str, build: Callable[[], tuple[Any, ...]], *args: Any, **kwargs: Any) -> None:
    for name in names.split():
        FORMS.append((name, lambda: (args, kwargs), lambda: (build(), {})))


def _rows() -> torch.Tensor:
    return torch.tensor([[0, 1], [1, 2]])


def _unpooled(*shape: int) -> tuple[Any, ...]:
    return t(*shape), torch.zeros(shape, dtype=torch.long)


_add("Identity Flatten Dropout AlphaDropout FeatureAlphaDropout Hardsigmoid RReLU", lambda: (t(2, 3),))
_add("Dropout1d Dropout2d Dropout3d", lambda: (t(2, 3, 4, 4, 4)[..., 0, 0],))
_add("ChannelShuffle", lambda: (t(1, 4, 2, 2),), 2)
_add("PixelShuffle", lambda: (t(1, 4, 2, 2),), 2)
_add("PixelUnshuffle", lambda: (t(1, 1, 4, 4),), 2)
_add("Unflatten", lambda: (t(2, 4),), 1, (2, 2))
_add("Fold", lambda: (t(1, 8, 4),), (3, 3), (2, 2))
_add("Unfold", lambda: (t(1, 2, 4, 4),), 2)
_add("Upsample", lambda: (t(1, 1, 3, 3),), scale_factor=2)
_add("Upsample", lambda: (t(1, 1, 3, 3),), scale_factor=2, mode="bilinear")
_add("Upsample", lambda: (t(1, 1, 3, 3),), scale_factor=2, mode="area")
_add("UpsamplingBilinear2d UpsamplingNearest2d", lambda: (t(1, 1, 3, 3),), scale_factor=2)
_add("CosineSimilarity PairwiseDistance", lambda: (t(2, 3), t(2, 3)))
_add("CrossMapLRN2d", lambda: (t(1, 4, 3, 3),), 2)
_add("FractionalMaxPool2d", lambda: (t(1, 2, 6, 6),), 2, output_size=3)
_add("FractionalMaxPool2d", lambda: (t(1, 2, 6, 6),), 2, output_size=3, return_indices=True)
_add("FractionalMaxPool3d", lambda: (t(1, 2, 6, 6, 6),), 2, output_size=3)
_add("FractionalMaxPool3d", lambda: (t(1, 2, 6, 6, 6),), 2, output_size=3, return_indices=True)
_add("EmbeddingBag", lambda: (_rows(),), 4, 3)
_add("EmbeddingBag", lambda: (_rows(), None, t(2, 2)), 4, 3, mode="sum")
_add("EmbeddingBag", lambda: (_rows()[0], torch.tensor([0])), 4, 3)
_add("MaxUnpool1d", lambda: _unpooled(1, 2, 3), 2)
_add("MaxUnpool2d", lambda: _unpooled(1, 2, 3, 3), 2)
_add("MaxUnpool3d", lambda: _unpooled(1, 2, 3, 3, 3), 2)
_add("NLLLoss2d", lambda: (t(1, 3, 2, 2), torch.zeros(1, 2, 2, dtype=torch.long)))
_add("TripletMarginLoss TripletMarginWithDistanceLoss", lambda: (t(2, 4), t(2, 4), t(2, 4)))
_add("AdaptiveLogSoftmaxWithLoss", lambda: (t(2, 4), torch.tensor([0, 5])), 4, 6, [2, 4])
_add("BCELoss BCEWithLogitsLoss", lambda: (t(2, 4), t(2, 4)))
_add("BatchNorm1d", lambda: (t(4, 3),), 3)
_add("BatchNorm2d SyncBatchNorm", lambda: (t(4, 3, 2, 2),), 3)
_add("BatchNorm3d", lambda: (t(4, 3, 2, 2, 2),), 3)
_add("BatchNorm1d", lambda: (t(4, 3),), 3, affine=False)
_add("BatchNorm1d", lambda: (t(4, 3),), 3, track_running_stats=False)
_add("InstanceNorm1d", lambda: (t(2, 3, 4),), 3, affine=True)
_add("InstanceNorm2d", lambda: (t(2, 3, 4, 4),), 3, affine=True)
_add("InstanceNorm3d", lambda: (t(2, 3, 4, 4, 4),), 3, affine=True)
_add("LazyLinear", lambda: (t(2, 4),), 3)
_add("LazyBatchNorm1d", lambda: (t(4, 3),))
_add("LazyBatchNorm2d", lambda: (t(4, 3, 2, 2),))
_add("LazyBatchNorm3d", lambda: (t(4, 3, 2, 2, 2),))
_add("LazyInstanceNorm1d", lambda: (t(2, 3, 4),), affine=True)
_add("LazyInstanceNorm2d", lambda: (t(2, 3, 4, 4),), affine=True)
_add("LazyInstanceNorm3d", lambda: (t(2, 3, 4, 4, 4),), affine=True)
_add("Softmax LogSoftmax Softmin", lambda: (t(2, 3),), dim=-1)
_add("GELU", lambda: (t(2, 3),), approximate="tanh")
_add("LSTM GRU RNN", lambda: (t(5, 2, 4),), 4, 3)
_add("LSTM GRU RNN", lambda: (t(2, 5, 4),), 4, 3, batch_first=True, bidirectional=True)
_add("LSTM", lambda: (t(5, 2, 4), (t(1, 2, 3), t(1, 2, 3))), 4, 3)
_add("GRU RNN", lambda: (t(5, 2, 4), t(1, 2, 3)), 4, 3)
_add("LSTM", lambda: (t(5, 2, 4),), 4, 3, proj_size=2)
_add("LSTM", lambda: (t(5, 2, 4), (t(1, 2, 2), t(1, 2, 3))), 4, 3, proj_size=2)
_add("LSTMCell GRUCell RNNCell", lambda: (t(2, 4),), 4, 3)
_add("MultiheadAttention", lambda: (t(3, 2, 4), t(3, 2, 4), t(3, 2, 4)), 4, 2)
_add("MultiheadAttention", lambda: (t(2, 3, 4), t(2, 3, 4), t(2, 3, 4)), 4, 2, batch_first=True)
_add("MultiheadAttention", lambda: (t(2, 3, 4), t(2, 3, 4), t(2, 3, 4), None, False), 4, 2, batch_first=True)
_add("TransformerEncoderLayer", lambda: (t(3, 2, 4),), 4, 2, 8)
_add("TransformerEncoderLayer", lambda: (t(3, 2, 4),), 4, 2, 8, norm_first=True)
_add("TransformerEncoderLayer", lambda: (t(2, 3, 4),), 4, 2, 8, batch_first=True)
_add("TransformerEncoderLayer", lambda: (t(2, 3, 4),), 4, 2, 8, batch_first=True, norm_first=True)
_add("TransformerDecoderLayer", lambda: (t(3, 2, 4), t(3, 2, 4)), 4, 2, 8)
_add("Transformer", lambda: (t(3, 2, 4), t(3, 2, 4)), 4, 2, 1, 1, 8)


def _stack(name: str, *call: tuple[int, ...], **options: bool) -> None:
    """A stack of layers, which takes one of them."""

    def made() -> Arguments:
        return ((getattr(torch.nn, name + "Layer")(4, 2, 8, **options), 1), {})

    FORMS.append((name, made, lambda: (tuple(t(*shape) for shape in call), {})))


_stack("TransformerEncoder", (3, 2, 4))
_stack("TransformerEncoder", (2, 3, 4), batch_first=True)
_stack("TransformerDecoder", (3, 2, 4), (3, 2, 4))
