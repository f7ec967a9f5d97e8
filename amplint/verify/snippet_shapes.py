"""Small operands to try an operation with: shapes of tensors, positions, sizes and flags, likeliest first."""

from __future__ import annotations

import ast
import itertools
import re
from dataclasses import field
from typing import TYPE_CHECKING, Any

import torch

from amplint.data.forms import FORMS
from amplint.frozen import dataclass
from amplint.infer.torch_model.torch_ops import find_op
from amplint.verify.snippet_layers import SIZE, Shape, takes
from amplint.verify.tensors import dtype_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.verify.scene import Place, Scene

MAX_TRIES = 200
_MAX_SHAPES = 120
_MAX_VALUES = 24

_TOGETHER: tuple[Shape, ...] = (
    (SIZE, SIZE),
    (SIZE,),
    (2, SIZE, SIZE),
    (1, 2, SIZE, SIZE),
    (1, SIZE, 8),
    (1, SIZE, 8, 8),
    (1, SIZE, 4, 8, 8),
    (1,),
    (SIZE, 2),
)
"""Shapes that all tensors may have together; channels first for images, pairs of numbers last."""
_APART: tuple[Shape, ...] = ((SIZE, SIZE), (SIZE,), (2, SIZE, SIZE), (1, SIZE, 8, 8))
"""Shapes that each may have by itself."""

_VALUES: dict[str, tuple[Any, ...]] = {
    "int": (0, 1, SIZE, 2, -1),
    "float": (0.5, 1.0),
    "bool": (False, True),
    "": (1, 0, SIZE, (SIZE,), None, False, 0.5, torch.arange(SIZE), torch.zeros(SIZE, SIZE, dtype=torch.long)),
}


@dataclass(frozen=True)
class Trial:
    """By the name of a place: the shape of a tensor, the tensor that is an index, any other value."""

    shapes: dict[str, Shape] = field(default_factory=dict)
    indices: dict[str, torch.Tensor] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)


def trials(op: str, scene: Scene) -> Iterator[Trial]:
    """At most ``MAX_TRIES`` assignments, the likeliest first. ``op`` is the operation's qualified name."""
    known = list(_samples(op))
    shaped = list(itertools.islice(_shaped(scene, known), _MAX_SHAPES))
    valued = list(itertools.islice(_valued(scene, known), _MAX_VALUES))
    ranks = itertools.product(range(len(shaped)), range(len(valued)))
    for i, j in sorted(ranks, key=lambda rank: rank[0] + 3 * rank[1])[:MAX_TRIES]:
        yield Trial(shaped[i].shapes, shaped[i].indices, valued[j])


def _samples(op: str) -> Iterator[dict[str, list[Any]]]:
    """By parameter, the small arguments that the operation's table was measured with; a list's items one by one."""
    base = op.rpartition(".")[2].rstrip("_")
    same = [(name, build) for name, build in FORMS if name == op]
    alike = [(name, build) for name, build in FORMS if name != op and name.rpartition(".")[2].rstrip("_") == base]
    for name, build in same + alike:
        measured = find_op(name)
        if measured is None:
            continue
        args, kwargs = build()
        bare = [param.lstrip("*") for param in measured.params]
        named = {**dict(zip(bare, args, strict=False)), **kwargs}
        yield {_alias(param): _items(value) for param, value in named.items()}


def _alias(param: str) -> str:
    return "input" if param == "self" else param


def _items(value: Any) -> list[Any]:
    several = isinstance(value, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in value)
    return list(value) if several else [value]


def _shaped(scene: Scene, samples: Sequence[dict[str, list[Any]]]) -> Iterator[Trial]:
    tensors = [place for place in scene.places if place.kind == "tensor"]
    indices = [place for place in scene.places if place.kind == "index"]
    yield from _of_layer(scene, tensors, indices)
    yield from _of_equation(scene, tensors)
    for sample in samples:
        trial = _of_sample(sample, tensors, indices)
        if trial is not None:
            yield trial
    positions = list(_ranked([_positions(place) for place in indices]))
    for shape in _TOGETHER:
        for chosen in positions[:6]:
            yield _trial(tensors, [shape] * len(tensors), indices, chosen)
    for combined in _ranked([*([list(_APART)] * len(tensors)), *(_positions(place) for place in indices)]):
        yield _trial(tensors, combined[: len(tensors)], indices, combined[len(tensors) :])


