"""AMP102: upcasts that autocast undoes where nobody enters autocast, or where nothing is left of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amplint.engine import Options, check_file
from amplint.finding import Certainty
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP102")
OPTIONS = Options(RULES, DEFAULT_SCENARIOS, "cuda", (2, 13), pedantic=True)
HEAD = "import unittest\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"


def certainties(tmp_path: Path, code: str) -> list[Certainty]:
    source = Source(tmp_path / "module.py", (HEAD + code).encode())
    return [finding.certainty for finding in check_file(source, OPTIONS).findings]


REFERENCE = """\
class {name}({base}):
    def reference(self, q: torch.Tensor, k: torch.Tensor):
        scores = q.float() @ k.float().T
        return scores.softmax(dim=-1)

    def test_kernel(self):
        q, k = torch.randn(4, 8), torch.randn(4, 8)
        {statement}
        torch.testing.assert_close(self.reference(q, k), kernel(q, k))
"""


@pytest.mark.parametrize(
    ("name", "base", "statement", "expected"),
    [
        ("Kernels", "unittest.TestCase", "pass", Certainty.POSSIBLE),
        ("TestKernels", "", "pass", Certainty.POSSIBLE),
        ("TestKernels", "nn.Module", "pass", Certainty.LIKELY),
        ("Kernels", "", "pass", Certainty.LIKELY),
        ("Kernels", "unittest.TestCase", "region = torch.autocast('cuda')", Certainty.LIKELY),
    ],
)
def test_a_test_runner_enters_no_autocast(
    name: str, base: str, statement: str, expected: Certainty, tmp_path: Path
) -> None:
    assert certainties(tmp_path, REFERENCE.format(name=name, base=base, statement=statement)) == [expected]


HELPER = """\
def {name}(q: torch.Tensor, k: torch.Tensor):
    return (q.float() @ k.float().T).softmax(dim=-1)


def {user}(q, k):
    expected = {name}(q, k)
    {check}
"""


@pytest.mark.parametrize(
    ("name", "user", "check", "expected"),
    [
        ("_reference", "test_kernel", "assert torch.equal(kernel(q, k), expected)", Certainty.POSSIBLE),
        ("reference", "test_kernel", "assert torch.equal(kernel(q, k), expected)", Certainty.LIKELY),
        ("_reference", "attend", "assert torch.equal(kernel(q, k), expected)", Certainty.LIKELY),
        ("_reference", "test_epoch", "return expected", Certainty.LIKELY),
    ],
)
def test_a_private_function_that_only_tests_call(
    name: str, user: str, check: str, expected: Certainty, tmp_path: Path
) -> None:
    assert certainties(tmp_path, HELPER.format(name=name, user=user, check=check)) == [expected]


FUSED = """\
class Fused(nn.Linear):
    def {method}(self, up: torch.Tensor, down: torch.Tensor):
        merged = self.weight.float() + torch.mm(up.float(), down.float())
        {result}
        return merged

    def forward(self, x):
        {called}
        return super().forward(x)
"""


@pytest.mark.parametrize(
    ("method", "result", "called", "expected"),
    [
        ("fuse", "self.weight.data = merged", "pass", Certainty.POSSIBLE),
        ("fuse", "self.weight.data[:] = merged", "pass", Certainty.POSSIBLE),
        ("fuse", "self.merged = merged", "pass", Certainty.LIKELY),
        ("fuse", "self.weight.data = merged", "self.fuse(self.up, self.down)", Certainty.LIKELY),
    ],
)
def test_weights_are_overwritten_between_forward_passes(
    method: str, result: str, called: str, expected: Certainty, tmp_path: Path
) -> None:
    assert certainties(tmp_path, FUSED.format(method=method, result=result, called=called)) == [expected]


RESULT = """\
class Pool(nn.Module):
    def forward(self, x: torch.Tensor, weights: torch.Tensor):
        dtype = x.dtype
        {statements}
