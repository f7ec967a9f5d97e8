"""What a class asks for by what it does with it: dicts with keys, layers, named types, settings, several arguments."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from build_harness import built, recipe_of
from torch import nn

from amplint.verify.tensors import replaced, tensors

# Inputs


class Keyed(nn.Module):
    """Reads its input by keys, one of them in another method and one only sometimes."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, inputs: Any, **kwargs: Any) -> torch.Tensor:
        hidden = self.layer(inputs["data"])
        return self._masked(hidden, inputs) + inputs["shift"]

    def _masked(self, hidden: torch.Tensor, inputs: Any) -> torch.Tensor:
        return hidden * inputs["weight"]


class Several(nn.Module):
    """Takes any number of inputs and joins them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        x = torch.cat(inputs, dim=-1) if len(inputs) > 1 else inputs[0]
        return self.block(x)

    def block(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class PassedOn(nn.Module):
    """Hands its further arguments to a method that names them."""

    def __init__(self) -> None:
        super().__init__()
        self.rate = nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor, *args: torch.Tensor) -> torch.Tensor:
        assert x.dim() == 2
        return self.equations(x, *args)

    def equations(self, x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        return x[:, :1] * self.rate + u[:, :1]


class Flat(nn.Module):
    """Counts the elements of its flattened input."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.flatten()
        if x.numel() != 3:
            raise RuntimeError(f"the function gives {3} values, which is not the {x.numel()} of the state")
        return x * self.weight


