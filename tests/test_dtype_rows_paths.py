"""What ``amplint dtypes`` says behind code that a run does not reach, and behind calls of what is not known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import torch
from test_dtype_rows_objects import dtypes_of, module

if TYPE_CHECKING:
    from pathlib import Path

NORM = "if eps:\n    self.norm = {norm}\nelse:\n    self.norm = None"


@pytest.mark.parametrize(("norm", "expected"), [("None", ("float16",)), ("something()", None)])
def test_none_is_not_called(tmp_path: Path, norm: str, expected: tuple[str, ...] | None) -> None:
    forward = "x = x.half()\nif len(x) > 1:\n    x = self.norm(x)\nreturn x * 2"
    assert dtypes_of(tmp_path, module(forward, NORM.format(norm=norm)), "x * 2") == expected


def test_nothing_follows_a_call_that_always_raises(tmp_path: Path) -> None:
    program = "def refuse(x):\n    raise ValueError(x)\n"
    program += module("y = x.half()\nif len(x) > 1:\n    y = refuse(x)\nreturn y * 2")
    assert dtypes_of(tmp_path, program, "y * 2") == ("float16",)


def test_an_abstract_method_may_be_written_elsewhere(tmp_path: Path) -> None:
    program = module("y = x.half()\nif len(x) > 1:\n    y = self.act(x)\nreturn y * 2")
    program += "    def act(self, x):\n        raise NotImplementedError\n"
    assert dtypes_of(tmp_path, program, "y * 2") is None


def test_code_for_other_devices_is_not_reached(tmp_path: Path) -> None:
    forward = "y = x.half()\nif available():\n    import torch_npu\n    y = torch_npu.npu_rms_norm(y)\nreturn y * 2"
    assert dtypes_of(tmp_path, module(forward), "y * 2") == ("float16",)


def test_an_unknown_function_given_a_module_and_tensors_calls_it(tmp_path: Path) -> None:
    program = module("y = self.recompute(self.lin, x.half())\nreturn y * 2", "self.lin = nn.Identity()")
    assert dtypes_of(tmp_path, program, "y * 2") == ("float16",)


def test_an_unknown_function_given_a_module_alone_does_not(tmp_path: Path) -> None:
    program = module("y = self.prepare(self.lin, 2)\nreturn y * 2", "self.lin = nn.Identity()")
    assert dtypes_of(tmp_path, program, "y * 2") is None


def test_options_that_nobody_passes_are_none(tmp_path: Path) -> None:
    forward = "y = x.half()\nif options is not None:\n    y = something(y)\nreturn y * 2"
    program = module(forward, signature="x: torch.Tensor, options: Optional[Dict[str, Any]] = None")
    assert dtypes_of(tmp_path, program, "y * 2") == ("float16",)


@pytest.mark.parametrize(
    ("test", "device", "expected"),
    [
        ("x.is_cpu", "cpu", ("float16",)),
        ("not x.is_cuda", "cpu", ("float16",)),
        ("x.is_cuda or x.is_mps", "cpu", ("bfloat16",)),
        ("x.is_cuda", "cuda", ("float16",)),
        ("x.is_cpu or x.is_xpu", "cuda", ("bfloat16",)),
        ("x.is_mps", "mps", ("float16",)),
        ("torch.zeros(2).is_cpu", "cuda", ("float16",)),
        ("torch.zeros(2).is_cuda", "cuda", ("bfloat16",)),
        ("x.is_sparse", "cuda", ("float16", "bfloat16")),
        ("given['x'].is_cuda", "cuda", ("float16",)),
        ("given['x'].is_cpu", "cuda", ("bfloat16",)),
        ("x.device == torch.device('cuda')", "cuda", ("float16", "bfloat16")),
        ("x.device == torch.device('cuda')", "cpu", ("bfloat16",)),
        ("x.device == torch.device('cpu')", "cuda", ("bfloat16",)),
        ("x.device in ('cuda:0', 'cuda:1')", "cuda", ("float16", "bfloat16")),
        ("torch.cuda.is_available()", "cuda", ("float16",)),
        ("not torch.cuda.is_available()", "cuda", ("bfloat16",)),
        ("torch.cuda.is_available()", "cpu", ("float16", "bfloat16")),
        ("torch.xpu.is_available()", "cuda", ("float16", "bfloat16")),
        ("torch.cuda.is_bf16_supported()", "cuda", ("float16",)),
        ("torch.cuda.is_bf16_supported(False)", "cuda", ("float16", "bfloat16")),
        ("torch.cuda.is_bf16_supported()", "cpu", ("float16", "bfloat16")),
    ],
)
def test_tensors_lie_on_the_device_that_is_judged(
    tmp_path: Path, test: str, device: str, expected: tuple[str, ...]
) -> None:
    forward = f"y = x\nif {test}:\n    y = x.half()\nreturn y * 2"
    program = module(forward, signature="x: torch.Tensor, given=None")
    assert dtypes_of(tmp_path, program, "y * 2", device=device) == expected


def test_devices_with_and_without_an_index_differ() -> None:
    assert torch.device("cuda") != torch.device("cuda:0")
    assert torch.zeros(2).device == torch.device("cpu")


def test_bfloat16_is_supported_by_what_emulates_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's own answer for a device of compute capability 7, in whose place the host holds the tensor."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: torch.device("cpu"))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _device: SimpleNamespace(major=7))
    assert torch.cuda.is_bf16_supported()
    assert not torch.cuda.is_bf16_supported(False)


GATHERED = """\
def gathered(*tensors):
    found = []
    for tensor in tensors:
        if {test}:
            found.append(tensor.half())
        else:
            found.append(tensor)
    return found
