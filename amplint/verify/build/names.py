"""What the names of constructor parameters usually mean, and small values that fit together.

The sizes agree with each other: features of 32 in 4 heads of 8, images of 16 in patches and windows of 4, sequences of
16. Their order is the order of trying.
"""

from __future__ import annotations

import re
from typing import Any

FEATURES = 32
HEADS = 4
IMAGE = 16
LENGTH = 16
BATCH = 2

DEPTH, VOCABULARY, SIZE, COUNT = "depth", "vocabulary", "size", "count"

_ROLES: list[tuple[str, str | None, list[Any]]] = [
    (
        r"^(use|is|has|with|return|enable|disable|add|require|pre|post|do|should|flatten|only|skip)_",
        None,
        [False, True],
    ),
    (r"bias$|^(affine|causal|gated|qk_norm|elementwise_affine|trainable)$", None, [True, False]),
    (r"^device$|^dtype$|_dtype$|^generator$", None, [None]),
    (r"drop|^eps$|_eps$|prob|^p$|_rate$", None, [0.0, 1e-5]),
    (r"num_(key_value|kv)_heads|kv_heads|num_kv|n_kv", COUNT, [HEADS, 2, 1]),
    (r"num_norm_groups|norm_num_groups|norm_groups|num_groups|groups_out|^groups$|_groups$", None, [4, 1, 8]),
    (r"((num|n)_?)?(attn_|attention_)?(heads?|nhead)(_num|_count)?s?$|^n_?head", COUNT, [HEADS, 2, 8, 1]),
    (r"head_(dim|size|width|ch\w*)|dim_head|^d_head|attention_head_dim|key_dim|^d_[kvq]$|qk_dim", None, [8, 16, 32]),
    (r"^levels$", None, [[4, 3, 5], 4, 2]),
    (
        r"(num_)?(layers|blocks|stages|repeats|levels|depth|modules)(_per_block)?$|^depth|^n_layers?$|num_hidden_layers|num_repeat",
        DEPTH,
        [2, 1, [2, 2], [1, 1, 1, 1], 3],
    ),
    (r"depths$|^num_(layers|blocks)_per|blocks_per|layers_per", DEPTH, [[1, 1, 1, 1], [2, 2], 2]),
    (r"vocab|num_embed(s|ding|dings)|num_class(es)?|n_class|codebook_size|num_codes|dict_size", VOCABULARY, [16, 32]),
    (r"patch_?size|^patch$|tubelet|patch_shape", None, [4, 2, (4, 4), 1, (1, 2, 2)]),
    (r"window_?(size|shape|\w*resolution)?$|^ws$|win_size|win_shape", None, [4, (4, 4), 7, (7, 7)]),
    (
        r"(img|image|input|feat|feature|fmap|grid|spatial|sample|query|crop|kv)_?(size|shape|res\w*|hw)$|resolution|feature_map_size",
        SIZE,
        [IMAGE, (IMAGE, IMAGE), (4, 4), 32, 64, 224],
    ),
    (r"^(input|in|data|state|obs\w*)_?dims?$", None, [FEATURES, 64, 16, 4, 3, 1, (FEATURES,), (4, IMAGE, IMAGE)]),
    (r"^(height|width|h|w)$|_(height|width)$", SIZE, [IMAGE, 4]),
    (r"kernel_?(size|shape)?s?$|ksize|^k$|^ks$|filter_size", None, [3, 1, [3, 3], 5, (3, 3)]),
    (r"stride|dilation", None, [1, 2, [1, 1], (1, 1)]),
    (r"padding|^pad$|_pad$|paddings$", None, [1, 0, "same"]),
    (
        r"scale_factor|upscale|downsample_factor|upsample_factor|^factor$|compression|reduction|^r$|^ratio$",
        None,
        [2, 1, 4, 2.0],
    ),
    (r"mlp_ratio|ratio|expan[ds]|mult(iplier)?$|widen", None, [2.0, 2, 1, [2, 2]]),
    (
        r"^(scale|alpha|beta|gamma|momentum|temperature|tau|sigma|value|weight_scale|theta|base|init\w*|max_freq|max_period)$|scale$|"
        r"_(value|scale|factor|temperature|sigma)$",
        None,
        [1.0, 0.1, 2],
    ),
    (
        r"max_(len|seq|pos|source|text|frames|num|size)\w*|seq_?len\w*|context_len\w*|num_(tokens|patches|pos\w*|queries|latents?|frames|slots|vectors)|"
        r"(length|len|tokens|points)$|^n$|^num_\w+$",
        None,
        [LENGTH, 4, 64],
    ),
    (r"rank$|^r$|lora", None, [4, 2]),
    (
        r"(channels|chs|dims|features|filters|sizes|planes|hidden_units|widths)_?list$|^(out_|block_out_|in_|hidden_|embed_|"
        r"stage_|layer_|encoder_|decoder_)*(dims|channels_list|chs_list|chans_list|sizes|widths)$|block_out_channels|axes_dims?|axes_dim",
        None,
        [[FEATURES] * 4, [FEATURES, FEATURES], (8, 12, 12), FEATURES],
    ),
    (
        r"(in|out|image|latent|input|output)_?(chans?|channels?|chs?|c)$|^(c_?in|c_?out|inp|oup|inplanes|planes|channels?|chs)$",
        None,
        [FEATURES, 4, 3, [FEATURES] * 4, 64],
    ),
    (
        r"^(inner|hidden|ff|ffn|mlp|intermediate|bottleneck|mid|inter)_?(dim|size|features|chs?|channels?)|ff_inner",
        None,
        [2 * FEATURES, FEATURES],
    ),
    (r"^(i|idx|index|layer_idx|layer_id|block_idx|layer_index|level|stage|rank_id)$|_idx$|_index$|_id$", None, [0, 1]),
    (r"^(num_|n_)", COUNT, [2, 4, 1]),
]
_COMPILED = [(re.compile(pattern), role, values) for pattern, role, values in _ROLES]

