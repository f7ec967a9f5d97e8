"""Constructor arguments and inputs found from nothing but the class, with every kind of repair."""

from __future__ import annotations

import dataclasses
import enum
import time
from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F
from build_harness import Plain, built, recipe_of
from torch import nn

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


# Modules of the file itself where nothing else will do


class Trunk(nn.Module):
    def __init__(self, dim: int, depth: int | None = None) -> None:
        super().__init__()
        if depth is None:
            raise ValueError("`depth` must be passed in")
        self.width = dim
        self.layers = nn.Sequential(*(nn.Linear(dim, dim) for _ in range(depth)))

    def forward(self, x: torch.Tensor, *, halved: bool = False) -> torch.Tensor:
        return self.layers(x) * (0.5 if halved else 1.0)


class AsksForTheKind(nn.Module):
    def __init__(self, trunk) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        assert isinstance(trunk, Trunk)
        self.trunk = trunk
        self.head = nn.Linear(trunk.width, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.trunk(x))


class AsksForAnAttribute(AsksForTheKind):
    def __init__(self, model) -> None:  # type: ignore[no-untyped-def]
        nn.Module.__init__(self)
        self.trunk = model
        self.head = nn.Linear(model.width, 3)


class AsksForAKeyword(nn.Module):
    def __init__(self, net) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x, halved=True)


@pytest.mark.parametrize("target", [AsksForTheKind, AsksForAnAttribute, AsksForAKeyword])
def test_a_module_of_the_library_is_given_where_one_is_asked_for(target: type) -> None:
    module: Any = built(target).module
    assert isinstance(getattr(module, "trunk", None) or module.net, Trunk)