"""


@pytest.mark.parametrize("test", ["isinstance(tensor, torch.Tensor)", "unknown(tensor)", "tensor.dtype != torch.half"])
def test_either_branch_appends_to_a_variable(tmp_path: Path, test: str) -> None:
    program = GATHERED.format(test=test) + module("a, b = gathered(x, self.weight.int())\nreturn b * 2")
    assert dtypes_of(tmp_path, program, "b * 2") == (("int32", "float16") if "unknown" in test else ("float16",))


def test_one_branch_appends_to_a_variable(tmp_path: Path) -> None:
    program = module("found = []\nif self.more:\n    found.append(x)\nfound.append(x.half())\nreturn found[0] * 2")
    assert dtypes_of(tmp_path, program, "found[0] * 2") == ("float16", "bfloat16")


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("x.is_floating_point() and x.dtype != torch.half", ("float16",)),
        ("isinstance(x, torch.Tensor) and x.dtype != torch.half", ("float16",)),
        ("isinstance(x, torch.Tensor) and x.is_floating_point() and x.dtype != torch.half", ("float16",)),
        ("not x.is_floating_point() or x.dtype != torch.half", ("float16",)),
        ("often and x.dtype != torch.half", ("float16", "bfloat16")),
    ],
)
def test_one_of_several_tests_fails(tmp_path: Path, test: str, expected: tuple[str, ...]) -> None:
    program = f"def cast(x, often):\n    if {test}:\n        return x.half()\n    return x\n"
    program += module("y = cast(x, self.often)\nreturn y * 2", signature="x")
    assert dtypes_of(tmp_path, program, "y * 2") == expected


PARTS = """\
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        return x * 2
"""
WHOLE = """\
from torch import nn

from .program import Part


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
"""


@pytest.mark.parametrize(
    ("more", "expected"),
    [("", ("float32", "bfloat16")), ("\n\ndef part():\n    return Part()\n", ("float32",))],
    ids=["made by another file", "made by its own as well"],
)
def test_a_module_that_another_file_makes_is_not_the_users(
    tmp_path: Path, more: str, expected: tuple[str, ...]
) -> None:
    for name, text in (("__init__", ""), ("whole", WHOLE)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    assert set(dtypes_of(tmp_path, PARTS + more, "x * 2", "autocast-bf16") or ()) == set(expected)


def test_a_comparison_of_devices_that_a_name_holds_decides(tmp_path: Path) -> None:
    forward = 'elsewhere = x.device.type == "mps"\ndtype = torch.float32 if elsewhere else torch.float64\n'
    program = module(forward + "return torch.arange(4, dtype=dtype)")
    assert dtypes_of(tmp_path, program, "torch.arange(4, dtype=dtype)") == ("float64",)


PART = """\
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = False

    def forward(self, x):
        x = x.half()
        if self.wide:
            x = x.double()
        return x
"""


def test_what_a_constructor_of_another_file_alone_sets_decides(tmp_path: Path) -> None:
    (tmp_path / "part.py").write_text(f"from torch import nn\n\n{PART}", encoding="utf-8")
    program = "from part import Part\n" + module("y = self.part(x)\nreturn y * 2", "self.part = Part()")
    assert dtypes_of(tmp_path, program, "y * 2") == ("float16",)


def test_an_attribute_set_on_another_path_is_not_called(tmp_path: Path) -> None:
    program = """\
class Part(nn.Module):
    def __init__(self, extra):
        super().__init__()
        if extra:
            self.added = something()

    def forward(self, x):
        y = x.half()
        if len(x) > 1:
            y = self.added(y)
        return y * 2

"""
    program += module("return self.part(x)", "self.part = Part(False)")
    assert dtypes_of(tmp_path, program, "y * 2") == ("float16",)


def test_of_several_modules_those_that_take_the_arguments_are_called(tmp_path: Path) -> None:
    program = "class One(nn.Module):\n    def forward(self, x):\n        return x.double()\n"
    program += "class Two(nn.Module):\n    def forward(self, x, scale):\n        return x.half()\n"
    constructor = "if config.two:\n    self.part = Two()\nelse:\n    self.part = One()"
    program += module("y = self.part(x, x)\nreturn y * 2", constructor)
    assert dtypes_of(tmp_path, program, "y * 2") == ("float16",)


def test_a_list_that_may_be_none_is_run_over(tmp_path: Path) -> None:
    constructor = "self.parts = None\nif config.deep:\n    self.parts = nn.ModuleList([nn.Linear(dim, dim)])"
    forward = (
        "x = x.float()\nif self.parts is not None:\n    for part in self.parts:\n        y = part(x)\nreturn y * 2"
    )
    assert dtypes_of(tmp_path, module(forward, constructor), "y * 2", "autocast-bf16") == ("bfloat16",)


def test_a_few_different_layers_run_in_order(tmp_path: Path) -> None:
    constructor = "self.parts = nn.ModuleList([nn.LayerNorm(dim), nn.Dropout(), nn.Linear(dim, dim)])"
    forward = "for part in self.parts:\n    x = part(x)\nreturn x * 2"
    assert dtypes_of(tmp_path, module(forward, constructor), "x * 2", "autocast-bf16") == ("bfloat16",)


@pytest.mark.parametrize(("second", "expected"), [("something", ("float16",)), ("widened", ("float16", "float32"))])
def test_of_several_callables_those_decide_that_are_known(
    tmp_path: Path, second: str, expected: tuple[str, ...]
) -> None:
    program = f"def kept(x):\n    return x + 1\ndef widened(x):\n    return x.float()\nCHOICES = [kept, {second}]\n"
    program += module("y = x.half()\nfor number in range(len(x)):\n    z = CHOICES[number](y)\nreturn z * 2")
    found = dtypes_of(tmp_path, program, "z * 2")
    assert found is not None
    assert set(found) == set(expected)