class Split(nn.Module):
    """Has its input fit what is left of it: nothing, in the shapes that are tried first."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rest = x[:, 32:] if x.dim() > 2 else x
        return self.layer(x) + rest


class Pairs(nn.Module):
    """Looks up an index that it calculates from two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(25, 32)

    def forward(self, x: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        return self.table(i + 5 * j).sum() + x


class Energy(nn.Module):
    """Differentiates within its forward."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        start = x.detach().requires_grad_()
        return torch.autograd.grad(self.layer(start).tanh().sum(), start)[0]


def test_a_dict_has_the_keys_that_are_read() -> None:
    [inputs] = built(Keyed).args
    assert inputs.keys() == {"data", "weight", "shift"}


def test_one_argument_of_any_number() -> None:
    [x] = built(Several).args
    assert isinstance(x, torch.Tensor)


def test_arguments_that_only_a_method_names() -> None:
    x, u = built(PassedOn).args
    assert x.dim() == u.dim() == 2


def test_the_size_of_a_flattened_input() -> None:
    assert built(Flat).args[0].numel() == 3


def test_no_input_is_empty() -> None:
    assert built(Split).args[0].numel()


def test_indices_that_are_calculated_from_several_inputs() -> None:
    _, i, j = built(Pairs).args
    assert i.dtype == j.dtype == torch.int64


def test_a_forward_that_differentiates() -> None:
    made = recipe_of(Energy).make()
    assert made.module(*made.args).isfinite().all()


# Constructor arguments


class Stepper(nn.Module):
    """Asks the block that it is given for its width, which neither a number nor a class has."""

    def __init__(self, block: Any, step: float = 0.1) -> None:
        super().__init__()
        assert block.in_features == block.out_features
        self.block = block

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.block(x)


class Trained(nn.Module):
    """Counts the parameters of a network whose name says nothing."""

    def __init__(self, lift: Any) -> None:
        super().__init__()
        self.count = sum(p.numel() for p in lift.parameters())
        self.lift = lift

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lift(x) * self.count


class Branches(nn.Module):
    """Wants a list of networks."""

    def __init__(self, branches: Any) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)
        self.count = len(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return sum(branch(x) for branch in self.branches) / self.count


def consistent(given: Any, kind: type) -> None:
    if not isinstance(given, kind):
        raise ValueError(f"You passed {given}, but a {kind.__name__} instance was expected.")


class Checked(nn.Module):
    """Has its arguments checked by a function that says which type it wants."""

    def __init__(self, key, table) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        consistent(key, str)
        consistent(table, torch.Tensor)
        self.layer = nn.Linear(32, 32)
        self.table = table

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class FromDict(nn.Module):
    """Calls a dict what is asked for attributes."""

    def __init__(self, args: dict) -> None:  # type: ignore[type-arg]
        super().__init__()
        self.layer = nn.Linear(args.hidden_dim, args.latent_dim)  # type: ignore[attr-defined]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


@dataclasses.dataclass
class CoderConfig:
    input_dim: tuple[int, ...] | None = None
    latent_dim: int = 8


class Coder(nn.Module):
    """Wants a setting that is None by default."""

    def __init__(self, model_config: CoderConfig) -> None:
        super().__init__()
        if model_config.input_dim is None:
            raise AttributeError("No input dimension provided !")
        self.size = int(torch.Size(model_config.input_dim).numel())
        self.layer = nn.Linear(self.size, model_config.latent_dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.reshape(-1, self.size))


def test_a_layer_that_has_the_attribute() -> None:
    assert isinstance(built(Stepper).module.block, nn.Linear)


def test_a_module_where_its_parameters_are_counted() -> None:
    assert isinstance(built(Trained).module.lift, nn.Module)


def test_a_list_of_modules() -> None:
    assert len(built(Branches).module.branches) >= 1


def test_the_types_that_a_message_names() -> None:
    assert isinstance(built(Checked).module.table, torch.Tensor)


def test_a_dict_that_is_asked_for_attributes() -> None:
    assert isinstance(built(FromDict).module.layer, nn.Linear)


def test_a_setting_that_may_not_be_none() -> None:
    assert built(Coder).module.size >= 1


class Padded:
    """A batch with lengths, as a library has one."""

    def __init__(self, payload: Any, lengths: Any) -> None:
        self._payload = payload
        self._lengths = lengths

    @property
    def payload(self) -> Any:
        return self._payload

    @property
    def seq_lens(self) -> Any:
        return self._lengths


class FirstStep(nn.Module):
    """Takes a batch of the library's own class."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, x: Any) -> torch.Tensor:
        return self.layer(x.payload) + x.seq_lens.float().mean()


class Corners:
    """Corners of boxes, made of nothing else."""

    def __init__(self, corners: Any) -> None:
        if corners.shape[-2:] != (4, 2):
            raise ValueError(f"corners must be (N, 4, 2), got {corners.shape}")
        self.centre = corners.mean(-2)


class Centred(nn.Module):
    """Takes an object that has a centre, of whatever class."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, boxes: Any) -> torch.Tensor:
        return self.layer(boxes.centre)


class Graph(nn.Module):
    """Takes an object of no class that it knows."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, data: Any) -> torch.Tensor:
        return self.layer(data.node_features) * data.node_weight


def test_an_object_of_the_librarys_own_class() -> None:
    assert isinstance(built(FirstStep).args[0], Padded)


def test_a_class_of_the_library_may_refuse_what_it_is_made_of() -> None:
    assert vars(built(Centred).args[0]).keys() == {"centre"}


def test_an_object_with_the_attributes_that_are_read() -> None:
    assert vars(built(Graph).args[0]).keys() == {"node_features", "node_weight"}


class KEYS:
    X = "X"
    LABELS = "labels"


class Named(nn.Module):
    """Takes a dict by keys that are constants of a class, after a look at all of them."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, inputs: Any) -> torch.Tensor:
        assert "extra" not in inputs.keys()  # noqa: SIM118
        return self._loss(inputs)

    def _loss(self, inputs: Any) -> torch.Tensor:
        return self.layer(inputs[KEYS.X]) + inputs[KEYS.LABELS].float().mean() + self._shift(inputs)

    def _shift(self, batch: Any) -> torch.Tensor:
        return batch["shift"].float().mean()


class Offered(nn.Module):
    """Says which kinds of norm there are, in words without quotes."""

    def __init__(self, dim: int, kind) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        table = {"RMSNorm": nn.RMSNorm, "LayerNorm": nn.LayerNorm}
        if table.get(kind) is None:
            raise ValueError(f"Invalid layer: {kind}. Valid options are: {', '.join(table)}")
        self.norm = table[kind](dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def test_a_dict_by_keys_that_have_names() -> None:
    assert built(Named).args[0].keys() == {"X", "labels", "shift"}


def test_a_word_that_a_message_offers() -> None:
    assert isinstance(built(Offered).module.norm, nn.RMSNorm)


_WIDTHS: dict[str, type[nn.Module]] = {"plain": nn.Linear, "other": nn.LayerNorm}


class _Registry:
    def __init__(self) -> None:
        self.known = dict(_WIDTHS)

    def get(self, name: str) -> Any:
        found = self.known.get(name)
        if found is None:
            raise KeyError(f"No object named {name!r}")
        return found


def _block(cfg: Any) -> nn.Module:
    made: nn.Module = _Registry().get(cfg.NAME)(cfg.WIDTH, cfg.WIDTH)
    return made


class Nested(nn.Module):
    """Reads configurations in its configuration, and a name that a registry has to know."""

    def __init__(self, cfg) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.block = _block(cfg.ENCODER)
        self.sizes = [int(size) for size in cfg["HEAD"]["SIZES"]]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.block(x)
        return y * len(self.sizes)


@dataclasses.dataclass(slots=True)
class Batch:
    past: torch.Tensor
    future: torch.Tensor | None = None


class TakesBatch(nn.Module):
    """Takes a record with slots."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, batch: Batch) -> torch.Tensor:
        y: torch.Tensor = self.layer(batch.past)
        return y


def test_configurations_within_a_configuration_are_built() -> None:
    module = built(Nested).module
    assert isinstance(module, Nested)
    assert isinstance(module.block, nn.Linear)


def test_an_annotated_record_is_made_of_tensors_and_cast() -> None:
    (batch,) = built(TakesBatch).args
    assert isinstance(batch, Batch)
    assert [tensor.dtype for tensor in tensors(replaced(batch, torch.Tensor.half))] == [torch.float16]
