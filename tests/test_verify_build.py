"""Building modules and inputs from a class: every source of a recipe, autograd Functions, and the limits."""

from __future__ import annotations

import sys
import time
import types
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from build_harness import Plain, built, recipe_of
from torch import nn

from amplint.verify.build import CannotBuild, Deadline, Recipe

HERE = sys.modules[__name__]


def a_file(**members: Any) -> types.ModuleType:
    space = types.ModuleType("a_file")
    vars(space).update(members)
    return space


# Sources of a recipe


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


class Unbuildable(Plain):
    def __init__(self, engine: Any) -> None:
        if type(engine) is not types.SimpleNamespace:
            raise LookupError("no such engine")
        super().__init__(engine.width)


class Wrapper(nn.Module):
    def __init__(self, engine: Any) -> None:
        super().__init__()
        self.inner = Unbuildable(engine)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


def test_the_example_of_the_file_speaks_for_the_class_that_it_builds() -> None:
    space = a_file(amplint_example=lambda: (Plain(5), (torch.randn(2, 5),), {}))
    assert recipe_of(Plain, namespace=space).how == "amplint_example of the file"
    assert recipe_of(Holder, namespace=space).how == "made from its signature and layers"


def test_the_example_of_the_file_may_contain_a_class_that_cannot_be_built_otherwise() -> None:
    engine = types.SimpleNamespace(width=5)
    space = a_file(amplint_example=lambda: (Wrapper(engine), (torch.randn(2, 5),), {}))
    assert recipe_of(Plain, namespace=space).how == "made from its signature and layers"
    assert recipe_of(Unbuildable, namespace=space).how == "amplint_example of the file"
    assert type(recipe_of(Unbuildable, namespace=space).make().module) is Wrapper


def test_an_example_of_the_file_that_raises_speaks_for_no_class() -> None:
    def amplint_example() -> Any:
        raise OSError("no weights")

    space = a_file(amplint_example=amplint_example)
    assert recipe_of(Plain, namespace=space).how == "made from its signature and layers"
    with pytest.raises(OSError, match="no weights"):
        recipe_of(None, namespace=space).make()


def test_the_examples_before_synthesis() -> None:
    space = a_file(amplint_example=lambda: (Holder(), (torch.randn(2, 5),), {}))
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
        recipe_of(Points, seconds=5)


@pytest.mark.parametrize("target", [Endless, EndlessToConstruct])
def test_the_deadline_holds(target: type) -> None:
    start = time.monotonic()
    with pytest.raises(CannotBuild):
        recipe_of(target, seconds=1.5)
    assert time.monotonic() - start < 6


def test_a_deadline_counts_work_and_what_waits_ends_too() -> None:
    patient, impatient = Deadline.after(0.05, slack=100), Deadline.after(0.05, slack=1)
    time.sleep(0.1)
    assert patient.left() > 0.04
    assert impatient.left() < 0
    assert patient.sooner(0.01).left() <= 0.01
    while time.thread_time() < patient.processor:
        sum(range(1000))
    assert patient.left() <= 0


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
