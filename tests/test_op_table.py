"""The table of torch operations says what torch does.

Without autocast and under the CPU's own autocast, entries are compared with real CPU runs; for cuda, with fake tensors
on the real AutocastCUDA kernels, which is independent of the emulation that the generator measures with.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

import amplint.data  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(amplint.data.__file__).parent
TABLE = json.loads((DATA / "ops.json").read_text())
OPS: dict[str, dict[str, Any]] = TABLE["ops"]
POLICY = json.loads((DATA / "autocast_policy.json").read_text())
FULL, LOW = torch.float32, torch.bfloat16
RAISES = "raises"
RULES = {
    *("first", "self", "promote", "widest", "float", "sum", "int", "real", "float_real", "complex"),
    *("none", "bool", "default", "numbers", "each", "unknown", "py:int", "py:bool", "py:float", "py:ints", "py:number"),
}
POLICIES = {"lower", "fp32", "fp32_out", "promote", "banned"}
DEVICES = {"cuda", "cpu", "mps", "xpu"}
F = "torch.nn.functional."
same_torch = pytest.mark.skipif(
    torch.__version__.partition("+")[0] != TABLE["torch"], reason="the table was made with another torch"
)


class Case(NamedTuple):
    """A call: shapes of its floating operands (a list of shapes for a list of tensors) and its other arguments."""

    name: str
    shapes: dict[str, Any]
    others: dict[str, Any]


def case(name: str, /, _others: dict[str, Any] | None = None, **shapes: Any) -> Case:
    return Case(name, shapes, _others or {})


ROWS = torch.tensor([0, 1])
GRID = torch.zeros(2, 4, dtype=torch.long)
MASK = torch.tensor([True, False, True, False])
HEADS = (1, 2, 4, 8)
CASES = [
    case("torch.matmul", input=(3, 4), other=(4, 3)),
    case("torch.Tensor.matmul", self=(3, 4), other=(4, 3)),
    case("torch.mm", input=(3, 4), mat2=(4, 3)),
    case("torch.bmm", input=(2, 3, 4), mat2=(2, 4, 3)),
    case("torch.addmm", input=(3, 3), mat1=(3, 4), mat2=(4, 3)),
    case("torch.Tensor.addmm_", self=(3, 3), mat1=(3, 4), mat2=(4, 3)),
    case("torch.baddbmm", input=(2, 3, 3), batch1=(2, 3, 4), batch2=(2, 4, 3)),
    case("torch.mv", input=(3, 4), vec=(4,)),
    case(F + "linear", input=(2, 4), weight=(3, 4), bias=(3,)),
    case(F + "conv2d", input=(1, 2, 6, 6), weight=(3, 2, 3, 3), bias=(3,)),
    case(F + "scaled_dot_product_attention", query=HEADS, key=HEADS, value=HEADS),
    case("torch.prelu", input=(2, 3), weight=(3,)),
    case("torch.Tensor.index_add_", {"dim": 0, "index": ROWS}, self=(4, 4), source=(2, 4)),
    case("torch.Tensor.index_copy_", {"dim": 0, "index": ROWS}, self=(4, 4), source=(2, 4)),
    case("torch.Tensor.index_put_", {"indices": (ROWS,)}, self=(4, 4), values=(2, 4)),
    case("torch.Tensor.scatter_", {"dim": 0, "index": GRID}, self=(4, 4), src=(2, 4)),
    case("torch.scatter_add", {"dim": 0, "index": GRID}, input=(4, 4), src=(2, 4)),
    case("torch.Tensor.masked_scatter_", {"mask": MASK}, self=(4,), source=(4,)),
    case("torch.lerp", {}, input=(4,), end=(4,), weight=(4,)),
    case("torch.meshgrid", {"indexing": "ij"}, tensors=[(3,), (3,)]),
    case("torch.where", {"condition": MASK}, input=(4,), other=(4,)),
    case("torch.cat", tensors=[(3,), (3,)]),
    case("torch.stack", tensors=[(3,), (3,)]),
    case("torch.add", input=(4,), other=(4,)),
    case("torch.Tensor.mul_", self=(4,), other=(4,)),
    case("torch.Tensor.copy_", self=(4,), other=(4,)),
    case("torch.Tensor.type_as", self=(4,), other=(4,)),
    case("torch.addcmul", input=(4,), tensor1=(4,), tensor2=(4,)),
    case("torch.pow", input=(4,), exponent=(4,)),
    case("torch.eq", input=(4,), other=(4,)),
    case("torch.argmax", input=(4,)),
    case("torch.topk", {"k": 2}, input=(4,)),
    case("torch.max", input=(4,)),
    case("torch.exp", input=(4,)),
    case("torch.rsqrt", input=(4,)),
    case("torch.sum", input=(4,)),
    case("torch.cumsum", {"dim": 0}, input=(4,)),
    case("torch.softmax", {"dim": 0}, input=(4,)),
    case(F + "softmax", {"dim": 0}, input=(4,)),
    case("torch.Tensor.log_softmax", {"dim": 0}, self=(4,)),
    case(F + "layer_norm", {"normalized_shape": (4,)}, input=(2, 4), weight=(4,), bias=(4,)),
    case(F + "group_norm", {"num_groups": 2}, input=(2, 4, 3), weight=(4,), bias=(4,)),
    case(F + "rms_norm", {"normalized_shape": (4,)}, input=(2, 4), weight=(4,)),
    case(F + "gelu", input=(4,)),
    case(F + "mse_loss", input=(4,), target=(4,)),
    case(F + "cross_entropy", {"target": ROWS}, input=(2, 4)),
    case(F + "binary_cross_entropy", input=(4,), target=(4,)),
    case(F + "binary_cross_entropy_with_logits", input=(4,), target=(4,)),
    case(F + "interpolate", {"scale_factor": 2, "mode": "bilinear"}, input=(1, 1, 3, 3)),
    case(F + "grid_sample", {"align_corners": False}, input=(1, 2, 4, 4), grid=(1, 3, 3, 2)),
    case(F + "embedding", {"input": ROWS}, weight=(3, 4)),
    case(F + "max_pool2d", {"kernel_size": 2}, input=(1, 2, 4, 4)),
    case("torch.Tensor.chunk", {"chunks": 2}, self=(4,)),
    case("torch.Tensor.transpose", {"dim0": 0, "dim1": 1}, self=(3, 4)),
    case("torch.Tensor.item", self=(1,)),
]
#: Fake tensors reach code that a CPU build of torch lacks.
NOT_FAKE = {"torch.Tensor.copy_", "torch.Tensor.index_put_", "torch.Tensor.item", F + "grid_sample"}
Leaf = tuple[str, int]


def leaves(one: Case) -> list[Leaf]:
    """Operands, the items of a list one by one."""
    found: list[Leaf] = []
    for name, shape in one.shapes.items():
        found += [(name, i) for i in range(len(shape))] if isinstance(shape, list) else [(name, -1)]
    return found


def combinations(one: Case) -> Iterator[dict[Leaf, Any]]:
    """All wide, all narrow, and each operand unlike the others."""
    names = leaves(one)
    yield dict.fromkeys(names, FULL)
    yield dict.fromkeys(names, LOW)
    for name in names if len(names) > 1 else ():
        yield {**dict.fromkeys(names, FULL), name: LOW}
        yield {**dict.fromkeys(names, LOW), name: FULL}


def observed(one: Case, dtypes: dict[Leaf, Any], device: str = "cpu") -> Any:
    """Run the call."""
    function: Any = torch
    for part in one.name.split(".")[1:]:
        function = getattr(function, part)

    def tensor(leaf: Leaf, shape: tuple[int, ...]) -> Any:
        return (torch.rand(shape, device=device) * 0.8 + 0.1).to(dtypes[leaf])

    def moved(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(moved(item) for item in value)
        return torch.zeros(value.shape, dtype=value.dtype, device=device) if isinstance(value, torch.Tensor) else value

    args: list[Any] = []
    kwargs = {name: moved(value) for name, value in one.others.items()} if device != "cpu" else dict(one.others)
    for name, shape in one.shapes.items():
        if isinstance(shape, list):
            value: Any = [tensor((name, i), item) for i, item in enumerate(shape)]
        else:
            value = tensor((name, -1), shape)
        if name in ("self", "tensors"):
            args.append(value)
        else:
            kwargs[name] = value
    try:
        out = function(*args, **kwargs)
    except RuntimeError:
        return RAISES
    if isinstance(out, torch.Tensor):
        return out.dtype
    return [item.dtype for item in out] if isinstance(out, (tuple, list)) else "none"


def predicted(one: Case, dtypes: dict[Leaf, Any], device: str | None) -> Any:
    """What the table says about the call, read as the linter reads it."""
    entry = OPS[one.name]
    policy = entry.get("policy", {}).get(device)
    if policy == "banned":
        return RAISES
    if policy in ("lower", "fp32", "promote"):
        widest = FULL if FULL in dtypes.values() else LOW
        dtypes = dict.fromkeys(dtypes, {"lower": LOW, "fp32": FULL, "promote": widest}[policy])
    by_name: dict[str, list[Any]] = {}
    for (name, position), dtype in dtypes.items():
        by_name.setdefault(name + "*" * (position >= 0), []).append(dtype)
    for group in entry.get("strict", []):
        if len({dtype for name in group for dtype in by_name.get(name, [])}) > 1:
            return RAISES
    for wide, narrow in entry.get("one_way", []):
        if FULL in by_name.get(wide, []) and LOW in by_name.get(narrow, []):
            return RAISES
    if policy == "fp32_out":
        return FULL
    given = {*one.shapes, *one.others}
    matching = (case for case in entry.get("cases", []) if given.issuperset(case["needs"]) and "result" in case)
    return evaluate(next(matching, entry)["result"], entry["tensors"], by_name)


def evaluate(rule: Any, tensors: list[str], by_name: dict[str, list[Any]]) -> Any:
    if isinstance(rule, list):
        return [evaluate(item, tensors, by_name) for item in rule]
    if rule.endswith("*"):
        return [evaluate(rule[:-1], tensors, by_name)]
    if rule in ("first", "self"):
        return by_name[tensors[0]][0]
    if rule in ("promote", "widest", "float", "sum", "real"):
        return FULL if any(FULL in dtypes for dtypes in by_name.values()) else LOW
    if rule in by_name:
        return by_name[rule][0]
    return "none" if rule == "none" or rule.startswith("py:") else getattr(torch, rule)


def agree(expected: Any, seen: Any) -> bool:
    """A list of unfixed length is predicted by one item."""
    if isinstance(expected, list) and isinstance(seen, list):
        return all(e == s for e, s in zip(expected * len(seen) if len(expected) == 1 else expected, seen, strict=True))
    return bool(expected == seen)


def mistakes(one: Case, device: str | None, run: Any) -> list[str]:
    found = []
    for dtypes in combinations(one):
        expected, seen = predicted(one, dtypes, device), run(one, dtypes)
        if not agree(expected, seen):
            found.append(f"{dtypes}: {expected} in the table, {seen} in torch")
    return found


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_without_autocast(one: Case) -> None:
    assert not mistakes(one, None, observed)


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_under_the_autocast_of_the_cpu(one: Case) -> None:
    with torch.autocast("cpu", dtype=LOW):
        assert not mistakes(one, "cpu", observed)


@contextlib.contextmanager
def cuda_autocast() -> Iterator[None]:
    """Switch on cuda's autocast where there is no GPU."""
    before = torch.get_autocast_dtype("cuda")
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", LOW)
    torch.autocast_increment_nesting()
    try:
        yield
    finally:
        torch.autocast_decrement_nesting()
        torch.clear_autocast_cache()
        torch.set_autocast_enabled("cuda", False)
        torch.set_autocast_dtype("cuda", before)


