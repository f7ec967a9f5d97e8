"""First guesses at a forward's inputs, from its parameters and the module's own layers."""

from __future__ import annotations

import enum
import re
import typing
from typing import Any

import torch
from torch import nn

from amplint.frozen import dataclass
from amplint.verify.build import names
from amplint.verify.build.signatures import VARIADIC, Parameter, parameters
from amplint.verify.build.spec import Const, Items, Plan, Spec, Tensor

B, N, S = names.BATCH, names.LENGTH, names.IMAGE
GRID = 4
"""Side of the square that a sequence of 16 makes."""


@dataclass(frozen=True)
class Widths:
    """Sizes that a module's layers expect: ``rank`` of the first layer's input (None: no layer says), its channels or
    features; and the largest index of its first embedding."""

    rank: int | None
    channels: int
    features: int
    vocabulary: int | None
    first: str


_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_RANKS = {"Conv1d": 3, "Conv2d": 4, "Conv3d": 5, "BatchNorm2d": 4, "BatchNorm3d": 5, "InstanceNorm2d": 4}


def widths(module: nn.Module) -> Widths:
    """What the layers of ``module`` expect, the first of each kind."""
    rank = channels = features = vocabulary = None
    first = ""
    for layer in module.modules():
        kind = type(layer).__name__
        if isinstance(layer, _CONVOLUTIONS):
            rank = rank or layer.weight.dim()
            channels = channels or layer.in_channels
            first = first or "conv"
        elif isinstance(layer, nn.Linear):
            features = features or layer.in_features
            first = first or "linear"
        elif isinstance(layer, nn.Embedding):
            vocabulary = vocabulary or layer.num_embeddings
            first = first or "embedding"
        elif isinstance(getattr(layer, "normalized_shape", None), tuple):
            features = features or int(typing.cast("Any", layer).normalized_shape[-1])
            first = first or "linear"
        elif isinstance(layer, nn.GroupNorm):
            channels = channels or layer.num_channels
            first = first or "norm"
        elif isinstance(getattr(layer, "num_features", None), int) and "Norm" in kind:
            channels = channels or int(typing.cast("Any", layer).num_features)
            rank = rank or _RANKS.get(kind)
            first = first or "norm"
    hinted = _attribute(module, ("in_channels", "in_chans", "in_chs", "channels", "num_channels"))
    dims = _attribute(module, ("dim", "embed_dim", "hidden_size", "d_model", "in_features", "in_dim", "num_features"))
    parameter = next((p for p in module.parameters(recurse=False) if p.dim() >= 1), None)
    last = parameter.shape[-1] if parameter is not None and parameter.dim() in (1, 2) else None
    return Widths(
        rank=rank,
        channels=channels or hinted or features or dims or last or names.FEATURES,
        features=features or dims or last or channels or names.FEATURES,
        vocabulary=vocabulary,
        first=first,
    )