def _trial(tensors: list[Place], shapes: Sequence[Shape], indices: list[Place], chosen: Sequence[Any]) -> Trial:
    given = {p.name: () if p.scalar else shape for p, shape in zip(tensors, shapes, strict=True)}
    return Trial(given, {p.name: index for p, index in zip(indices, chosen, strict=True)})


def _ranked(choices: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """One of each, those early in their lists first; of very many combinations only the first are ordered."""
    ranks = itertools.islice(itertools.product(*(range(len(choice)) for choice in choices)), 20_000)
    for rank in sorted(ranks, key=sum):
        yield tuple(choice[i] for choice, i in zip(choices, rank, strict=True))


def _positions(place: Place) -> list[torch.Tensor]:
    """Tensors that say where, of the dtypes that the place can have."""
    found: list[torch.Tensor] = []
    for dtype in place.dtypes:
        if dtype == "bool":
            alternating = torch.arange(SIZE) % 2 == 0
            found += [alternating, torch.ones(SIZE, dtype=torch.bool), torch.eye(SIZE, dtype=torch.bool)]
        elif dtype == "int64":
            found += [torch.arange(SIZE), torch.zeros(SIZE, SIZE, dtype=torch.long), torch.arange(2)]
        else:
            found += [torch.rand(SIZE, SIZE).to(getattr(torch, dtype))]
    return found


def _of_layer(scene: Scene, tensors: list[Place], indices: list[Place]) -> Iterator[Trial]:
    for place in scene.places:
        shapes = takes(place.layer) if place.layer is not None else None
        if shapes is not None:
            first, other = shapes
            positions = torch.zeros(first, dtype=torch.long)
            given = [first, *[other] * len(tensors)][: len(tensors)]
            yield _trial(tensors, given, indices, [positions] * len(indices))


def _of_equation(scene: Scene, tensors: list[Place]) -> Iterator[Trial]:
    """Shapes for an einsum: a dimension for each letter, one for an ellipsis."""
    for node in ast.walk(_tree(scene)):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.search(r"^[\w\s.,]+(->|$)", node.value)
        ):
            terms = node.value.replace(" ", "").partition("->")[0].replace("...", "*").split(",")
            if len(terms) == len(tensors):
                yield _trial(tensors, [(SIZE,) * len(term) for term in terms], [], [])


def _tree(scene: Scene) -> ast.AST:
    return ast.parse(source_of(scene))


def source_of(scene: Scene) -> str:
    """The text as it can be compiled: a statement, or an expression in parentheses."""
    return scene.text if scene.statement else f"({scene.text}\n)"


def _of_sample(sample: dict[str, list[Any]], tensors: list[Place], indices: list[Place]) -> Trial | None:
    """The shapes of a measured call; None where it has not every operand, or an index of another kind."""
    shapes: dict[str, Shape] = {}
    positions: dict[str, torch.Tensor] = {}
    for place in (*tensors, *indices):
        items = sample.get(_alias("input" if place.param == "out" else place.param), [])
        value = items[place.item] if place.item < len(items) else None
        if not isinstance(value, torch.Tensor):
            return None
        if place.kind == "tensor":
            shapes[place.name] = () if place.scalar else tuple(value.shape)
        elif dtype_name(value.dtype) not in place.dtypes:
            return None
        else:
            positions[place.name] = value
    return Trial(shapes, positions)


def _valued(scene: Scene, samples: Sequence[dict[str, list[Any]]]) -> Iterator[dict[str, Any]]:
    places = [place for place in scene.places if place.kind in ("number", "value")]
    choices = [[*_measured(place, samples), *_VALUES["".join(place.dtypes)]] for place in places]
    for chosen in _ranked(choices):
        yield {place.name: value for place, value in zip(places, chosen, strict=True)}


def _measured(place: Place, samples: Sequence[dict[str, list[Any]]]) -> list[Any]:
    """What the parameter was in the first measured call that gave it."""
    given = (sample[_alias(place.param)] for sample in samples if _alias(place.param) in sample)
    return [items[0] for items in given if items][:1]
