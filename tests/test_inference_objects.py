"""What the inference knows of modules put together at run time: held in dicts, derived from another library's class,
and told apart by answers that were kept in variables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amplint.claims.conflicts import conflicts as conflicts_of
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.source import Source

if TYPE_CHECKING:
    from amplint.claims.conflict import Conflict

HEADER = """\
import torch
from torch import nn
from einops_exts import rearrange_many, repeat_many
"""
AUTOCAST = ("autocast-fp16", "autocast-bf16")
HALF = ("fp16", "bf16", "bf16-mixed-params")


def conflicts(code: str) -> tuple[Conflict, ...]:
    source = Source(Path("/project/module.py"), (HEADER + code).encode())
    return conflicts_of(analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13)))


ADAPTERS = """
class Adapters(nn.Module):
    def __init__(self, name: str, rank: int):
        super().__init__()
        self.down = nn.ModuleDict({{}})
        self.up = nn.ParameterDict()
        {put}

    def forward(self, x: torch.Tensor, name: str):
        return {use}
"""


@pytest.mark.parametrize(
    ("put", "use"),
    [
        ("self.down[name] = nn.Linear(8, rank)", "self.down[name](x.float())"),
        ("self.down.update(nn.ModuleDict({name: nn.Linear(8, rank)}))", "self.down[name](x.float())"),
        ("self.down.update({'default': nn.Linear(8, rank)})", "self.down['default'](x.float())"),
        ("self.up[name] = nn.Parameter(torch.zeros(8, rank))", "x.float() @ self.up[name]"),
    ],
)
def test_dicts_of_layers_and_parameters_hold_what_was_put_into_them(put: str, use: str) -> None:
    raising = [c for c in conflicts(ADAPTERS.format(put=put, use=use)) if c.raises]
    assert [c.scenarios for c in raising] == [HALF]


GUARDED = """
class Guarded(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        {first}
        if {test}:
            x = x.float()
        return self.linear(x)
"""


@pytest.mark.parametrize(
    ("first", "test", "scenarios"),
    [
        ("off = not torch.is_autocast_enabled()", "off", HALF),
        ("on = torch.is_autocast_enabled()", "not on", HALF),
        ("on = torch.is_autocast_enabled()", "on", ()),
        ("narrow = x.dtype == torch.float16", "narrow", ("fp16",)),
        ("wide = x.dtype not in (torch.float16, torch.bfloat16)", "not wide", HALF),
        ("same = x.dtype == self.linear.weight.dtype", "not same", ()),
        ("slow = x.device.type == 'cpu' and (x.dtype == torch.float16 or x.dtype == torch.bfloat16)", "slow", ()),
        ("slow = x.is_cuda == True and (x.dtype == torch.float16 or x.dtype == torch.bfloat16)", "slow", HALF),
        ("free = not torch.is_autocast_enabled() or self.training == 3", "free", HALF),
        ("both = torch.is_autocast_enabled() and x.dtype == torch.float32", "not both", HALF),
    ],
)
def test_answers_kept_in_variables_tell_scenarios_apart(first: str, test: str, scenarios: tuple[str, ...]) -> None:
    raising = [c.scenarios for c in conflicts(GUARDED.format(first=first, test=test)) if c.raises]
    assert raising == ([scenarios] if scenarios else [])


DERIVED = """
from elsewhere import Base
from typing import Generic, TypeVar


class Derived({bases}):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def {name}(self, x: torch.Tensor):
        return self.linear({given})
"""


def test_a_class_with_a_forward_and_a_base_elsewhere_is_a_module() -> None:
    assert conflicts(DERIVED.format(bases="Base", name="forward", given="x")) == ()
    [conflict] = [c for c in conflicts(DERIVED.format(bases="Base", name="forward", given="x.float()")) if c.raises]
    assert conflict.scenarios == HALF


def test_a_class_without_such_a_base_is_none() -> None:
    [conflict] = conflicts(DERIVED.format(bases="Generic[TypeVar('T')]", name="forward", given="x"))
    assert {conflict.left_dtype, conflict.right_dtype} == {"float16", "float32"}


def test_each_of_several_tensors_keeps_its_dtype() -> None:
    code = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 24)
        self.null = nn.Parameter(torch.randn(2, 8))

    def forward(self, x: torch.Tensor):
        q, k, v = rearrange_many(self.project(x).chunk(3, dim=-1), "b n (h d) -> b h n d", h=2)
        nk, nv = repeat_many(self.null.unbind(dim=-2), "d -> b h 1 d", h=2, b=1)
        k, v = torch.cat((nk, k), dim=-2), torch.cat((nv, v), dim=-2)
        return (q @ k.transpose(-1, -2)).softmax(dim=-1, dtype=torch.float32) @ v
"""
    [conflict] = [c for c in conflicts(code) if c.raises]
    assert conflict.scenarios == HALF


@pytest.mark.parametrize(
    ("given", "raises"), [("self.linear(x)", True), ("self.linear(x).to(out.dtype)", False), ("x", False)]
)
def test_what_autocast_lowered_is_written_into_what_the_caller_passed(given: str, raises: bool) -> None:
    code = f"""
class Typed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, kinds: torch.Tensor):
        out = torch.empty_like(x)
        out[kinds == 1] = {given.replace("x", "x[kinds == 1]")}
        return out
"""
    found = conflicts(code)
    assert [c.scenarios for c in found] == ([AUTOCAST] if raises else [])


CACHED = """
class Cache(nn.Module):
    def __init__(self, dtype: torch.dtype | None = None):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("kept", torch.zeros(4, 8, dtype=dtype))

    def reset(self):
        self.kept = torch.zeros(4, 8)

    def forward(self, x: torch.Tensor, index: torch.Tensor):
        made = self.linear(x)
        {body}
        return self.kept.index_copy_(0, index, made)
"""


@pytest.mark.parametrize(
    ("body", "raises"),
    [
        ("pass", True),
        ("self.kept = self.kept.to(made.dtype)", False),
        ("self.kept = self.kept.to(made.dtype); self.reset()", True),
        ("self.kept = self.kept.to(made.dtype) if index is None else self.kept", True),
        ("if index.sum() > 3: self.kept = self.kept.to(made.dtype)", True),
        ("self.kept = self.kept.to(made.dtype); self = Cache()", True),
    ],
)
def test_an_attribute_holds_what_was_last_assigned_to_it(body: str, raises: bool) -> None:
    failing = [scenario for c in conflicts(CACHED.format(body=body)) for scenario in c.scenarios]
    assert failing[:2] == (list(AUTOCAST) if raises else [])


@pytest.mark.parametrize(
    "base", ["from parts import Base", "from parts.nowhere import Base", "import parts\nBase = parts.make()"]
)
def test_layers_of_a_class_with_a_base_behind_star_imports_or_unknown_follow_the_model(
    base: str, tmp_path: Path
) -> None:
    package = tmp_path / "parts"
    package.mkdir()
    (package / "__init__.py").write_text("from .first import *\nfrom .second import *\n")
    (package / "first.py").write_text("from . import second\nfrom .second import *\n")
    (package / "second.py").write_text("from .first import *\nfrom torch import nn\nclass Base(nn.Module):\n    pass\n")
    path = tmp_path / "model.py"
    code = HEADER + base + "\n\n\nclass Part(Base):\n    def __init__(self):\n        super().__init__()\n"
    code += "        self.linear = nn.Linear(8, 8)\n\n    def forward(self, x):\n        return self.linear(x{})\n"
    for cast, raising in (("", False), (".float()", True)):
        path.write_text(code.format(cast))
        found = analyse(
            Source(path, path.read_bytes()),
            scenarios=(CONTROL, *DEFAULT_SCENARIOS),
            device="cuda",
            torch_version=(2, 13),
        )
        assert bool([c for c in conflicts_of(found) if c.raises]) == raising


@pytest.mark.parametrize("layer", ["nn.Linear(4, 4, bias=bias)", "nn.Linear(4, 4, bias)", "nn.LayerNorm(4, bias=bias)"])
def test_a_flag_given_to_a_layer_is_no_tensor(layer: str) -> None:
    assert not conflicts(f"\ndef applied(bias):\n    return {layer}(torch.randn(2, 4))\n")


TRANSFORM = """
class Mixing(torch.distributions.Transform, nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.table = {table}

    def forward(self, x: torch.Tensor):
        return self.layer(x) @ self.table
"""


@pytest.mark.parametrize(("table", "raising"), [("nn.Parameter(torch.zeros(8, 8))", []), ("torch.zeros(8, 8)", [HALF])])
def test_a_class_is_a_module_with_another_base_of_torch_before_that(table: str, raising: list[tuple[str]]) -> None:
    assert [c.scenarios for c in conflicts(TRANSFORM.format(table=table)) if c.raises] == raising


HOOKED = """
class Tapped(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.features = torch.empty(8)
        self.head = nn.Linear(8, 8)
        {register}

    def tap(self, module, inputs, output):
        self.features = output

    def forward(self, x: torch.Tensor):
        self.model(x)
        return self.head(self.features)
"""


@pytest.mark.parametrize(
    ("register", "raising"),
    [
        ("self.model.register_forward_hook(self.tap)", []),
        ("self.model[0].register_forward_hook(hook=self.tap)", []),
        ("pass", [HALF]),
    ],
)
def test_a_hook_sets_its_attributes_whenever_it_runs(register: str, raising: list[tuple[str]]) -> None:
    assert [c.scenarios for c in conflicts(HOOKED.format(register=register)) if c.raises] == raising