def _attribute(module: nn.Module, wanted: tuple[str, ...]) -> int | None:
    for name in wanted:
        value = getattr(module, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


_SIDES = (*("img_size", "image_size", "input_size", "sample_size", "feat_size"), *("input_resolution", "resolution"))


def image_side(module: nn.Module) -> int | None:
    """The side of the images that the module or a layer of it says it was made for."""
    for layer in module.modules():
        for name in _SIDES:
            value = getattr(layer, name, None)
            value = value[-1] if isinstance(value, (tuple, list)) and value else value
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 512:
                return value
    return None


def layouts(module: nn.Module) -> dict[str, Tensor]:
    """Shapes that the module's main input may have, by the name of the layout."""
    size = widths(module)
    side = image_side(module) or S
    return {
        "image": Tensor((B, size.channels, side, side)),
        "large image": Tensor((B, size.channels, 224, 224)),
        "sequence": Tensor((B, N, size.features)),
        "ids": Tensor((B, N), "long", size.vocabulary or 2),
        "channels last": Tensor((B, GRID, GRID, size.features)),
        "vector": Tensor((B, size.features)),
        "signal": Tensor((B, size.channels, N)),
        "volume": Tensor((B, size.channels, GRID, S, S)),
        "heads": Tensor((B, names.HEADS, N, max(size.features // names.HEADS, 1))),
    }


def main_layouts(module: nn.Module, name: str) -> list[Tensor]:
    """Layouts for an input called ``name``, the likeliest first."""
    size, made = widths(module), layouts(module)
    by_rank = {3: "signal", 4: "image", 5: "volume"}
    named = re.search(r"([123])d(?![a-z])", type(module).__name__.lower())
    if re.search(r"(^|_)ids?$|^tokens?$|indices|^idx$|labels?$|targets?$", name):
        order = ["ids"]
    elif re.search(r"image|img|pixel|^sample$|latent|video", name):
        order = [by_rank.get(size.rank or 4, "image")]
    elif named is not None and re.fullmatch(r"x|input|inputs|hidden_states|sample|feat\w*", name):
        order = [by_rank[int(named[1]) + 2]]
    elif size.first == "embedding":
        order = ["ids", "sequence"]
    elif size.rank is not None and not re.search(r"hidden|token|query|key|value|^[qkv]$|embeds?$|context|seq", name):
        order = [by_rank[size.rank], "sequence"]
    elif size.first == "norm":
        order = ["image", "sequence"]
    else:
        order = ["sequence"]
    rest = ["sequence", "image", "channels last", "vector", "signal", "volume", "ids", "large image", "heads"]
    return list(dict.fromkeys(made[layout] for layout in [*order, *rest]))


def required(parameters: dict[str, Parameter]) -> list[str]:
    """Parameters that a call must give; ``*inputs`` where there is nothing else."""
    found = [n for n, p in parameters.items() if p.default is Parameter.empty and p.kind not in VARIADIC]
    if not found and not any(p.kind not in VARIADIC for p in parameters.values()):
        found = [n for n, p in parameters.items() if p.kind is Parameter.VAR_POSITIONAL]
    return found


def first_plans(module: nn.Module, parameters: dict[str, Parameter]) -> list[Plan]:
    """Plans to start from: one for each layout of the main input, the other parameters by name and annotation."""
    wanted = required(parameters)
    if not wanted:
        optional = [n for n, p in parameters.items() if p.kind not in VARIADIC and tensor_like(n, p.annotation)]
        wanted = optional[:1]
    if not wanted:
        return [{}]
    main = next((n for n in wanted if _is_main(n, parameters[n].annotation)), wanted[0])
    plans: list[Plan] = []
    for layout in main_layouts(module, main):
        plan: Plan = {}
        for name in wanted:
            choices = choices_for(name, parameters[name].annotation, module, layout)
            if parameters[name].kind is Parameter.VAR_POSITIONAL and isinstance(choices[0], Items):
                choices = [layout]  # one of them, not all
            plan[name] = layout if name == main and isinstance(choices[0], Tensor) else choices[0]
        plans.append(plan)
    return plans


def _is_main(name: str, annotation: Any) -> bool:
    return tensor_like(name, annotation) and not re.search(r"mask|^t$|time|emb$|temb|ids$|pos", name)


def tensor_like(name: str, annotation: Any) -> bool:
    """Whether a parameter may be a tensor, for what its annotation says."""
    return annotation in (Parameter.empty, Any, torch.Tensor) or "Tensor" in str(annotation)


def choices_for(name: str, annotation: Any, module: nn.Module, like: Tensor) -> list[Spec]:
    """Values for a forward parameter, best first. ``like`` is the layout of the main input."""
    size = widths(module)
    text = str(annotation)
    word = name.lower()
    square = len(like.shape) >= 4
    side = like.shape[-1] if square else GRID
    length = like.shape[1] if len(like.shape) == 3 else N
    sequence = Tensor((B, length, size.features))
    if annotation is bool or re.search(r"^(return|use|is|output|training|inference)_|_only$", word):
        return [Const(False), Const(True)]
    if annotation is int or (
        re.search(r"^(h|w|height|width|num_\w+|h_\w*|w_\w*|n_\w+|seq_?len|length|size|t_\w+|frames)$", word)
        and "Tensor" not in text
    ):
        return [Const(_whole(word, side, length)), Const(1), Const(side), Const(length)]
    if annotation is float:
        return [Const(1.0)]
    if annotation is torch.dtype or re.search(r"(^|_)dtype$", word):
        return [Const(torch.float32), Const(None)]
    if annotation is str or re.search(r"(^|_)(mode|type|name|task)$", word):
        return [Const(w) for w in names.words_for(word)]
    if re.search(r"(shape|size|resolution|_hw|^hw)$", word) and "Tensor" not in text:
        return [Const((side, side)), Const(like.shape), Const(side)]
    if _is_record(annotation):
        wanted = [
            n for n, p in parameters(annotation).items() if p.default is Parameter.empty and p.kind not in VARIADIC
        ]
        items = [choices_for(n, parameters(annotation)[n].annotation, module, like)[0] for n in wanted]
        return [Items(annotation, tuple(items), tuple(wanted)), like]
    if "Optional" in text or "None" in text:
        inner = _non_optional(annotation)
        return [Const(None), *(choices_for(name, inner, module, like) if inner is not annotation else [sequence])]
    if re.search(r"(List|list|Sequence|Tuple|tuple)\[", text):
        kind: type = tuple if "uple" in text else list
        counts = (2, 4, 3, 1)
        return [*(Items(kind, (like,) * count) for count in counts), Const((side, side))]
    if re.search(r"[Dd]ict\[|^dict$", text):
        return [Items(dict, ()), like]
    if re.search(r"^(timesteps?|ts?|time|sigmas?|noise_level|guidance|timestep_\w+)$", word):
        return [Tensor((B,)), Tensor((B,), "long", 100), Tensor((B, size.features)), Const(1)]
    if re.search(r"mask", word):
        return [
            Const(None),
            Tensor((B, length), "bool"),
            Tensor((length, length), "bool"),
            Tensor((B, 1, length, length)),
        ]
    if re.search(r"rotary|rope|freqs|(cos|sin)$|position_embeddings", word):
        pair = Tensor((length, max(size.features // names.HEADS, 1)))
        several = [] if annotation is torch.Tensor else [Items(tuple, (pair, pair))]
        return [*several, pair, Tensor((length, pair.shape[1] // 2 or 1), "complex"), Const(None)]
    if re.search(r"ids$|ind(ex|ices)$|indices|idx|labels?$|targets?$|positions?$", word):
        return [Tensor((B, length), "long", 2), Tensor((B,), "long", 2)]
    if re.search(r"temb|time_emb|^t_emb|^emb$|^c$|cond|^vec$|pooled|class_emb|^modulation$|^y$|style", word):
        return [Tensor((B, size.features)), sequence, like]
    if re.search(r"context|encoder_hidden|text|prompt|memory", word):
        return [sequence, Tensor((B, size.features))]
    plural = annotation is not torch.Tensor and re.search(r"(s|list)$", word)
    if plural and re.search(r"features|hidden_states_list|res_\w*tuple|states_tuple|^feats|^xs$|inputs", word):
        return [Items(list, (like,) * 4), like, Items(list, (like,) * 2)]
    return [like, sequence, Items(tuple, (like, like)), Tensor((B, size.features)), Const(None), Const(side)]


def _is_record(annotation: Any) -> bool:
    """A class of a library, not of torch, that is made of tensors."""
    if not isinstance(annotation, type) or issubclass(annotation, (torch.Tensor, nn.Module, enum.Enum)):
        return False
    if annotation.__module__.partition(".")[0] in ("builtins", "torch", "typing", "collections", "numpy"):
        return False
    taken = parameters(annotation).values()
    return any(p.default is Parameter.empty and "Tensor" in str(p.annotation) for p in taken)


def _whole(word: str, side: int, length: int) -> int:
    if re.search(r"h|w|height|width", word) and not word.startswith(("num", "n_")):
        return side
    return length if re.search(r"len|tokens|size", word) else 1 if "frames" in word or word.startswith("num") else side


def _non_optional(annotation: Any) -> Any:
    parts = [part for part in typing.get_args(annotation) if part is not type(None)]
    return parts[0] if parts and len(parts) < len(typing.get_args(annotation)) else annotation