@pytest.mark.parametrize("one", [c for c in CASES if c.name not in NOT_FAKE], ids=lambda one: one.name)
def test_under_the_autocast_of_cuda(one: Case) -> None:
    """Fake tensors do not check that operands agree, so a predicted failure is believed unless the op is banned."""
    banned = OPS[one.name].get("policy", {}).get("cuda") == "banned"

    def run(_: Case, dtypes: dict[Leaf, Any]) -> Any:
        if predicted(one, dtypes, "cuda") == RAISES and not banned:
            return RAISES
        return observed(one, dtypes, "cuda")

    with FakeTensorMode(), cuda_autocast():
        assert not mistakes(one, "cuda", run)


def test_known_policies() -> None:
    """A few facts that the linter's rules rest on."""
    attention = OPS[F + "scaled_dot_product_attention"]
    assert attention["since"] == {"cuda": "2.0", "cpu": "2.2", "mps": "2.6", "xpu": "2.4"}
    assert OPS[F + "rms_norm"]["since"]["cuda"] == "2.12"
    assert OPS[F + "interpolate"]["since"]["cuda"] == "2.4"
    assert OPS[F + "binary_cross_entropy"].get("policy", {}) == {"cuda": "banned", "cpu": "fp32", "xpu": "banned"}
    assert OPS["torch.linalg.inv"]["unsupported"]["cuda"] == ["float16", "bfloat16"]
    assert "unsupported" not in OPS["torch.linalg.matrix_power"], "only negative powers lack a kernel: that of inv"
    assert OPS["torch.cat"].get("policy", {}) == {"cpu": "promote"}
    assert OPS["torch.sum"]["dtype_arg"] == "dtype"
    assert OPS[F + "cross_entropy"]["strict_without"] == {"target": [["input", "weight"]]}
    assert POLICY["ops"]["scaled_dot_product_attention"]["cpu"] == {"policy": "lower", "since": "2.2"}


