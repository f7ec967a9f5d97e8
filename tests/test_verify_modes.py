"""What a scenario does to parameters, buffers and inputs, and how each mode calls the module."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import nn

from amplint.infer.lattice.scenarios import SCENARIOS, Scenario, find_scenario
from amplint.verify.build.examples import from_factory
from amplint.verify.build.recipe import Built, Recipe
from amplint.verify.modes import Call, calls, invoke
from amplint.verify.run import Where, prepare, region, run
from amplint.verify.tensors import replaced, tensors

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Where("cpu", "cpu")
EVAL = Call("eval-no-grad")


def recipe(make: Callable[[], Any]) -> Recipe:
    return Recipe("a test", 0, make)


def named(name: str) -> Scenario:
    scenario = find_scenario(name)
    assert scenario is not None
    return scenario


class Explicit(nn.Module):
    """A parameter and a buffer of each kind: as the default dtype has it, and with a dtype of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = nn.Linear(4, 4)
        self.explicit = nn.LayerNorm(4, dtype=torch.float32)
        self.register_buffer("plain_table", torch.randn(4))
        self.register_buffer("explicit_table", torch.randn(4, dtype=torch.float32))
        self.register_buffer("count", torch.zeros(1, dtype=torch.long))

    def forward(self, x: torch.Tensor, **rest: Any) -> torch.Tensor:
        return x


def example() -> Any:
    inputs = (torch.randn(2, 4), torch.arange(3), torch.ones(2, dtype=torch.bool), torch.randn(2, dtype=torch.float64))
    return Explicit(), inputs, {"pair": (torch.randn(1), [torch.randn(1)]), "named": {"x": torch.randn(1)}, "n": 3}


class Batch:
    """Inputs of a kind of their own, made from arrays; it can be called, as those of torch_geometric can."""

    def __init__(self) -> None:
        self.store = {"x": torch.from_numpy(np.ones((2, 4), np.float32)), "edges": torch.arange(2)}

    def __call__(self, *names: str) -> list[torch.Tensor]:
        return [self.store[name] for name in names]


@pytest.mark.parametrize("name", ["fp16", "bf16", "bf16-mixed-params"])
def test_inputs_in_an_object_are_in_the_scenarios_dtype(name: str) -> None:
    built = prepare(recipe(lambda: (nn.Linear(4, 4), (Batch(),), {})), named(name), EVAL, HERE)
    assert str(built.args[0].store["x"].dtype) == f"torch.{EXPECTED[name][4]}"
    assert built.args[0].store["edges"].dtype == torch.long