"""


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["return (weights.float() @ x.float()).to(x.dtype)"], Certainty.POSSIBLE),
        (["return torch.matmul(weights.float(), x.float()).squeeze(-1)[0].to(dtype=dtype)"], Certainty.POSSIBLE),
        (["y = weights.float() @ x.float()", "n = x.sum()", "return y.type_as(x), n"], Certainty.POSSIBLE),
        (["return (weights.float() @ x.float()).to(torch.float64)"], Certainty.LIKELY),
        (["y = weights.float() @ x.float()", "z = y.exp()", "return y.type_as(x), z"], Certainty.LIKELY),
        (["return (weights.float() @ x.float()) > 0"], Certainty.POSSIBLE),
        (["return (weights.float() @ x.float()) > 0.5"], Certainty.LIKELY),
        (["x = F.conv1d(x.float(), weights.float())", "x = x != 0", "return x"], Certainty.POSSIBLE),
        (["x = F.conv1d(x.float(), weights.float())", "y = x != 0", "return x, y"], Certainty.LIKELY),
    ],
)
def test_a_result_that_keeps_nothing_of_float32(statements: list[str], expected: Certainty, tmp_path: Path) -> None:
    assert certainties(tmp_path, RESULT.format(statements="\n        ".join(statements))) == [expected]


def test_memory_of_an_array_is_on_the_host(tmp_path: Path) -> None:
    code = """\
def _inverse(pose: torch.Tensor):
    rows = pose[..., :3, :3].float()
    return -rows @ pose[..., :3, 3:].float()


def relative(poses):
    poses = torch.from_numpy(poses).float()
    return torch.matmul(_inverse(poses[:1]).float(), poses[1:])
"""
    assert certainties(tmp_path, code) == []
    assert certainties(tmp_path, code.replace("torch.from_numpy(poses)", "poses")) == [Certainty.LIKELY] * 2


MASKS = """\
def masks(coefficients: torch.Tensor, prototypes):
    {statement}
    return coefficients @ {prototypes}
"""


@pytest.mark.parametrize(
    ("statement", "prototypes", "expected"),
    [
        ("pass", "prototypes.float()", Certainty.POSSIBLE),
        ("coefficients = coefficients.half()", "prototypes.float()", Certainty.LIKELY),
        ("prototypes = prototypes.float()", "prototypes", Certainty.LIKELY),
    ],
)
def test_an_argument_is_cast_up_to_meet_another(
    statement: str, prototypes: str, expected: Certainty, tmp_path: Path
) -> None:
    assert certainties(tmp_path, MASKS.format(statement=statement, prototypes=prototypes)) == [expected]


EIGENS = """\
def eigenvectors({parameters}):
    weight = layer.weight.data.float()
    return torch.linalg.eigh(weight @ weight.T)
"""


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("layer: nn.Module, rank: int", Certainty.POSSIBLE),
        ("layer: nn.Module, x: torch.Tensor", Certainty.LIKELY),
    ],
)
def test_the_weights_of_a_module_are_prepared_at_any_time(parameters: str, expected: Certainty, tmp_path: Path) -> None:
    assert certainties(tmp_path, EIGENS.format(parameters=parameters)) == [expected]


ENCODER = """\
import torch


def encode(x: torch.Tensor):
    return x.to(torch.float32)
"""
SIMILARITY = """\
import torch

from encoder import encode


def similarity(x: torch.Tensor, y: torch.Tensor):
    x, y = {x}, {y}
    return x @ y.T
"""


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [("encode(x)", "encode(y)", Certainty.POSSIBLE), ("encode(x)", "y.float()", Certainty.LIKELY)],
)
def test_another_file_casts_up(x: str, y: str, expected: Certainty, tmp_path: Path) -> None:
    (tmp_path / "encoder.py").write_text(ENCODER)
    source = Source(tmp_path / "module.py", SIMILARITY.format(x=x, y=y).encode())
    (finding,) = check_file(source, OPTIONS).findings
    assert finding.certainty is expected