def test_in_place_forms_of_listed_operations_have_no_policy() -> None:
    for name in ("addmm_", "baddbmm_", "index_put_", "scatter_add_", "exp_", "pow_", "cumsum_", "addcmul_"):
        assert OPS[f"torch.Tensor.{name}"].get("policy", {}) == {}, name


def rule_names(rule: Any) -> Iterator[str]:
    if isinstance(rule, list):
        for item in rule:
            yield from rule_names(item)
    else:
        yield rule.removesuffix("*")


@pytest.mark.parametrize("space", ["torch.Tensor.", F, "torch.linalg.", "torch.fft.", "torch.special.", "torch."])
def test_entries_are_well_formed(space: str) -> None:
    assert sum(name.startswith(space) for name in OPS) > 15
    for name, entry in OPS.items():
        if not name.startswith(space):
            continue
        tensors = entry["tensors"]
        known = RULES | set(tensors)
        for rule in [each["result"] for each in (entry, *entry.get("cases", [])) if "result" in each]:
            for part in rule_names(rule):
                assert part in known or isinstance(getattr(torch, part, None), torch.dtype), (name, part)
        groups = [*entry.get("strict", []), *entry.get("one_way", [])]
        groups += [group for found in entry.get("strict_without", {}).values() for group in found]
        assert all(param in tensors for group in groups for param in group), name
        assert set(entry.get("policy", {})) <= DEVICES, name
        assert set(entry.get("policy", {}).values()) <= POLICIES, name
        assert set(entry.get("since", {})) <= set(entry.get("policy", {})), name
        assert all(isinstance(param, str) and param.isidentifier() for param in entry["params"]), name
        if name.startswith("torch.Tensor."):
            assert entry["params"][0] == "self", name


def test_one_operation_a_line_and_sorted() -> None:
    lines = [line for line in (DATA / "ops.json").read_text().splitlines() if line.startswith('  "')]
    names = [line.split('"')[1] for line in lines]
    assert names == sorted(OPS)


@same_torch
def test_a_sample_regenerates_to_the_same_entries(tmp_path: Path) -> None:
    names = random.Random(7).sample(sorted(OPS), 60)
    out = tmp_path / "ops.json"
    command = [sys.executable, "-m", "amplint.data.generate_ops", str(out), "--only", *names]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    again = json.loads(out.read_text())["ops"]
    assert again == {name: OPS[name] for name in names}


@same_torch
def test_policies_regenerate_to_the_same_table(tmp_path: Path) -> None:
    out = tmp_path / "policy.json"
    subprocess.run([sys.executable, "-m", "amplint.data.generate_policy", str(out)], check=True, capture_output=True)
    assert out.read_text() == (DATA / "autocast_policy.json").read_text()
