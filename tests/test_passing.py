"""What a caller may pass to where autocast is off is a claim where something in the project is seen to pass it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

from amplint.engine import Options, check_file
from amplint.plugins import load_rules, select_rules

if TYPE_CHECKING:
    from pathlib import Path

RULES = select_rules(load_rules(), ("AMP106",), (), ())

CODEBOOK = """\
import torch
from torch import nn


class Codebook(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.project = nn.Linear(dim, dim)
        self.register_buffer("codes", torch.randn(16, dim))

    @torch.autocast("cuda", enabled=False)
    @torch.autocast("cpu", enabled=False)
    def forward(self, x):
        return torch.einsum("bd,cd->bc", x, self.codes)
"""
MODEL = """\
import torch
from torch import nn

from .codebook import Codebook


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.encode = nn.Linear(dim, dim)
        self.codebook = Codebook(dim)

    def forward(self, x):
        return self.codebook({passed})
"""
OUTER = """\
import torch
from torch import nn

from .model import Model


class Outer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.enter = nn.Linear(dim, dim)
        self.model = Model(dim)

    def forward(self, x):
        return self.model({passed})
"""
FAR = "\n".join(f"a{n} = {n}" for n in range(20_000))


def certainties(folder: Path, **files: str) -> list[str]:
    """How sure the claim about the product in ``codebook.py`` is."""
    package = folder / "passing_package"
    package.mkdir()
    (package / "__init__.py").touch()
    for name, text in {"codebook": CODEBOOK, **files}.items():
        (package / f"{name}.py").write_text(text)
    found = check_file(package / "codebook.py", Options(RULES, pedantic=True)).findings
    assert {finding.span.start.row for finding in found} <= {14}
    return [finding.certainty.value for finding in found]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, "possible"),
        ({"model": MODEL.format(passed="x")}, "possible"),
        ({"model": MODEL.format(passed="self.encode(x).float()")}, "possible"),
        ({"model": MODEL.format(passed="self.encode(x).relu()")}, "likely"),
        ({"model": MODEL.format(passed="x"), "outer": OUTER.format(passed="x")}, "possible"),
        ({"model": MODEL.format(passed="x"), "outer": OUTER.format(passed="self.enter(x)")}, "likely"),
        ({"model": FAR + "\n" + MODEL.format(passed="self.encode(x)")}, "possible"),
        ({"test_model": "import pytest\n" + MODEL.format(passed="self.encode(x)")}, "possible"),
    ],
)
def test_a_caller_has_to_be_seen(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    assert certainties(tmp_path, **files) == [expected]


@pytest.mark.parametrize(
    ("passed", "expected"),
    [
        ("self.encode(x) if x.ndim > 2 else x", "likely"),
        ("self.encode(x) if x.ndim > 2 else x.float()", "likely"),
        ("torch.relu(self.encode(x)) if x.ndim > 2 else torch.relu(self.known(x))", "possible"),
        ("self.encode(x) + (torch.relu(self.known(x)) if x.ndim > 2 else self.encode(x))", "possible"),
    ],
)
def test_low_precision_on_a_path_beside_one_that_nothing_is_known_of(
    tmp_path: Path, passed: str, expected: str
) -> None:
    known = "self.known = known\n        self.codebook ="
    model = MODEL.replace("(self, dim):", "(self, dim, known):").replace("self.codebook =", known)
    assert certainties(tmp_path, model=model.format(passed=passed)) == [expected]


BATCH = CODEBOOK.replace("(self, x):", "(self, x, n):").replace("x, self.codes", "{read}, self.codes")


@pytest.mark.parametrize(
    ("read", "codes"),
    [
        ("x['rows']", []),
        ("torch.cat([x['rows'], x['more']], dim=-1)", []),
        ("x[0]", ["AMP106"]),
        ("x[n['rows']]", ["AMP106"]),
        ("x", ["AMP106"]),
    ],
)
def test_what_a_mapping_holds_comes_from_a_loader(tmp_path: Path, read: str, codes: list[str]) -> None:
    path = tmp_path / "codebook.py"
    path.write_text(BATCH.format(read=read))
    assert [finding.code for finding in check_file(path, Options(RULES)).findings] == codes


@pytest.mark.parametrize(
    ("passed", "expected"), [("{{'rows': x}}", "possible"), ("{{'rows': self.encode(x)}}", "likely")]
)
def test_who_is_seen_to_put_low_precision_into_a_mapping_passes_it(tmp_path: Path, passed: str, expected: str) -> None:
    codebook = CODEBOOK.replace("x, self.codes", "x['rows'], self.codes")
    assert certainties(tmp_path, codebook=codebook, model=MODEL.format(passed=passed.format())) == [expected]


HALVED = """\
import torch
from torch import nn


class Codebook(nn.Module):
    \"""Takes rows in any dtype.\"""
    def __init__(self, dim):
        super().__init__()
        self.project = nn.Linear(dim, dim)

    def forward(self, x):
        with torch.autocast("cuda", enabled=False):
            rows = x if x.ndim > 2 else x.float()
            return self.project(rows)
"""


@pytest.mark.parametrize(("passed", "expected"), [("x.float()", "possible"), ("self.encode(x)", "likely")])
def test_float32_that_half_weights_refuse_is_no_low_precision(tmp_path: Path, passed: str, expected: str) -> None:
    assert certainties(tmp_path, codebook=HALVED, model=MODEL.format(passed=passed)) == [expected]


def in_one_file(passed: str) -> str:
    head, _, model = MODEL.format(passed=passed).partition("from .codebook import Codebook\n")
    assert CODEBOOK.startswith(head.rstrip())
    return CODEBOOK + model


def test_a_caller_of_the_same_file_is_seen(tmp_path: Path) -> None:
    assert certainties(tmp_path, codebook=in_one_file("self.encode(x)")) == ["proven"]


RAYS = """\
import torch


@torch.autocast("cuda", enabled=False)
def rays(poses, width):
    # Rays of cameras, of which a caller
    # passes the poses: in float32, or
    # in what else it has. The origins
    # are in the last column, and the
    # directions are turned
    # by the first three.

    directions = torch.linspace(0, width, 3).reshape(1, 3)
    return directions @ poses[:3, :3].transpose(-1, -2)


class Viewer:
    def __init__(self, device):
        self.device = device

    def show(self, pose):
        pose = torch.from_numpy(pose).unsqueeze(0).to(self.device)
        return rays(pose, 4)
"""


def test_a_caller_of_the_same_file_that_passes_what_is_unknown_passes_no_low_precision(tmp_path: Path) -> None:
    assert certainties(tmp_path, codebook=RAYS) == ["possible"]


@pytest.mark.parametrize(("passed", "raises"), [("x", False), ("self.encode(x)", True)])
def test_only_low_precision_raises(passed: str, raises: bool) -> None:
    namespace: dict[str, type[nn.Module]] = {}
    exec(compile(in_one_file(passed), "net.py", "exec"), namespace)
    model, x = namespace["Model"](8), torch.randn(2, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        if raises:
            with pytest.raises(RuntimeError, match=r"dtype|scalar type"):
                model(x)
        else:
            model(x)