class Unregistered(nn.Module):
    """Weights that are plain attributes, one of them in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.randn(4)
        self.weights = [torch.randn(4)]
        self.register_buffer("noise", torch.randn(4), persistent=False)


def test_weights_that_are_not_registered_have_the_same_numbers_too() -> None:
    made = recipe(lambda: (Unregistered(), (torch.ones(4),), {}))
    low, high = (prepare(made, named(n), EVAL, HERE).module for n in ("bf16-mixed-params", "fp32"))
    for value, wanted in zip(
        (low.weight, *low.weights, low.noise), (high.weight, *high.weights, high.noise), strict=True
    ):  # type: ignore[attr-defined]
        assert torch.equal(value, wanted.to(torch.bfloat16))


EXPECTED = {
    # plain parameter, explicit parameter, plain buffer, explicit buffer, input
    "fp32": ("float32", "float32", "float32", "float32", "float32"),
    "autocast-fp16": ("float32", "float32", "float32", "float32", "float32"),
    "autocast-bf16": ("float32", "float32", "float32", "float32", "float32"),
    "fp16": ("float16", "float16", "float16", "float16", "float16"),
    "bf16": ("bfloat16", "bfloat16", "bfloat16", "bfloat16", "bfloat16"),
    "bf16-mixed-params": ("bfloat16", "float32", "bfloat16", "float32", "bfloat16"),
    "fsdp-bf16": ("bfloat16", "bfloat16", "float32", "float32", "bfloat16"),
}


def test_every_scenario_is_expected_somewhere() -> None:
    assert [scenario.name for scenario in SCENARIOS] == list(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_a_scenario_makes_of_parameters_buffers_and_inputs(name: str) -> None:
    built = prepare(recipe(example), named(name), EVAL, HERE)
    module = built.module
    assert isinstance(module, Explicit)
    x, ids, mask, double = built.args
    found = (module.plain.weight, module.explicit.weight, module.plain_table, module.explicit_table, x)
    assert tuple(str(tensor.dtype).removeprefix("torch.") for tensor in found) == EXPECTED[name]
    assert (ids.dtype, mask.dtype, double.dtype, module.count.dtype) == (
        torch.long,
        torch.bool,
        torch.float64,
        torch.long,
    )
    nested = (built.kwargs["pair"][0], built.kwargs["pair"][1][0], built.kwargs["named"]["x"])
    assert {tensor.dtype for tensor in nested} == {x.dtype}
    assert built.kwargs["n"] == 3
    assert not module.training
    assert torch.get_default_dtype() is torch.float32


@pytest.mark.parametrize("name", EXPECTED)
def test_a_scenario_changes_dtypes_and_not_numbers(name: str) -> None:
    """Random numbers that are drawn in another dtype are other numbers: what is compared has to start out the same."""
    reference = prepare(recipe(example), named("fp32"), EVAL, HERE)
    built = prepare(recipe(example), named(name), EVAL, HERE)
    assert isinstance(built.module, nn.Module)
    assert isinstance(reference.module, nn.Module)
    for key, value in built.module.state_dict().items():
        assert torch.equal(value, reference.module.state_dict()[key].to(value.dtype)), key
    assert torch.equal(built.args[0], reference.args[0].to(built.args[0].dtype))


def test_a_module_that_an_example_returns_every_time_is_not_what_the_last_run_left() -> None:
    module, calls_made = nn.BatchNorm1d(4), []

    def global_module() -> Any:
        calls_made.append(module)
        return module, (torch.randn(2, 4),), {}

    shared = from_factory(global_module, 0)
    for name in ("bf16", "fp32", "fp16", "fsdp-bf16"):
        built = prepare(shared, named(name), Call("train"), HERE)
        assert isinstance(built.module, nn.BatchNorm1d)
        assert str(built.module.weight.dtype) == f"torch.{EXPECTED[name][0]}"
        assert str(built.module.running_mean.dtype) == f"torch.{EXPECTED[name][2]}"
        assert not built.module.running_mean.any()
        with torch.no_grad():
            built.module.running_mean += 1
    assert len(calls_made) == 4


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_autocast_is_on_where_the_scenario_says_so(scenario: Scenario) -> None:
    with region(scenario.autocast, HERE):
        assert torch.is_autocast_enabled("cpu") is (scenario.autocast is not None)
        if scenario.autocast is not None:
            assert torch.get_autocast_dtype("cpu") is getattr(torch, scenario.autocast)


class Seen(nn.Module):
    """Notes the state of torch in forward and in backward."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.states: list[tuple[str, bool, bool, bool]] = []

    def note(self, where: str) -> None:
        state = (where, self.training, torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"))
        self.states.append(state)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.note("forward")
        y: torch.Tensor = self.layer(x)
        if y.requires_grad:
            y.register_hook(lambda grad: self.note("backward"))
        return y


@pytest.mark.parametrize(
    ("mode", "states"),
    [
        ("train", [("forward", True, True, True), ("backward", True, False, False)]),
        ("eval", [("forward", False, True, True), ("backward", False, False, False)]),
        ("eval-no-grad", [("forward", False, False, True)]),
    ],
)
def test_backward_runs_outside_of_autocast(mode: str, states: list[tuple[str, bool, bool, bool]]) -> None:
    module = Seen()
    ran = run(recipe(lambda: (module, (torch.randn(2, 4),), {})), named("autocast-bf16"), Call(mode), HERE)
    assert ran.error is None
    assert module.states == states
    assert len(ran.outputs) == 1
    assert len(ran.gradients) == (0 if mode == "eval-no-grad" else 2)
    assert not any(tensor.requires_grad for tensor in (*ran.outputs, *ran.gradients))


def test_inputs_take_part_in_backward_and_may_be_written_to_in_place() -> None:
    class InPlace(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            assert x.requires_grad
            return x.add_(1).sin()

    ran = run(
        recipe(lambda: (InPlace(), (torch.randn(3),), {})), named("bf16"), Call("train", differentiable=True), HERE
    )
    assert ran.error is None


def test_a_run_returns_what_the_target_raises() -> None:
    class Refuses(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            raise ValueError("in backward")

    def failing(*_: Any) -> None:
        raise SystemExit(3)

    call = Call("train", differentiable=True)
    back = run(recipe(lambda: (Refuses.apply, (torch.ones(2),), {})), named("bf16"), call, HERE)
    assert (type(back.error), str(back.error)) == (ValueError, "in backward")
    forward = run(recipe(lambda: (failing, (), {})), named("bf16"), call, HERE)
    assert type(forward.error) is SystemExit
    build = run(recipe(lambda: 1 / 0), named("bf16"), call, HERE)
    assert type(build.error) is ZeroDivisionError


def built(forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Built:
    """A module with that ``forward``, and its arguments."""
    return Built(type("Module", (nn.Module,), {"forward": staticmethod(forward)})(), args, kwargs, "a test")


FEATURES = torch.randn(2, 6, 4)
IDS = torch.zeros(2, 6, dtype=torch.long)


@pytest.mark.parametrize("inputs", [FEATURES, IDS], ids=["features", "ids"])
@pytest.mark.parametrize(
    ("parameter", "forms"),
    [
        ("attention_mask", ["keep", "keep-bool", "pad"]),
        ("mask", ["keep", "keep-bool", "pad"]),
        ("padding_mask", ["pad", "keep"]),
        ("src_key_padding_mask", ["pad", "keep"]),
    ],
)
def test_both_conventions_of_a_padding_mask_are_tried(inputs: torch.Tensor, parameter: str, forms: list[str]) -> None:
    names: dict[str, Any] = {}
    exec(f"def forward(x, {parameter}=None): return {parameter}", names)
    target = built(names["forward"], inputs)
    made = list(calls("eval-mask", target))
    assert [(call.mask, call.mask_form) for call in made] == [(parameter, form) for form in forms]
    masks = {call.mask_form: invoke(call, target) for call in made}
    assert {tuple(mask.shape) for mask in masks.values()} == {(2, 6)}
    assert masks["keep"].tolist() == [[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]
    assert masks["keep"].dtype is torch.long
    assert torch.equal(masks["pad"], masks["keep"] == 0)


def test_no_mask_is_made_up_where_there_is_none_to_give() -> None:
    def no_mask(x: Any, masked: bool = False) -> None: ...
    def with_mask(x: Any, mask: Any = None) -> None: ...

    assert not list(calls("eval-mask", built(no_mask, FEATURES)))
    assert not list(calls("eval-mask", built(with_mask, FEATURES, torch.ones(2, 6))))
    assert not list(calls("eval-mask", built(with_mask, FEATURES, mask=torch.ones(2, 6))))
    assert not list(calls("eval-mask", built(with_mask, torch.randn(2, 4))))
    assert list(calls("eval-mask", built(with_mask, FEATURES, mask=None)))


def test_a_padding_mask_is_preferred_to_an_attention_mask() -> None:
    def forward(x: Any, mask: Any = None, attn_mask: Any = None, key_padding_mask: Any = None) -> None: ...

    assert {call.mask for call in calls("eval-mask", built(forward, FEATURES))} == {"key_padding_mask"}


class Cached(nn.Module):
    """Keeps what it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.kv_cache: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kv_cache.append(x)
        return x


def test_a_cache_of_the_module_is_called_twice_the_second_time_with_the_last_position() -> None:
    module = Cached()
    target = Built(module, (FEATURES,), {}, "a test")
    last, same = calls("second-call", target)
    invoke(last, target)
    assert [tuple(x.shape) for x in module.kv_cache] == [(2, 6, 4), (2, 1, 4)]
    assert torch.equal(module.kv_cache[1], FEATURES[:, -1:])
    module.kv_cache.clear()
    invoke(same, target)
    assert [tuple(x.shape) for x in module.kv_cache] == [(2, 6, 4), (2, 6, 4)]


@dataclass
class Output:
    """As model libraries return it."""

    logits: torch.Tensor
    past_key_values: Any


@pytest.mark.parametrize("returned", [lambda x, past: (x, past), Output], ids=["tuple", "object"])
def test_a_returned_state_goes_into_the_second_call(returned: Callable[..., Any]) -> None:
    given: list[Any] = []

    def forward(x: Any, past_key_values: Any = None, use_cache: bool = True) -> Any:
        given.append(past_key_values)
        return returned(x, "state")

    target = built(forward, FEATURES)
    invoke(next(calls("second-call", target)), target)
    assert given == [None, "state"]


def test_a_cache_that_is_handed_in_is_handed_in_again() -> None:
    class StaticCache(SimpleNamespace):
        pass

    given: list[Any] = []

    def forward(x: Any, state: Any) -> Any:
        given.append(state)
        return x

    cache = StaticCache(keys=torch.zeros(2, 8, 4))
    target = built(forward, FEATURES, cache)
    invoke(next(calls("second-call", target)), target)
    assert len(given) == 2
    assert given[0] is given[1] is cache
    assert torch.equal(cache.keys, torch.zeros(2, 8, 4))


def test_a_cache_among_the_arguments_keeps_its_length() -> None:
    given: list[Any] = []

    def forward(x: Any, encoder_hidden_states: Any = None, cache: Any = None, past: Any = None) -> Any:
        given.append((encoder_hidden_states, cache.shape, past))
        return x, "state"

    target = built(forward, FEATURES, cache=torch.zeros(2, 8, 4))
    invoke(next(calls("second-call", target)), target)
    assert given == [(None, (2, 8, 4), None), (None, (2, 8, 4), "state")]


def test_without_a_cache_there_is_no_second_call() -> None:
    def forward(x: Any, cached_steps: int = 3) -> Any:
        return x

    assert not list(calls("second-call", built(forward, FEATURES)))
    assert not list(calls("second-call", Built(torch.relu, (FEATURES,), {}, "a test")))


def test_objects_that_hold_each_other_are_walked_once() -> None:
    first, second = SimpleNamespace(x=torch.ones(1)), SimpleNamespace(x=torch.ones(2))
    first.others, second.others = [second] * 100, [first] * 100
    assert [tuple(tensor.shape) for tensor in tensors((first, second))] == [(1,), (2,)]
    made = replaced([first, second], lambda tensor: tensor + 1)
    assert (made[0].x.tolist(), made[1].x.tolist()) == ([2.0], [2.0, 2.0])
