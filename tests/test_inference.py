"""The inference on small modules: where operands disagree, and where they only look as if they did.

Each case is a module; ``# kind`` at the end of a line (a value of ``Kind``) marks an operation that must be recorded
as a conflict of that kind, and nothing else may be. ``test_claims_hold_in_torch`` runs the marked cases in a scenario
that the conflict names: each claim of a crash is one.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from amplint.claims.conflicts import conflicts as conflicts_of
from amplint.finding import Certainty
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.infer.state.facts import FileFacts, Kind
from amplint.source import Source

HEADER = """\
import functools

import torch
import torch.nn.functional as F
from torch import nn, einsum


"""
_MARK = re.compile(r"#\s*([a-z-]+)$")


def facts_of(source: str, path: Path, device: str = "cuda") -> FileFacts:
    return analyse(
        Source(path, source.encode()), scenarios=(CONTROL, *DEFAULT_SCENARIOS), device=device, torch_version=(2, 13)
    )


def conflicts(facts: FileFacts) -> dict[int, str]:
    sure = [c for c in conflicts_of(facts) if c.standing.certainty is not Certainty.POSSIBLE]
    return {facts.span(c.node).start.row: c.kind.value for c in sure}


def marks(source: str) -> dict[int, str]:
    kinds = {kind.value for kind in Kind}
    found = {}
    for row, line in enumerate(source.splitlines(), start=1):
        mark = _MARK.search(line)
        if mark and mark[1] in kinds:
            found[row] = mark[1]
    return found


def module(body: str, init: str = "self.lin = nn.Linear(8, 8)") -> str:
    """A module with the given constructor and methods."""
    constructor = textwrap.indent(textwrap.dedent(init).strip(), "        ")
    methods = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    start = "class M(nn.Module):\n    def __init__(self):\n        super().__init__()"
    return f"{HEADER}{start}\n{constructor}\n\n{methods}\n"


CASES = {
    "upcast meets the parameter": module("def forward(self, x):\n    return self.lin(x.float())  # upcast"),
    "upcast and back": module("def forward(self, x):\n    return self.lin(x.float().exp().to(x.dtype))"),
    "cast to the parameter's dtype": module(
        "def forward(self, x):\n    return self.lin(x.float().to(self.lin.weight.dtype))"
    ),
    "type_as": module("def forward(self, x):\n    return self.lin((x.float() * 2).type_as(x))"),
    "a float32 table drifts": module(
        "def forward(self, x: torch.Tensor):\n    return self.lin(x * torch.arange(8.0))  # constant"
    ),
    "a norm without weights takes what it gets": module(
        "def forward(self, x: torch.Tensor):\n    return self.norm(self.lin(x).float())",
        "self.lin = nn.Linear(8, 8)\nself.norm = nn.InstanceNorm1d(8)",
    ),
    "a norm with narrower weights does not": module(
        "def forward(self, x: torch.Tensor):\n    return self.norm(self.lin(x).float())  # mixed",
        "self.lin = nn.Linear(8, 8)\nself.norm = nn.InstanceNorm1d(8, affine=True)",
    ),
    "a 0-dim tensor does not": module(
        "def forward(self, x: torch.Tensor):\n    return self.lin(x * torch.tensor(0.5))"
    ),
    "what a reduction keeps has dimensions": module(
        "def forward(self, x):\n    return self.lin(x + torch.ones(8, 8, 8).sum(1))  # constant"
    ),
    "what a full reduction leaves has none": module(
        "def forward(self, x: torch.Tensor):\n    return self.lin(x + torch.ones(8, 8, 8).sum((0, 1, 2)))"
    ),
    "a Python number does not": module("def forward(self, x: torch.Tensor):\n    return self.lin(x * 0.5 + 1)"),
    "a buffer follows the module": module(
        "def forward(self, x: torch.Tensor):\n    return self.lin(x * self.table)",
        "self.lin = nn.Linear(8, 8)\nself.register_buffer('table', torch.arange(8.0))",
    ),
    "a plain attribute does not": module(
        "def forward(self, x: torch.Tensor):\n    return self.lin(x * self.table)  # table",
        "self.lin = nn.Linear(8, 8)\nself.table = torch.arange(8.0)",
    ),
    "a constructor runs before the module is converted": module(
        "def forward(self, x: torch.Tensor):\n    return self.lin(x)",
        "self.lin = nn.Linear(8, 8)\nself.size = self.lin(torch.zeros(1, 8)).shape[-1]",
    ),
    "so does what it calls": module(
        "def forward(self, x: torch.Tensor):\n    return self.lin(x)",
        "self.lin = nn.Linear(8, 8)\nself.size = size_of(self.lin)",
    )
    + "\n\ndef size_of(layer):\n    return layer(torch.zeros(1, 8)).shape[-1]\n",
    "which is something else in forward": module(
        "def forward(self, x: torch.Tensor):\n    return x, size_of(self.lin)",
        "self.lin = nn.Linear(8, 8)\nself.size = size_of(self.lin)",
    )
    + "\n\ndef size_of(layer):\n    return layer(torch.zeros(1, 8)).shape[-1]  # constant\n",
    "a class method gets the class": module(
        """
        @classmethod
        def made(cls):
            return cls(torch.zeros(8, 8))

        def forward(self, x: torch.Tensor):
            return self.lin(x)
        """
    ),
    "CUDA autocast to float32 casts": module(
        """
        @torch.autocast("cuda", dtype=torch.float32)
        def forward(self, x: torch.Tensor):
            return self.lin(torch.arange(8.0) * x)
        """
    ),
    "one way leads past a constant": module(
        """
        def forward(self, x: torch.Tensor):
            y = self.lin(x)
            if self.training:
                y = y + torch.zeros(8)
            return y @ self.lin(x)  # constant
        """
    ),
    "a size that is divided is no float": module(
        "def forward(self, x: torch.Tensor, size):\n    return self.lin(x * torch.arange(size // 2))"
    ),
    "a sum is float32 under autocast and meets a low cache": module(
        """
        def forward(self, x: torch.Tensor, index: torch.Tensor):
            out = torch.zeros(16, 8)
            out.index_add_(0, index, self.lin(x))  # index-write
            return out
        """
    ),
    "a slice assignment casts": module(
        "def forward(self, x):\n    out = torch.zeros(4, 8)\n    out[:2] = self.lin(x[:2])\n    return out"
    ),
    "an unknown callee says nothing": module("def forward(self, x):\n    return self.lin(mystery(x.float()))"),
    "an unknown attribute says nothing": module("def forward(self, x):\n    return self.lin(self.unseen(x.float()))"),
    "guarded by dtype": module(
        """
        def forward(self, x: torch.Tensor):
            if x.dtype == torch.float32:
                return self.lin(x.to(self.lin.weight.dtype))
            return self.lin(x)
        """
    ),
    "guarded by the autocast query": module(
        """
        def forward(self, x: torch.Tensor):
            if not torch.is_autocast_enabled("cuda"):
                x = x.to(self.lin.weight.dtype)
            return self.lin(x)
        """
    ),
    "a guard behind a helper": HEADER
    + textwrap.dedent(
        """
        def enabled(device):
            try:
                return torch.is_autocast_enabled(device)
            except TypeError:
                return torch.is_autocast_enabled()


        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(8, 8)

            def forward(self, x: torch.Tensor):
                if enabled(x.device.type):
                    return x.float() @ x.float().T  # undone-upcast
                return x @ x.T
        """
    ).lstrip(),
    "one operand of a product": module(
        "def forward(self, x: torch.Tensor):\n    return x.float() @ self.lin(x).transpose(-1, -2)  # upcast"
    ),
    "both operands, outside autocast": module(
        """
        def forward(self, x: torch.Tensor):
            with torch.autocast(x.device.type, enabled=False):
                return x.float() @ self.lin.weight.float()
        """
    ),
    "both operands, undone by autocast": module(
        "def forward(self, x):\n    return torch.matmul(x.float(), self.lin.weight.float())  # undone-upcast"
    ),
    "leaving autocast without a cast": module(
        """
        def forward(self, x: torch.Tensor):
            h = self.lin(x)
            with torch.autocast(x.device.type, enabled=False):
                return self.lin(h)  # autocast-exit
        """
    ),
    "leaving autocast by a decorator": module(
        """
        def forward(self, x: torch.Tensor):
            return self.inner(self.lin(x))

        @torch.autocast("cuda", enabled=False)
        def inner(self, h):
            return self.lin(h)  # autocast-exit
        """
    ),
    "another device's region is nobody's business": module(
        """
        def forward(self, x: torch.Tensor):
            h = self.lin(x)
            with torch.autocast("xpu", enabled=False):
                return self.lin(h)
        """
    ),
    "softmax with a dtype": module(
        """
        def forward(self, q: torch.Tensor, v: torch.Tensor):
            attn = F.softmax(self.lin(q) @ v.transpose(-1, -2), dim=-1, dtype=torch.float32)
            return attn @ v  # upcast
        """
    ),
    "softmax with a dtype, cast back": module(
        """
        def forward(self, q: torch.Tensor, v: torch.Tensor):
            attn = F.softmax(q @ v.transpose(-1, -2), dim=-1, dtype=torch.float32).to(v.dtype)
            return attn @ v
        """
    ),
    "attention with an upcast query": module(
        """
        def forward(self, x: torch.Tensor):
            q, k, v = self.lin(x).chunk(3, dim=-1)
            return F.scaled_dot_product_attention(q.float(), k, v)  # attention
        """
    ),
    "an out variant under autocast": module(
        """
        def forward(self, x: torch.Tensor):
            out = torch.zeros(8, 8)
            h = self.lin(x)
            return torch.mm(h, h.t(), out=out)  # out-variant
        """
    ),
    "a module that a caller passes follows the model's dtype": HEADER
    + textwrap.dedent(
        """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.proj = nn.Linear(8, 8)


        def project(block: Block, x: torch.Tensor):
            return block.proj(x)
        """
    ).lstrip(),
    "layers in the dtype of an input": HEADER
    + textwrap.dedent(
        """
        def project(x: torch.Tensor):
            return nn.Linear(8, 8).to(x.dtype)(nn.Linear(8, 8, dtype=x.dtype)(x))
        """
    ).lstrip(),
    "through a helper function": HEADER
    + textwrap.dedent(
        """
        def product(a, b):
            return torch.bmm(a, b)  # constant


        class M(nn.Module):
            def forward(self, x: torch.Tensor):
                return product(x, torch.eye(4).expand(2, 4, 4))
        """
    ).lstrip(),
    "through another module": HEADER
    + textwrap.dedent(
        """
        class Norm(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(8))

            def forward(self, x):
                return F.normalize(x.float(), dim=-1)


        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = Norm()
                self.body = nn.Sequential(nn.Dropout(0.1), nn.GELU())
                self.lin = nn.Linear(8, 8)

            def forward(self, x: torch.Tensor):
                return self.lin(self.body(self.norm(x)))  # upcast
        """
    ).lstrip(),
    "layers in a list": module(
        """
        def forward(self, x: torch.Tensor):
            for layer in self.layers:
                x = layer(x)
            return self.layers[0](x.double().float())  # upcast
        """,
        "self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])",
    ),
    "a loop that drifts": module(
        """
        def forward(self, xs: torch.Tensor):
            h = torch.zeros(2, 8)
            for x in xs:
                h = self.lin(h)  # constant
            return h
        """
    ),
    "partial and aliases": module(
        "def forward(self, x):\n    return self.make(x.float())  # upcast",
        "klass = functools.partial(nn.Linear, bias=False)\nself.make = klass(8, 8)",
    ),
    "one of two layers": module(
        "def forward(self, x):\n    return self.pick(x.float())  # upcast",
        "wide = bool(id(self))\nself.pick = nn.Linear(8, 8) if wide else nn.Identity()",
    ),
    "einsum by its imported name": module(
        """
        def forward(self, x: torch.Tensor):
            return einsum("b i, i j -> b j", x, torch.randn(8, 8))  # constant
        """
    ),
    "out of a script": HEADER
    + textwrap.dedent(
        """
        def main():
            model = nn.Sequential(nn.Linear(8, 8))
            print(model(torch.randn(2, 8)))


        if __name__ == "__main__":
            main()
        """
    ).lstrip(),
    "a mask that is made bool": module(
        """
        def forward(self, x: torch.Tensor):
            mask = torch.ones(8, 8).tril().bool()
            return self.lin(x.masked_fill(mask, 0.0))
        """
    ),
    "a parameter that a helper makes": HEADER
    + textwrap.dedent(
        """
        def scaled(*shape):
            return nn.Parameter(torch.randn(*shape) * 1e-2)


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(8, 8)
                self.weight = scaled(8, 8)

            def forward(self, x: torch.Tensor):
                return self.lin(x) @ self.weight
        """
    ).lstrip(),
    "a converted layer": module(
        "def forward(self, x: torch.Tensor):\n    return self.head(x.float())",
        "self.head = nn.Linear(8, 8)",
    ).replace("self.head(x.float())", "self.head(x.float())  # upcast"),
}


@pytest.mark.parametrize("name", CASES)
def test_conflicts(name: str, tmp_path: Path) -> None:
    source = CASES[name]
    assert conflicts(facts_of(source, tmp_path / "case.py")) == marks(source)


CRASHES = [name for name, source in CASES.items() if {*marks(source).values()} - {"undone-upcast"}]
_DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}


@pytest.mark.parametrize("name", CRASHES)
def test_claims_hold_in_torch(name: str, tmp_path: Path) -> None:
    """The module of a marked case raises in a scenario that its conflict names, and runs in float32."""
    source = CASES[name]
    facts = facts_of(source, tmp_path / "case.py", device="cpu" if "torch.autocast(x.device" in source else "cuda")
    named = {scenario for conflict in conflicts_of(facts) for scenario in conflict.scenarios}
    scenario = next(s for s in DEFAULT_SCENARIOS if s.name in named and not s.keeps_explicit)
    run(source, CONTROL.parameters, CONTROL.inputs, None)
    source = source.replace('torch.autocast("cuda"', 'torch.autocast("cpu"')
    with pytest.raises(RuntimeError):
        run(source, scenario.parameters, scenario.inputs, scenario.autocast)


def run(source: str, parameters: str, inputs: str, autocast: str | None) -> None:
    """Build ``M`` and call its forward on tensors of the shapes that its parameter names suggest."""
    namespace: dict[str, Any] = {"__name__": "case", "mystery": lambda x: x}
    exec(compile(source, "case.py", "exec"), namespace)
    model = namespace["M"]().to(_DTYPES[parameters])
    code = namespace["M"].forward.__code__
    names = code.co_varnames[1 : code.co_argcount]
    shape = (2, 4, 4) if "bmm" in source else (24, 8) if "chunk" in source else (8, 8)
    if "chunk" in source:
        model.lin = torch.nn.Linear(8, 24).to(_DTYPES[parameters])
    if "for x in xs" in source:
        shape = (3, 2, 8)
    tensors = [torch.arange(8) if n == "index" else torch.rand(shape, dtype=_DTYPES[inputs]) for n in names]
    with torch.no_grad(), torch.autocast("cpu", dtype=_DTYPES[autocast or "bfloat16"], enabled=autocast is not None):
        model(*tensors)


def test_the_policy_is_the_devices(tmp_path: Path) -> None:
    """CUDA's autocast runs layer_norm in float32, the CPU's leaves it alone: only there a low cache disagrees."""
    source = module(
        """
        def forward(self, x: torch.Tensor, index: torch.Tensor):
            out = torch.zeros(8, 8, dtype=torch.bfloat16)
            out.index_add_(0, index, self.norm(self.lin(x)).to(torch.bfloat16))
            wide = torch.zeros(8, 8)
            wide.index_add_(0, index, self.norm(self.lin(x)))
            return out
        """,
        "self.lin = nn.Linear(8, 8)\nself.norm = nn.LayerNorm(8)",
    )
    scenarios = {}
    for device in ("cuda", "cpu"):
        found = conflicts_of(facts_of(source, tmp_path / "case.py", device))
        scenarios[device] = {scenario for conflict in found for scenario in conflict.scenarios}
    assert "autocast-bf16" not in scenarios["cuda"]
    assert "autocast-bf16" in scenarios["cpu"]


def test_imports_of_the_project_are_followed(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    (package / "layers").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "layers" / "__init__.py").write_text("from .norm import Norm\nfrom . import casts\n")
    (package / "layers" / "casts.py").write_text("def widen(x):\n    return x.float()\n")
    (package / "layers" / "norm.py").write_text(
        "from torch import nn\nfrom pkg.layers.casts import widen\n\n\nclass Norm(nn.Module):\n"
        "    def forward(self, x):\n        return widen(x)\n"
    )
    model = package / "model.py"
    model.write_text(
        "from torch import nn\nfrom .layers import Norm, casts\n\n\nclass M(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.norm, self.lin = Norm(), nn.Linear(8, 8)\n\n"
        "    def forward(self, x):\n"
        "        y = self.lin(self.norm(x))\n        return self.lin(casts.widen(y))\n"
    )
    facts = facts_of(model.read_text(), model)
    assert conflicts(facts)[11] == "upcast"
    assert {cause.filename.name for conflict in conflicts_of(facts) for cause in conflict.causes} == {
        "casts.py",
        "model.py",
    }


def test_one_cast_is_one_defect(tmp_path: Path) -> None:
    source = module(
        "def forward(self, x):\n    x = x.float()\n    return self.lin(x) + self.lin(x * 2) + self.lin(x + 1)"
    )
    assert len(conflicts_of(facts_of(source, tmp_path / "case.py"))) == 1


def test_work_is_bounded(tmp_path: Path) -> None:
    """Calls that multiply stop at the bound, and what comes after is still looked at."""
    doubling = "\n".join(
        f"def f{i}(a, b):\n    return f{i + 1}(a, [b, {i}.5, torch.zeros({i})]) + f{i + 1}([a, '{i}'], b)\n"
        for i in range(40)
    )
    source = f"{HEADER}{doubling}\n\ndef f40(a, b):\n    return torch.zeros(1)\n\n\n" + module(
        "def forward(self, x):\n    return self.lin(x.float())"
    ).removeprefix(HEADER)
    assert "upcast" in conflicts(facts_of(source, tmp_path / "case.py")).values()


SNIPPETS = st.sampled_from([line for source in CASES.values() for line in source.splitlines()])


@settings(max_examples=60, deadline=None)
@given(st.lists(SNIPPETS, max_size=30), st.integers(0, 3))
def test_any_file_that_parses_is_analysed(lines: list[str], indent: int) -> None:
    """Lines thrown together: inference never raises, whatever the code means."""
    source = "\n".join(lines)
    try:
        compile(source, "case.py", "exec", dont_inherit=True, flags=0x400)
    except (SyntaxError, ValueError):
        source = "\n".join(
            f"{'    ' * indent}{line.strip()}" for line in lines if "class" not in line and "def" not in line
        )
        source = f"if True:\n{textwrap.indent(textwrap.dedent(source), '    ')}\n    pass\n"
        try:
            compile(source, "case.py", "exec", dont_inherit=True, flags=0x400)
        except (SyntaxError, ValueError):
            return
    facts_of(source, Path("/nowhere/case.py"))


@pytest.mark.parametrize(
    ("before", "certainty"),
    [
        ("y = self.other(x)\nif self.wide:\n    y = self.lin(x).float()", Certainty.LIKELY),
        ("y = self.other(x)\nif self.wide:\n    y = self.lin(x).float()\ny = y * 2", Certainty.LIKELY),
        ("y = self.other(x)\nif self.wide:\n    y = self.lin(x)\ny = y.float()", Certainty.PROVEN),
        ("y = self.lin(x).float()", Certainty.PROVEN),
    ],
)
def test_what_is_unknown_on_another_path_proves_nothing(before: str, certainty: Certainty, tmp_path: Path) -> None:
    body = textwrap.indent(before + "\nreturn self.lin(y)", "    ")
    source = module(
        f"def forward(self, x):\n{body}",
        "self.lin = nn.Linear(8, 8)\nself.other = mystery()\nself.wide = mystery()",
    )
    (conflict,) = conflicts_of(facts_of(source, tmp_path / "case.py"))
    assert conflict.standing.certainty is certainty
