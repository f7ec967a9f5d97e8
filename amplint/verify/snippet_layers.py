"""How a small layer of a ``torch.nn`` class is made, and what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from amplint.verify.scene import LayerPart

SIZE = 4
"""Channels, features and lengths: one number for all, so that operands fit each other."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Form:
    """The constructor's arguments, the shape of the input, and that of the states that come after it."""

    arguments: tuple[Any, ...]
    takes: Shape
    state: Shape | None = None


def _spatial(n: int) -> Shape:
    return (1, SIZE, *(SIZE,) * n)


_FORMS: dict[str, Form] = {
    "Linear": Form((SIZE, SIZE), (SIZE, SIZE)),
    "Bilinear": Form((SIZE, SIZE, SIZE), (SIZE, SIZE)),
    "Embedding": Form((SIZE, SIZE), (SIZE,)),
    "EmbeddingBag": Form((SIZE, SIZE), (SIZE, SIZE)),
    "LayerNorm": Form((SIZE,), (SIZE, SIZE)),
    "RMSNorm": Form((SIZE,), (SIZE, SIZE)),
    "GroupNorm": Form((2, SIZE), _spatial(1)),
    "PReLU": Form((), (SIZE, SIZE)),
    "LSTM": Form((SIZE, SIZE), (2, SIZE, SIZE), (1, SIZE, SIZE)),
    "GRU": Form((SIZE, SIZE), (2, SIZE, SIZE), (1, SIZE, SIZE)),
    "RNN": Form((SIZE, SIZE), (2, SIZE, SIZE), (1, SIZE, SIZE)),
    "MultiheadAttention": Form((SIZE, 2), (2, SIZE, SIZE)),
    **{f"Conv{n}d": Form((SIZE, SIZE, 1), _spatial(n)) for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": Form((SIZE, SIZE, 1), _spatial(n)) for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": Form((SIZE,), _spatial(n)) for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": Form((SIZE,), _spatial(n)) for n in (1, 2, 3)},
}
_SWITCHES = {"LayerNorm": "elementwise_affine", "RMSNorm": "elementwise_affine"} | {
    name: "affine" for name in _FORMS if name.startswith(("BatchNorm", "GroupNorm"))
}
_BARE = frozenset(
    (
        *("Identity", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "Flatten"),
        *("ReLU", "ReLU6", "GELU", "SiLU", "Mish", "ELU", "CELU", "SELU", "GLU", "LeakyReLU", "Sigmoid", "Tanh"),
        *("Hardswish", "Hardsigmoid", "Hardtanh", "LogSigmoid", "Softplus", "Softsign", "Softmax", "LogSoftmax"),
        *("BCELoss", "BCEWithLogitsLoss", "MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "KLDivLoss"),
        *("CrossEntropyLoss", "NLLLoss", "CosineEmbeddingLoss"),
    )
)
"""Layers that need no arguments and have no parameters."""


def is_known(part: LayerPart) -> bool:
    """Whether a small layer of this class can be made, its children included."""
    name = _short(part)
    if name == "Sequential":
        return bool(part.children) and all(is_known(child) for child in part.children)
    return name in _FORMS or (name in _BARE and not part.dtypes)


def construction(part: LayerPart) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments of the constructor; what the part has no dtype for, it is made without."""
    name = _short(part)
    form = _FORMS.get(name)
    if form is None:
        return (), {}
    keywords: dict[str, Any] = {}
    if name in _SWITCHES and "weight" not in part.dtypes:
        keywords[_SWITCHES[name]] = False
    elif "bias" not in part.dtypes and name.startswith(("Linear", "Bilinear", "Conv", "LayerNorm")):
        keywords["bias"] = False
    return form.arguments, keywords


def takes(part: LayerPart) -> tuple[Shape, Shape] | None:
    """The shapes of the input and of what comes after it, as a recurrent layer's states; None where any will do."""
    for child in part.children:
        shapes = takes(child)
        if shapes is not None:
            return shapes
    form = _FORMS.get(_short(part))
    return (form.takes, form.state or form.takes) if form is not None else None


def _short(part: LayerPart) -> str:
    return part.name.removeprefix("torch.nn.")