WIDTHS: list[Any] = [FEATURES, 64, 16, 4, 3, 1, [FEATURES] * 4, (FEATURES, FEATURES)]
"""Sizes for a number about which nothing is known."""

_WORDS: list[tuple[str, list[str]]] = [
    (r"act", ["silu", "gelu", "relu", "swish", "geglu", "gelu-approximate"]),
    (
        r"norm",
        ["layer_norm", "layernorm", "rms_norm", "group_norm", "batch_norm", "ada_norm", "batchnorm2d", "groupnorm"],
    ),
    (r"pad", ["same", "zeros", "reflect", "constant", ""]),
    (r"interp|resample|sample|mode", ["bilinear", "nearest", "linear", "conv", "bicubic"]),
    (r"pool", ["avg", "max", "token", "mean", ""]),
    (r"attn|attention", ["default", "sdpa", "eager", "vanilla", "softmax"]),
    (r"init|scheme", ["default", "normal", "kaiming", "zeros", "xavier"]),
    (r"schedule|prediction", ["linear", "epsilon", "cosine"]),
]


def values_for(name: str) -> list[Any]:
    """Values to try for a number-like parameter of this name, best first; [] where the name says nothing."""
    return next((list(values) for pattern, _, values in _COMPILED if pattern.search(name.lower())), [])


def role_of(name: str) -> str | None:
    """DEPTH, VOCABULARY, SIZE, COUNT, or None: what may be made smaller together."""
    return next((role for pattern, role, _ in _COMPILED if pattern.search(name.lower())), None)


def words_for(name: str) -> list[str]:
    """Words that a string parameter of this name commonly accepts."""
    return next(
        (words for pattern, words in _WORDS if re.search(pattern, name.lower())), ["default", "same", "linear", ""]
    )
