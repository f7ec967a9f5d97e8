"""A configuration made small by what its attributes are called, keeping the ratios that code relies on."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

VOCABULARY = 128
LAYERS = 2
EXPERTS = 16
POSITIONS = 64
QUERIES = 8

_WIDTH = re.compile(
    r"hidden|dim|d_model|d_ff|d_kv|d_inner|embd|embed|intermediate|inner|ffn|width|channels|rank|proj|filters|mlp|_size$"
)
_NO_WIDTH = re.compile(
    r"position|max|token|image|patch|length|num_|vocab|group|window|kernel|stride|layers|state_size|conv_size|_id$"
    r"|batch|chunk|block_size|grid|pool|ratio|factor|size_per|codebook|frame"
)
_LAYERS = re.compile(r"layers?$|layers_|^n_layer|depths?$|depth_|(num|n)_blocks|num_stacks")
_IMAGE = re.compile(r"(image|img|input|sample|resolution)_?(size|resolution)$")


@dataclass(frozen=True)
class Shrinking:
    """What is made small. The first of :data:`ATTEMPTS` with which a model runs is taken.

    ``divisor`` is of all widths; with ``heads`` it divides the numbers of heads too, and the width of one stays.
    ``unset``: heads that a default configuration leaves at None get the number that makes them add up.
    """

    divisor: int = 8
    sizes: bool = True
    layers: bool = True
    heads: bool = False
    unset: bool = False

    def __str__(self) -> str:
        named = [f"widths / {self.divisor}", *(name for name, on in vars(self).items() if on is True)]
        return f"shrunk by {', '.join(named)}"


ATTEMPTS = (
    Shrinking(),
    Shrinking(unset=True),
    Shrinking(sizes=False),
    Shrinking(heads=True),
    Shrinking(divisor=4),
    Shrinking(divisor=4, sizes=False),
    Shrinking(divisor=1),
    Shrinking(divisor=1, sizes=False),
    Shrinking(layers=False),
    Shrinking(divisor=1, layers=False),
)


@dataclass
class _Tokens:
    """Small token ids for large ones, the same for the same."""

    ids: dict[int, int] = field(default_factory=dict)

    def small(self, token: int) -> int:
        if token < VOCABULARY - 32:
            return token
        return self.ids.setdefault(token, VOCABULARY - 1 - len(self.ids) % 32)


def shrink(config: Any, how: Shrinking) -> None:
    """Make a configuration object and those in it small, in place."""
    tokens = _Tokens()
    for part in parts(config):
        _shrink(part, how, tokens)


def parts(config: Any) -> Iterator[Any]:
    """The configuration and all configurations below it, outer ones first."""
    yield config
    for value in list(vars(config).values()):
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(item, _base(config)):
                yield from parts(item)


def _base(config: Any) -> type:
    """The outermost class below object that configurations of this kind share: the one that can save them."""
    return next((cls for cls in reversed(type(config).__mro__) if "save_pretrained" in vars(cls)), type(config))


def _shrink(config: Any, how: Shrinking, tokens: _Tokens) -> None:
    values = {name: value for name, value in vars(config).items() if not name.startswith("_")}
    counts = {
        value: min(value, _kept_layers(values, value))
        for name, value in values.items()
        if _is_int(value) and value > LAYERS and _LAYERS.search(name) and how.layers
    }
    patch = values.get("patch_size")
    image = max(POSITIONS, 4 * patch) if _is_int(patch) else POSITIONS
    for name, value in {**values, **(_heads(values) if how.unset else {})}.items():
        small = _small(name, value, how, tokens, counts, image)
        if name not in values or small != values[name]:
            setattr(config, name, small)


def _heads(values: dict[str, Any]) -> dict[str, int]:
    """Numbers that a default configuration leaves at None though its model needs them."""
    heads, width = values.get("num_attention_heads"), values.get("hidden_size")
    if not _is_int(heads) or not _is_int(width):
        return {}
    return {
        "num_key_value_heads": values.get("num_key_value_heads") or heads,
        "head_dim": values.get("head_dim") or width // heads,
    }


def _small(name: str, value: Any, how: Shrinking, tokens: _Tokens, counts: dict[int, int], image: int) -> Any:
    if name.endswith(("_token_id", "_token_index", "_token_ids")):
        return _each(value, tokens.small)
    if name in ("suppress_tokens", "begin_suppress_tokens"):
        return None if value is None else [tokens.small(token) for token in value]
    if "vocab" in name:
        return _each(value, lambda size: min(size, VOCABULARY))
    if isinstance(value, dict) and "section" in " ".join(map(str, value)):
        return {
            key: _divided(item, how.divisor) if "section" in str(key) and not how.heads else item
            for key, item in value.items()
        }
    if isinstance(value, list) and value and len(value) in counts and not _is_int(value[0]):
        return value[: counts[len(value)]]
    if _LAYERS.search(name):
        return _each(value, lambda count: counts.get(count, count)) if _is_int(value) else _fewer(value, how)
    if "experts" in name and "per" not in name:
        return _each(value, lambda count: min(count, EXPERTS))
    if _IMAGE.search(name):
        return _each(value, lambda size: min(size, image)) if how.sizes else value
    if how.sizes and re.search(r"position|n_ctx$|num_queries", name):
        return _each(value, lambda size: min(size, QUERIES if "queries" in name else POSITIONS))
    if how.heads and "head" in name:
        counted = re.search(r"(num|n)_.*heads?$|_heads$", name)
        return _divided(value, how.divisor) if counted else value
    if _WIDTH.search(name) and not _NO_WIDTH.search(name):
        return _divided(value, how.divisor)
    return value


def _fewer(value: Any, how: Shrinking) -> Any:
    """A list of depths, one a stage."""
    return _each(value, lambda depth: min(depth, LAYERS)) if how.layers else value


def _kept_layers(values: dict[str, Any], count: int) -> int:
    """As many layers as show every kind of layer, and at least two."""
    kept = LAYERS
    for value in values.values():
        if isinstance(value, list) and len(value) == count and all(isinstance(item, (str, bool)) for item in value):
            kept = max(kept, max(value.index(kind) for kind in set(value)) + 1)
    return kept


def _divided(value: Any, divisor: int) -> Any:
    """Widths divided by the common divisor, where they are large enough and divide."""
    flat = [value] if _is_int(value) else value
    if not isinstance(flat, (list, tuple)) or not flat or not all(_is_int(item) for item in flat):
        return value
    if any(item % divisor for item in flat) or max(flat) < divisor:
        return value
    return _each(value, lambda width: width // divisor)


def _each(value: Any, function: Any) -> Any:
    if _is_int(value):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_each(item, function) for item in value)
    return value


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
