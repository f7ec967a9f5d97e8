"""Building modules and inputs from a class: every source of a recipe, every kind of repair, and the limits."""

from __future__ import annotations

import dataclasses
import enum
import sys
import time
import types
from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from amplint.verify.build import Built, CannotBuild, Recipe, find_recipe

HERE = sys.modules[__name__]


def recipe_of(
    target: type | None, *, namespace: types.ModuleType = HERE, seconds: float = 20, **options: Any
) -> Recipe:
    return find_recipe(target, namespace=namespace, deadline=time.monotonic() + seconds, **options)


def built(target: type, **options: Any) -> Built:
    """The target, built, and run in eval and in train mode."""
    recipe = recipe_of(target, **options)
    for training in (False, True):
        made = recipe.make()
        if isinstance(made.module, nn.Module):
            made.module.train(training)
        with torch.no_grad():
            made.module(*made.args, **made.kwargs)
    return made


def a_file(**members: Any) -> types.ModuleType:
    space = types.ModuleType("a_file")
    vars(space).update(members)
    return space


# Sources of a recipe


class Plain(nn.Module):
    def __init__(self, dim: int, out_features: int = 7):
        super().__init__()
        self.project = nn.Linear(dim, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.project(x)


class WithExample(Plain):
    @staticmethod
    def amplint_example() -> Any:
        return WithExample(3), (torch.randn(2, 3),), {}


class Heir(WithExample):
    """Inherits an example that makes another class."""


class Holder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.plain = Plain(5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.plain(x)


def test_the_configured_factory_comes_first() -> None:
    made = built(WithExample, factory=lambda: (WithExample(9), (torch.randn(4, 9),)))
    assert made.args[0].shape == (4, 9)
    assert made.how.startswith("factory ")
    assert made.how.endswith("<lambda>")


def test_a_factory_may_give_a_module_alone() -> None:
    made = built(Plain, factory=lambda: Plain(11))
    assert made.args[0].shape[-1] == 11
    assert made.how.endswith("inputs from its signature and layers")


def test_a_factory_that_raises_is_named() -> None:
    def tool() -> Any:
        raise OSError("no weights")

    with pytest.raises(CannotBuild, match="OSError: no weights") as caught:
        recipe_of(Plain, factory=tool)
    assert "tool" in caught.value.advice


@pytest.mark.parametrize("result", [(Plain(3), (), {}, 1), (7,), (Plain(3), (), ())])
def test_a_factory_must_return_one_of_three_forms(result: Any) -> None:
    with pytest.raises(CannotBuild) as caught:
        recipe_of(Plain, factory=lambda: result)
    assert "(module, args, kwargs)" in caught.value.advice


def test_the_example_of_the_class() -> None:
    made = built(WithExample)
    assert made.args[0].shape == (2, 3)
    assert made.how == "amplint_example of the class"


def test_an_inherited_example_counts_only_for_an_instance() -> None:
    made = built(Heir)
    assert type(made.module) is Heir
    assert made.how == "made from its signature and layers"


def test_the_example_of_the_file_may_contain_the_class() -> None:
    space = a_file(amplint_example=lambda: (Holder(), (torch.randn(2, 5),), {}))
    assert recipe_of(Plain, namespace=space).how == "amplint_example of the file"
    assert type(recipe_of(Plain, namespace=space).make().module) is Holder
    assert recipe_of(WithExample, namespace=space).how == "amplint_example of the class"
    assert recipe_of(None, namespace=space).how == "amplint_example of the file"
    assert recipe_of(Heir, namespace=space).how == "made from its signature and layers"


def test_without_target_the_file_needs_an_example() -> None:
    with pytest.raises(CannotBuild) as caught:
        recipe_of(None, namespace=a_file())
    assert "def amplint_example():" in caught.value.advice


class Documented(nn.Module):
    """Needs a shape that no one would guess.

    >>> layer = Documented([3, 5, 17])
    >>> x = torch.randn(1, 3, 5, 17)
    >>> layer(x).shape
    torch.Size([1, 3, 5, 17])
    """

    def __init__(self, sizes: Any) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        self.norm = nn.LayerNorm(self.sizes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


class DocumentedWithFiles(Plain):
    """
    >>> open("out.txt", "w").write(str(DocumentedWithFiles(32)(torch.randn(1, 32))))
    """


def test_the_example_in_the_docstring() -> None:
    made = built(Documented)
    assert made.args[0].shape == (1, 3, 5, 17)
    assert made.how == "the example in its docstring"
    assert "__call__" not in vars(Documented)


def test_an_example_that_writes_files_is_not_run(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert built(DocumentedWithFiles).how == "made from its signature and layers"
    assert list(tmp_path.iterdir()) == []


class Part(nn.Module):
    """Cannot be built alone: what it needs to be given has no name that says anything, and is unpacked elsewhere."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.project = nn.Linear(settings["quux"]["a"], settings["quux"]["b"])

    def forward(self, x: torch.Tensor, table: Any) -> torch.Tensor:
        return self.project(x) * table["gain"]["value"]


class Whole(nn.Module):
    def __init__(self, dim: int = 24) -> None:
        super().__init__()
        self.part = Part(quux={"a": dim, "b": 3})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.part(x, {"gain": {"value": torch.ones(())}})


def test_a_part_is_taken_from_the_class_that_uses_it() -> None:
    made = built(Part)
    assert made.how.startswith("taken from Whole")
    assert type(made.module) is Part
    assert made.args[0].shape[-1] == 24
    assert made.args[1]["gain"]["value"].shape == ()


class FromBuilder(nn.Module):
    def __init__(self, table: Any) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, (b, _) in table["rows"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def small_model(pretrained: bool = False) -> FromBuilder:
    return FromBuilder({"rows": [(6, (8, None)), (8, (2, None))]})


def test_a_builder_of_the_file_with_a_return_annotation() -> None:
    made = built(FromBuilder)
    assert made.how == "made by small_model()"
    assert made.args[0].shape[-1] == 6


# Constructor arguments


class Mode(enum.Enum):
    LOW = "low"
    HIGH = "high"


@dataclasses.dataclass
class Settings:
    hidden_size: int
    num_heads: int = 4
    scale: float = 1.0


class Annotated(nn.Module):
    def __init__(
        self,
        dim: int,
        settings: Settings,
        mode: Mode,
        kind: Literal["first", "second"],
        sizes: tuple[int, int],
        activation: type[nn.Module],
        inner: nn.Module,
        table: torch.Tensor,
        bias: float | None,
        names: list[str],
    ) -> None:
        super().__init__()
        assert isinstance(settings, Settings)
        assert isinstance(mode, Mode)
        assert kind in ("first", "second")
        assert len(sizes) == 2
        assert isinstance(inner, nn.Module)
        assert isinstance(table, torch.Tensor)
        assert bias is None or isinstance(bias, float)
        assert all(isinstance(name, str) for name in names)
        self.inner = inner
        self.layers = nn.Sequential(nn.Linear(dim, settings.hidden_size), activation())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Coupled(nn.Module):
    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        assert width % heads == 0
        if heads != 3:
            raise ValueError("this test wants three heads")
        if width < 100:
            raise ValueError(f"width must be at least 100, got {width}")
        self.norm = nn.GroupNorm(groups, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


_REGISTRY = {"frobnicate": nn.Tanh, "defenestrate": nn.Sigmoid}


class Registered(nn.Module):
    def __init__(self, flavour: str, spelling: str) -> None:
        super().__init__()
        self.activation = _REGISTRY[flavour]()
        if spelling == "ise":
            self.norm = nn.LayerNorm(8)
        elif spelling == "ize":
            self.norm = nn.LayerNorm(9)
        else:
            raise ValueError(spelling)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(self.norm(x))


class Unannotated(nn.Module):
    def __init__(self, dims, make_norm, depth=2, **options):  # type: ignore[no-untyped-def]
        super().__init__()
        first, second, third = dims
        self.down = nn.Linear(first, second)
        self.up = nn.Linear(second, third)
        self.norm = make_norm(third)

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.norm(self.up(self.down(x)))


class ByConfig(nn.Module):
    def __init__(self, config) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.attention = nn.MultiheadAttention(config.hidden_size, config.num_heads, batch_first=True)

    def forward(self, input_ids):  # type: ignore[no-untyped-def]
        x = self.embed(input_ids)
        return self.attention(x, x, x)[0]


class PassesOn(Plain):
    def __init__(self, *args: Any, gain: float = 1.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)


class Huge(nn.Module):
    def __init__(self, hidden_size: int = 8192, num_layers: int = 48) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(hidden_size, hidden_size) for _ in range(num_layers)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


@pytest.mark.parametrize("target", [Annotated, Coupled, Registered, Unannotated, ByConfig, PassesOn])
def test_constructor_arguments_are_found(target: type) -> None:
    assert built(target).how == "made from its signature and layers"


def test_a_huge_default_is_made_smaller() -> None:
    start = time.monotonic()
    module = built(Huge).module
    assert isinstance(module, Huge)
    assert sum(parameter.numel() for parameter in module.parameters()) < 50_000_000
    assert time.monotonic() - start < 15


# Inputs


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.BatchNorm2d(5), nn.Conv2d(5, 8, 3), nn.GroupNorm(2, 8))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.layers(pixels)


class FixedSize(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Conv2d(3, 8, 4, 4)
        self.positions = nn.Parameter(torch.zeros(1, 25, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, _, height, width = x.shape
        assert height == 20, f"Input height ({height}) doesn't match model (20)."
        assert width == 20
        return self.project(x).flatten(2).transpose(1, 2) + self.positions


class Pooled(nn.Module):
    """Batch norm after global pooling: in train mode it needs more than one value a channel."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x[:1].mean((2, 3)).expand(x.shape[0] // 2, -1))


class Products(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(12, 10))
        self.table = nn.Parameter(torch.randn(6, 10))

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        mixed = (left @ self.weight) + self.table
        return torch.cat([mixed, right], dim=1).view(left.shape[0], -1, 5)


class Keys(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 4)

    def forward(self, things: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return self.words(things).masked_fill(mask.unsqueeze(-1), 0.0)  # type: ignore[union-attr]


class Grid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3, padding=1, groups=8)

    def forward(self, tokens: torch.Tensor, height: int, width: int) -> torch.Tensor:
        batch, _, channels = tokens.shape
        image = tokens.transpose(1, 2).reshape(batch, channels, height, width)
        return self.conv(image).flatten(2).transpose(1, 2)


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor, rotation: Any) -> torch.Tensor:
        cos, sin = rotation
        return self.project(x) * cos + x * sin


class Several(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(channels, 4, 1) for channels in (8, 16, 24))

    def forward(self, features: list[torch.Tensor]) -> list[torch.Tensor]:
        assert len(features) == 3
        return [layer(x) for layer, x in zip(self.layers, features, strict=True)]


class Timed(nn.Module):
    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.time = nn.Linear(48, channels)

    def forward(self, hidden_states: torch.Tensor, temb: torch.Tensor) -> torch.Tensor:
        return self.conv(hidden_states) + self.time(F.silu(temb))[:, :, None, None]


class Cached(nn.Module):
    """Its second call is another one than its first."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(6, 6, 1)
        self.past: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.past.append(x)
        assert len(self.past) == 1, "the cache is full"
        assert x.shape[-1] == 12
        return self.conv(x)


class Volume(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(3, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, _, _, _, _ = x.shape
        return self.conv(x).flatten(1).reshape(batch, -1)


class Asserted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch._assert(x.shape[-1] % 7 == 0, "")
        return self.conv(x)


@pytest.mark.parametrize(
    "target",
    [Convolution, FixedSize, Pooled, Products, Keys, Grid, Pair, Several, Timed, Cached, Volume, Asserted],
)
def test_inputs_are_found(target: type) -> None:
    made = built(target)
    assert made.how == "made from its signature and layers"
    for value in (*made.args, *made.kwargs.values()):
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            assert value.dtype == torch.float32
            assert value.is_leaf
            assert not value.requires_grad


# autograd Functions


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float, dim: int) -> torch.Tensor:
        ctx.factor = factor
        return x.softmax(dim) * factor

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return grads[0] * ctx.factor, None, None


class Separate(torch.autograd.Function):
    @staticmethod
    def forward(x, weight, target):  # type: ignore[no-untyped-def]
        return F.cross_entropy(x @ weight, target)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return None, None, None


class Packed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x, stored):  # type: ignore[no-untyped-def]
        if stored.dtype != torch.int8:
            raise TypeError("expected an int8 weight")
        return x @ stored.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return None, None


@pytest.mark.parametrize("target", [Scale, Separate, Packed])
def test_functions_are_applied(target: Any) -> None:
    made = built(target)
    assert made.module == target.apply
    assert made.how == "made from the signature of its forward"
    assert not made.kwargs


# Recipes


def test_make_is_deterministic() -> None:
    recipe = recipe_of(Timed, seed=3)
    torch.rand(5)
    one, other = recipe.make(), recipe.make()
    assert one.module is not other.module
    assert isinstance(one.module, Timed)
    assert isinstance(other.module, Timed)
    for name, tensor in one.module.state_dict().items():
        assert torch.equal(tensor, other.module.state_dict()[name])
    assert all(torch.equal(mine, yours) for mine, yours in zip(one.args, other.args, strict=True))
    assert not torch.equal(one.args[0], recipe_of(Timed, seed=4).make().args[0])


class Pinned(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim, dtype=torch.float32))
        self.project = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gain * self.project(x.to(self.project.weight.dtype))


def test_make_constructs_in_the_default_dtype() -> None:
    recipe = recipe_of(Pinned)
    before = recipe.make()
    torch.set_default_dtype(torch.bfloat16)
    try:
        made = recipe.make()
    finally:
        torch.set_default_dtype(torch.float32)
    assert isinstance(made.module, Pinned)
    assert made.module.project.weight.dtype == torch.bfloat16
    assert made.module.gain.dtype == torch.float32
    assert made.args[0].dtype == torch.float32
    assert torch.equal(made.args[0], before.args[0])


# What cannot be built


class Hopeless(nn.Module):
    def __init__(self, secret: str, dim: int) -> None:
        super().__init__()
        if hash(secret) != 1:
            raise RuntimeError("not the right secret")

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x


class Deaf(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * 2


class Mute(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()


class OnlyInEval(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            raise RuntimeError("for inference only")
        return self.project(x)


class Endless(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.project = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while True:
            try:
                x = self.project(x)
            except Exception:
                x = x.sum()


class EndlessToConstruct(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        while True:
            time.sleep(0.01)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def test_advice_is_a_skeleton_with_the_signature() -> None:
    with pytest.raises(CannotBuild) as caught:
        recipe_of(Hopeless, seconds=10)
    assert caught.value.reason == "its constructor raised RuntimeError: not the right secret"
    assert caught.value.advice == (
        "Add to class Hopeless:\n\n"
        "    @staticmethod\n"
        "    def amplint_example():\n"
        "        return Hopeless(secret=..., dim=...), (x, y), {}"
    )


def test_the_reason_says_why() -> None:
    with pytest.raises(CannotBuild, match="its result does not depend on its inputs"):
        recipe_of(Deaf, seconds=5)
    with pytest.raises(CannotBuild, match="no forward of its own"):
        recipe_of(Mute, seconds=5)
    with pytest.raises(CannotBuild, match="in train mode raised RuntimeError: for inference only"):
        recipe_of(OnlyInEval, seconds=5)
    with pytest.raises(CannotBuild, match="is neither"):
        recipe_of(Settings, seconds=5)


@pytest.mark.parametrize("target", [Endless, EndlessToConstruct])
def test_the_deadline_holds(target: type) -> None:
    start = time.monotonic()
    with pytest.raises(CannotBuild):
        recipe_of(target, seconds=1.5)
    assert time.monotonic() - start < 6


class Points:
    """Holds tensors, and is no module."""

    def __init__(self, data: torch.Tensor):
        self.data = data


def test_the_advice_for_a_class_that_is_no_module_is_to_return_a_method() -> None:
    with pytest.raises(CannotBuild) as caught:
        recipe_of(Points)
    assert "return Points(data=...).method, (...,), {}" in caught.value.advice


# Memory that a constructor leaves unset


class Unset(nn.Module):
    """Libraries fill such weights from a checkpoint or in an initialisation of their own."""

    def __init__(self, size: int = 8):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, size))
        self.legacy = nn.Parameter(torch.FloatTensor(size, size))
        self.gain = nn.Parameter(torch.full((size,), 3.0))
        self.register_buffer("table", torch.empty(size, dtype=torch.long))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.weight @ self.legacy * self.gain)[..., self.table]


def test_unset_memory_holds_the_same_numbers_in_every_build() -> None:
    given = torch.tensor([1.0, float("nan")])
    recipe = Recipe("here", 0, lambda: (Unset(), (torch.empty(2, 8), given), {}))
    mode = torch.get_deterministic_debug_mode()
    first, second = recipe.make(), recipe.make()
    assert torch.get_deterministic_debug_mode() == mode
    assert isinstance(first.module, Unset)
    assert isinstance(second.module, Unset)
    for name, value in first.module.state_dict().items():
        assert torch.equal(value, second.module.state_dict()[name]), name
    for tensor in (first.module.weight, first.module.legacy, first.args[0]):
        assert 0 < float(tensor.detach().abs().max()) < 1
    assert not torch.equal(first.module.weight, first.module.legacy)
    assert float(first.module.gain.detach().min()) == 3
    assert int(first.module.table.max()) == 0
    assert torch.isnan(first.args[1]).tolist() == [False, True]
