"""Dtypes of expressions in modules whose layers are chosen, listed or made by factories."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
import torch

from amplint.annotate.rows import file_dtypes
from amplint.infer.lattice.scenarios import CONTROL, find_scenario
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom functools import partial\n"


def _dtypes(folder: Path, text: str, expression: str, scenario: str = "autocast-bf16") -> tuple[str, ...] | None:
    """The dtypes of the one expression of a program, a file of a package, that is written like this."""
    (folder / "__init__.py").touch()
    path = folder / "model.py"
    path.write_text(HEADER + dedent(text))
    found = find_scenario(scenario)
    assert found is not None
    source = Source(path, path.read_bytes())
    rows = file_dtypes(source, scenarios=(CONTROL, found), device="cuda", torch_version=(2, 13)).rows
    lines = source.lines
    matching = [
        row.dtypes[1]
        for row in rows
        if row.span.start.row == row.span.end.row
        and lines[row.span.start.row - 1][row.span.start.column - 1 : row.span.end.column - 1] == expression
    ]
    assert len(matching) == 1
    return matching[0]


PROGRAMS = {
    "sequential-subclass": (
        """
        class Stem(nn.Sequential):
            def __init__(self, dim):
                super().__init__()
                self.width = 4
                self.add_module("conv", nn.Conv2d(3, dim, 3))
                self.act = nn.ReLU()

        class Net(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.stem = Stem(dim)

            def forward(self, x):
                return self.stem(x)
        """,
        "self.stem(x)",
        ("bfloat16",),
    ),
    "unpacked-list": (
        """
        class Net(nn.Module):
            def __init__(self, depth, wide=False):
                super().__init__()
                blocks = []
                for index in range(depth):
                    if wide:
                        blocks.append(nn.Conv2d(8, 8, 3))
                    else:
                        blocks.append(nn.Conv2d(8, 8, 1))
                self.blocks = nn.Sequential(*blocks, nn.LayerNorm(8))

            def forward(self, x):
                return self.blocks(x)
        """,
        "self.blocks(x)",
        ("float32",),
    ),
    "converted-under-any-name": (
        """
        class Net(nn.Module):
            def __init__(self, names):
                super().__init__()
                self.blocks = nn.ModuleDict({name: nn.Linear(8, 8) for name in names}).double()

            def forward(self, x, name):
                return self.blocks[name].weight
        """,
        "self.blocks[name].weight",
        ("float64",),
    ),
    "converted-behind-an-unpacked-list": (
        """
        class Net(nn.Module):
            def __init__(self, depth):
                super().__init__()
                self.blocks = nn.Sequential(*[nn.Linear(8, 8) for _ in range(depth)], nn.Conv1d(8, 8, 1)).double()

            def forward(self, x):
                return self.blocks[-1].weight
        """,
        "self.blocks[-1].weight",
        ("float64",),
    ),
    "ordered-dict": (
        """
        from collections import OrderedDict

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Sequential(OrderedDict([("norm", nn.LayerNorm(8)), ("fc", nn.Linear(8, 8))]))

            def forward(self, x):
                return self.head(x)
        """,
        "self.head(x)",
        ("bfloat16",),
    ),
    "registry-by-name": (
        """
        LAYERS = dict(linear=nn.Linear, norm=nn.LayerNorm)

        def layer_of(name):
            if name is None:
                return None
            if not isinstance(name, str):
                return name
            name = name.replace("_", "").lower()
            if name in LAYERS:
                return LAYERS[name]
            raise ValueError(name)

        class Net(nn.Module):
            def __init__(self, mixer="Lin_ear", last=partial(nn.LayerNorm, eps=1e-6)):
                super().__init__()
                self.mixer = layer_of(mixer)(8, 8)
                self.last = layer_of(last)(8)

            def forward(self, x):
                return self.last(x), self.mixer(x)
        """,
        "self.mixer(x)",
        ("bfloat16",),
    ),
    "passed-by-factories": (
        """
        class Wide(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(8, 8)

            def forward(self, x):
                return self.fc(x)

        class Narrow(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(8, 8, 1)

            def forward(self, x):
                return self.conv(x)

        class Net(nn.Module):
            def __init__(self, block):
                super().__init__()
                self.body = block()

            def forward(self, x):
                return self.body(x)

        def wide():
            return Net(**dict(block=Wide))

        def narrow():
            return Net(block=Narrow)
        """,
        "self.body(x)",
        ("bfloat16",),
    ),
    "made-by-a-factory-only": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm2d(8)

            def forward(self, x):
                return self.norm(x)

        def build(cls, **options):
            return cls(**options)

        def net(**options):
            return build(Net, **options)
        """,
        "self.norm(x)",
        ("float32",),
    ),
    "children-run-in-segments": (
        """
        def run_in_segments(functions, x, every=1):
            def segment(start, end, functions):
                def forward(value):
                    for j in range(start, end + 1):
                        value = functions[j](value)
                    return value
                return forward

            if isinstance(functions, torch.nn.Sequential):
                functions = functions.children()
            if not isinstance(functions, (tuple, list)):
                functions = tuple(functions)
            for start in range(0, len(functions), every):
                x = torch.utils.checkpoint.checkpoint(segment(start, start + every, functions), x)
            return x

        class Net(nn.Module):
            def __init__(self, depth):
                super().__init__()
                self.first = nn.Linear(8, 8)
                self.blocks = nn.Sequential(*[nn.Linear(8, 8) for _ in range(depth)])

            def forward(self, x):
                x = self.first(x)
                return run_in_segments(self.blocks, x)
        """,
        "run_in_segments(self.blocks, x)",
        ("bfloat16",),
    ),
}


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_dtype_is_known(tmp_path: Path, name: str) -> None:
    text, expression, expected = PROGRAMS[name]
    assert _dtypes(tmp_path, text, expression) == expected


def test_a_layer_that_is_not_known_leaves_the_result_unknown(tmp_path: Path) -> None:
    text = """
        from elsewhere import make

        class Stem(nn.Sequential):
            def __init__(self, dim):
                super().__init__()
                self.conv = nn.Conv2d(3, dim, 3)
                self.add_module("rest", make(dim))

        class Net(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.stem = Stem(dim)

            def forward(self, x):
                return self.stem(x)
        """
    assert _dtypes(tmp_path, text, "self.stem(x)") is None


BEHIND = """
        class Last(nn.Module):
            def forward(self, x):
                return x.contiguous()

        class Net(nn.Module):
            def __init__(self, depth):
                super().__init__()
                self.first = nn.Linear(8, 8)
                blocks = [nn.LayerNorm(8) for _ in range(depth)]
                MADE

            def forward(self, x):
                return self.blocks(self.first(x))
        """


@pytest.mark.parametrize(
    "made",
    [
        "self.blocks = nn.Sequential(*blocks, Last())",
        "self.blocks = nn.Sequential(*(blocks + [Last()]))",
        "self.blocks = nn.Sequential(*[*blocks, Last()])",
        "blocks.append(Last()); self.blocks = nn.Sequential(*blocks)",
    ],
)
def test_a_layer_behind_a_list_gets_what_the_list_gives(made: str, tmp_path: Path) -> None:
    assert _dtypes(tmp_path, BEHIND.replace("MADE", made), "x.contiguous()") == ("float32",)


ASKED = """\
class Camera(nn.Module):
    def __init__(self, given, dtype=DEFAULT):
        super().__init__()
        self.weight = nn.Parameter(MADE)

    def forward(self, x: torch.Tensor):
        weight = self.weight
        return weight.sin()
"""


@pytest.mark.parametrize(
    ("made", "default", "mixed", "half"),
    [
        ("torch.ones(3, dtype=dtype)", "torch.float64", "float64", None),
        ("torch.ones(3, dtype=torch.float64)", "None", "float64", None),
        ("torch.ones(3, dtype=dtype)", "torch.float32", "float32", "bfloat16"),
        ("torch.ones(3, dtype=torch.float32)", "None", "float32", "bfloat16"),
        ("torch.ones(3, dtype=dtype)", "None", "bfloat16", "bfloat16"),
        ("torch.ones(3)", "None", "bfloat16", "bfloat16"),
    ],
)
def test_a_parameter_has_the_dtype_that_it_is_made_with(
    tmp_path: Path, made: str, default: str, mixed: str, half: str | None
) -> None:
    """Where models are built under another default dtype; nobody halves what the code makes float64."""
    code = ASKED.replace("DEFAULT", default).replace("MADE", made)
    namespace: dict[str, Any] = {}
    exec(HEADER + code, namespace)
    torch.set_default_dtype(torch.bfloat16)
    try:
        dtype = namespace["Camera"](torch.ones(3, dtype=torch.float32)).weight.dtype
    finally:
        torch.set_default_dtype(torch.float32)
    assert str(dtype) == f"torch.{mixed}"
    open_default = made.endswith("dtype=dtype)") and default != "None"
    assert _dtypes(tmp_path, code, "self.weight", "bf16-mixed-params") == (None if open_default else (mixed,))
    assert _dtypes(tmp_path, code, "self.weight", "bf16") == (None if half is None else (half,))


@pytest.mark.parametrize(
    ("made", "known"),
    [
        ("torch.from_numpy(given), requires_grad=False", False),
        ("torch.from_numpy(given), False", False),
        ("torch.from_numpy(given)", True),
        ("torch.ones(3), requires_grad=False", True),
    ],
)
def test_a_parameter_without_a_gradient_may_hold_whole_numbers(tmp_path: Path, made: str, known: bool) -> None:
    code = ASKED.replace("DEFAULT", "None").replace("MADE", made)
    assert _dtypes(tmp_path, code, "self.weight", "bf16") == (("bfloat16",) if known else None)
    if known:
        return
    namespace: dict[str, Any] = {}
    exec(HEADER + code, namespace)
    whole = torch.ones(3, dtype=torch.int64)
    model = namespace["Camera"](whole.numpy())
    assert model.bfloat16().weight.dtype == torch.int64


LATE = """\
class Late(nn.Module):
    def forward(self, x: torch.Tensor):
        layer = MADE
        weight = layer.weight
        return x + weight

    def made(self):
        return nn.Linear(3, 3)
"""


@pytest.mark.parametrize("made", ["nn.Linear(3, 3)", "self.made()", "nn.Linear(3, 3).to(x.device)"])
def test_a_layer_made_in_forward_comes_after_the_conversion(tmp_path: Path, made: str) -> None:
    code = LATE.replace("MADE", made)
    assert _dtypes(tmp_path, code, "layer.weight", "bf16") == ("float32",)
    namespace: dict[str, Any] = {}
    exec(HEADER + code, namespace)
    assert namespace["Late"]().bfloat16()(torch.ones(3, dtype=torch.bfloat16)).dtype is torch.float32


@pytest.mark.parametrize(
    ("move", "half"),
    [
        (".cuda()", None),
        (".to(torch.float32)", "bfloat16"),
        (".to('cuda', torch.float32)", None),
        (".to(**{'device': given.device, 'dtype': torch.float32})", None),
        (".to('cpu', torch.float32)", "bfloat16"),
    ],
)
def test_a_parameter_that_is_moved_where_it_is_made_need_be_none(tmp_path: Path, move: str, half: str | None) -> None:
    """On another device it is a plain tensor, which no conversion of the module reaches."""
    code = ASKED.replace("(MADE)", f"(torch.ones(3)){move}").replace("DEFAULT", "None")
    assert _dtypes(tmp_path, code, "self.weight", "bf16") == (None if half is None else (half,))
    assert _dtypes(tmp_path, code, "self.weight", "autocast-bf16") == ("float32",)
    namespace: dict[str, Any] = {}
    exec(HEADER + code.replace("'cuda'", "'meta'").replace(".cuda()", ".to('meta')"), namespace)
    names = [name for name, _ in namespace["Camera"](torch.ones(3, device="meta")).bfloat16().named_parameters()]
    assert names == (["weight"] if half else [])
