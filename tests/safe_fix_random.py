"""Random small programs with what rules mend safely, run before and after ``--fix`` and compared bit by bit.

``python tests/safe_fix_random.py CODE=EXAMPLES...`` does it under CUDA's policy (emulated, so in a process of its own),
prints by code how many programs were mended and how many of their results compared and cured, and ends with status 1
where a program that ran before gives anything else after its fix.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import warnings
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from amplint.cli.main import main as command
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
DTYPES = (*((dtype, dtype) for dtype in FLOATS), (torch.float32, torch.bfloat16), (torch.float16, torch.float32))
"""Of the parameters, and of the input."""
STATES = (None, torch.float16, torch.bfloat16)

_HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn
"""
_BLOCK = """

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.conv = nn.Conv1d(4, 4, 1)
        self.register_buffer("table", torch.zeros(4, 4))

    def forward(self, x: torch.Tensor, ids: torch.Tensor, keep: torch.Tensor, extra=None):
"""
_ACTIVATIONS = ("x", "self.proj(x)", "self.norm(x)", "x * 2", "x.exp()", "x.softmax(-1)", "x.t()", "self.proj.weight")
_CASTS = ("x.float()", "x.half()", "x.bfloat16()", "x.double()", "self.proj(x.to(self.proj.weight.dtype))")
_MADE = ("torch.ones(4, 4)", "torch.eye(4)", "torch.tensor(1.5, dtype=torch.float64)", "torch.full((4, 4), 1e38)")
_OPEN = ("x if keep.any() else self.proj(x)", "x.sum() if keep.any() else 2.5", "ids[:, None].expand(4, 4)", "extra")
_WRITTEN = (
    *("torch.zeros(4, 4)", "torch.zeros(4, 4, dtype=torch.float16)", "torch.zeros(4, 4, dtype=torch.float64)"),
    *("torch.zeros_like(x)", "x.new_zeros(4, 4)", "self.table", "self.table.clone()", "x.clone()", "self.proj(x)"),
    *("self.norm(x) + 1", "torch.empty_like(self.proj(x)).fill_(1)", "torch.ones(4, 4) if keep.any() else x.clone()"),
    *("torch.zeros(4, 4, dtype=self.proj.weight.dtype)", "torch.zeros(4, 4, dtype=torch.long)"),
)
_INDEX_WRITES = (
    *("out[ids] = value", "out[keep] = value[keep]", "out[:, ids] = value", "out[ids, 0] = value[:, 0]"),
    *("out[keep] = value.sum()", "out[ids] = value + 1", "out[ids] += value", "out[ids[0]] = value[0]"),
    *("out.index_add_(0, ids, value)", "out.index_add_(dim=0, index=ids, source=value, alpha=2)"),
    *("out.index_copy_(0, ids, value)", "out.index_put_((ids,), value, accumulate=True)", "out.put_(ids, value[0])"),
    *("out.index_put_((keep,), value.sum())", "out.masked_scatter_(keep, value)"),
    *("out.scatter_(0, keep.long(), value)", "out.scatter_add_(0, keep.long(), value)"),
    *("out.scatter_(0, keep.long(), value, reduce='add')", "out.scatter_reduce_(0, keep.long(), value, 'amax')"),
    *("out = out.index_add(0, ids, value)", "out = torch.scatter(out, 0, keep.long(), value)"),
    *("out = out.masked_scatter(keep, value)", "out.index_reduce_(0, ids, value, 'mean')"),
)
_OUT_WRITES = (
    *("out.addmm_(a, b)", "out.addmm_(a, b, beta=0.5, alpha=2)", "torch.mm(a, b, out=out)"),
    *("torch.addmm(out, a, b, out=out)", "torch.addmm(x, a, b, out=out)", "torch.matmul(a, b, out=out)"),
    *("out[0].addmv_(a, b[0])", "torch.mv(a, b[0], out=out[0])", "torch.addmv(out[0], a, b[0], out=out[1])"),
    *("out[None].baddbmm_(a[None], b[None])", "torch.bmm(a[None], b[None], out=out[None])"),
    *("out.addbmm_(a[None], b[None])", "torch.baddbmm(out[None], a[None], b[None], out=out[None])"),
    *("out.addr_(a[0], b[0])", "torch.addmm(input=out, mat1=a, mat2=b, out=extra)", "out.addmm_(a.T, b[:, :4])"),
)
_MAKERS = ("torch.zeros(4, 4)", "torch.ones(4, 4)", "torch.eye(4)", "torch.full((4, 4), 0.1)", "torch.randn(4, 4)")
_TURNS = ("", "[:, :4]", ".view(4, 4)", ".t()", ".expand(4, 4)", " * 0.1", ".to(x.device)")
_MEETINGS = (
    *("x @ made", "torch.mm(made, x)", "F.linear(x, made)", "torch.addmm(made, x, x)", "self.conv(made[None])"),
    *("torch.einsum('ij,jk->ik', x, made)", "torch.lerp(made, x, 0.5)", "torch.bmm(x[None], made[None])"),
    *("self.proj(x) @ made", "(x @ made) + made", "torch.addmv(made[0], x, made[1])", "self.proj(made)"),
    *("torch.dot(x[0], made[0])", "torch.outer(x[0], made[0]) + x @ made", "F.bilinear(x, made, made[None])"),
)
_CONSTANTS = (
    "-1e9",
    "1e9",
    "-65505.0",
    "-1e38",
    "-3.4e38",
    "torch.finfo(torch.float32).min",
    "LOWEST",
    "-6e4",
    "2**17",
)
_FILLS = (
    *("scores.masked_fill(keep, {})", "torch.masked_fill(scores, keep, value={})", "torch.full_like(scores, {})"),
    *("scores.clone().masked_fill_(keep, {})", "scores.new_full((2,), {})", "scores.clamp(min={})"),
    *("torch.full((2, 2), {}, dtype=scores.dtype)", "F.pad(scores, (1, 1), value={})", "scores.clone().fill_({})"),
    *("torch.where(keep, scores, {})", "scores.masked_fill(keep, {}).softmax(-1)", "scores + (1 - keep.int()) * {}"),
)
_SCORES = ("x @ x.mT", "self.proj(x)", "x", "x.float()", "(x @ x.mT).softmax(-1)", "x.to(self.proj.weight.dtype)")

_FUNCTION = """

class Product(torch.autograd.Function):
    @staticmethod
{forward}    def forward(ctx, x, weight):
        ctx.save_for_backward(x, {saved})
        return {result}

    @staticmethod
{backward}    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = {grad_x}
        grad_weight = {grad_weight}
        return grad_x{back}, grad_weight
"""
_DECORATORS = ("", '    @torch.amp.custom_{}(device_type="cuda")\n')
_CASTING = '    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)\n'
_RESULTS = (
    *(
        "x @ weight",
        "torch.mm(x, weight.to(x.dtype))",
        "x.float() @ weight.float()",
        "(x.float() @ weight.float()).half()",
    ),
    *("F.linear(x, weight)", "torch.mm(x.to(weight.dtype), weight)", "x @ weight.to(x)", "(x * weight).to(x.dtype)"),
)
_GRADIENTS = (
    *("grad_output @ weight.t()", "grad_output.mm(weight)", "torch.mm(grad_output, weight.float())"),
    *("torch.addmm(x, grad_output, weight)", "torch.zeros_like(x).addmm_(grad_output, weight)", "x.t() @ grad_output"),
    *(
        "torch.matmul(weight.to(torch.float32), grad_output)",
        "grad_output.to(weight.dtype) @ weight",
        "F.linear(grad_output, x)",
    ),
    *(
        "(grad_output * 2) @ weight",
        "grad_output @ (weight if x.any() else x)",
        "torch.einsum('ij,jk->ik', grad_output, x)",
    ),
)

_MISSING = ("@{}", "@{}()", '@{}("cuda")', "@{}(cast_inputs=torch.float32)")
_LEGACY_IMPORTS = (
    *("from torch.cuda.amp import autocast", "from torch.cuda.amp import autocast as cast, custom_fwd, custom_bwd"),
    *("import torch.cuda.amp as amp", "from torch.cuda import amp", "import torch.cuda.amp", "import torch as t"),
)
_SPELLINGS = ("autocast", "cast", "amp.autocast", "amp.autocast", "torch.cuda.amp.autocast", "t.cuda.amp.autocast")
_REGIONS = (
    *("", "True", "False", "keep.any()", "True, torch.bfloat16", "dtype=torch.bfloat16", "enabled=x.is_cuda"),
    *("False, cache_enabled=False", "not False,", "(True), (x.dtype)", "cache_enabled=False, enabled=True"),
    *("dtype=torch.get_autocast_gpu_dtype()", "enabled=torch.is_autocast_enabled(), dtype=torch.float16"),
)
_INSIDE = ("self.proj(x)", "x @ x.t()", "self.norm(x)", "self.proj(x) + x.float()", "x.exp().sum(0, keepdim=True)")


def _block(*lines: str) -> str:
    return _BLOCK + "".join(f"        {line}\n" for line in lines)


def _of(*choices: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.tuples(*map(st.sampled_from, choices))


def _index_writes() -> st.SearchStrategy[str]:
    sources = (*_ACTIVATIONS, *_CASTS, *_MADE, *_OPEN)
    return _of(_WRITTEN, sources, _INDEX_WRITES).map(
        lambda drawn: _HEAD + _block(f"out = {drawn[0]}", f"value = {drawn[1]}", drawn[2], "return out")
    )


def _out_writes() -> st.SearchStrategy[str]:
    def text(drawn: tuple[str, ...]) -> str:
        out, a, b, write = drawn
        return _HEAD + _block("with torch.no_grad():", f"    out, a, b = {out}, {a}, {b}", f"    {write}", "return out")

    operands = (*_ACTIVATIONS, *_CASTS, "torch.eye(4)")
    return _of((*_WRITTEN, "extra"), operands, operands, _OUT_WRITES).map(text)


def _constants() -> st.SearchStrategy[str]:
    def text(drawn: tuple[str, ...]) -> str:
        return _HEAD + _block(f"made = {drawn[0]}{drawn[1]}", f"x = {drawn[2]}", f"return {drawn[3]}")

    return _of(_MAKERS, _TURNS, ("x", "x", "self.proj(x)", "x.half()"), _MEETINGS).map(text)


def _overflowing() -> st.SearchStrategy[str]:
    def text(drawn: tuple[str, ...]) -> str:
        scores, fill, constant = drawn
        return f"{_HEAD}\nLOWEST = -1e9\n" + _block(f"scores = {scores}", f"return {fill.format(constant)}")

    return _of(_SCORES, _FILLS, _CONSTANTS).map(text)


def _function(forward: str, backward: str, saved: str, result: str, grads: tuple[str, str], back: str) -> str:
    function = _FUNCTION.format(
        forward=forward, backward=backward, saved=saved, result=result, grad_x=grads[0], grad_weight=grads[1], back=back
    )
    return _HEAD + function + _block("return Product.apply(x, self.proj.weight)")


def _gradients() -> st.SearchStrategy[str]:
    def text(drawn: tuple[str, ...]) -> str:
        forward, backward, saved, result, grad_x, grad_weight, back = drawn
        forward, backward = forward.format("fwd"), backward.format("bwd")
        return _function(forward, backward, saved, result, (grad_x, grad_weight), back)

    saved = ("weight", "weight", "weight.float()", "weight.to(x.dtype)", "(weight * 8).to(torch.int8)")
    backs = ("", ".to(x.dtype)", ".to(weight.dtype)")
    forwards = (*_DECORATORS, _CASTING)
    return _of(forwards, _DECORATORS, saved, _RESULTS, _GRADIENTS, _GRADIENTS, backs).map(text)


def _without_device() -> st.SearchStrategy[str]:
    def text(drawn: tuple[str, ...]) -> str:
        forward, backward, result = drawn
        forward, backward = forward.format("torch.amp.custom_fwd"), backward.format("torch.amp.custom_bwd")
        grads = ("grad_output @ weight.t()", "x.t() @ grad_output")
        return _function(f"    {forward}\n", f"    {backward}\n", "weight", result, grads, "")

    return _of(_MISSING, _MISSING[:3], _RESULTS).map(text)


def _legacy() -> st.SearchStrategy[str]:
    def text(drawn: tuple[tuple[str, str], str, str, str, str]) -> str:
        (imported, spelled), outer, inner, first, second = drawn
        body = _block(
            f"with {spelled}({outer}):",
            f"    y = {first}",
            f"    with {spelled}({inner}):",
            f"        z = {second}",
            f"    @{spelled}({inner if 'x' not in inner else ''})",
            "    def again():",
            f"        return {second}",
            "    return y, z, again()",
        )
        return f"{_HEAD}{imported}\n{body}"

    pairs = st.sampled_from(list(zip(_LEGACY_IMPORTS, _SPELLINGS, strict=True)))
    choices = [st.sampled_from(_REGIONS), st.sampled_from(_REGIONS), st.sampled_from(_INSIDE), st.sampled_from(_INSIDE)]
    return st.tuples(pairs, *choices).map(text)


PROGRAMS = {
    "AMP103": _constants(),
    "AMP105": _index_writes(),
    "AMP107": _out_writes(),
    "AMP203": _without_device(),
    "AMP204": _gradients(),
    "AMP301": _overflowing(),
    "AMP601": _legacy(),
}
"""By code of the rule that mends something in them: the source of a module ``Block``."""


@dataclass
class Tally:
    """How many programs a safe fix changed, how many of their results it left as they were, how many runs it cured."""

    same: int = 0
    cured: int = 0
    mended: set[str] = field(default_factory=set)


def mended(text: str, code: str, device: str) -> str:
    """The source after the command's ``--fix`` with one rule, in scenarios that are meant everywhere."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "block.py")
        path.write_text(text)
        arguments = ("check", str(path), "--fix", "--isolated", "--select", code, "--device", device, "--no-cache")
        named = ("--scenario", ",".join(scenario.name for scenario in DEFAULT_SCENARIOS))
        result = CliRunner().invoke(command, (*arguments, *named))
        assert result.exit_code in (0, 1), f"{text}{result.output}"
        return path.read_text()


def check(text: str, code: str, device: str, tally: Tally) -> None:
    """Fails where a program ran and its mended form gives another bit, another dtype or an error."""
    after = mended(text, code, device)
    if after == text or text in tally.mended:
        return
    tally.mended.add(text)
    for (parameters, inputs), state in itertools.product(DTYPES, STATES):
        old, new = (outcome(source, device, parameters, inputs, state) for source in (text, after))
        tally.cured += len(old) < len(new)
        for name, value in old.items():
            tally.same += 1
            where = f"{name} with {parameters} parameters, {inputs} input, autocast {state}:\n{text}\nmended\n{after}"
            assert new.get(name) == value, where


def outcome(
    source: str, device: str, parameters: torch.dtype, inputs: torch.dtype, state: torch.dtype | None
) -> dict[str, object]:
    """The bits of the results, of the buffers and of the gradients; less of it from where the program raises."""
    found: dict[str, object] = {}
    namespace: dict[str, Any] = {"__name__": "block"}
    torch.manual_seed(0)
    try:
        exec(compile(source, "block.py", "exec"), namespace)
        block = namespace["Block"]().to(parameters)
        x = (torch.randn(4, 4, dtype=torch.float64) * 3).to(inputs).requires_grad_()
        ids, keep = torch.tensor([2, 0, 3, 1]), torch.eye(4).roll(1, 0) > 0
        with torch.autocast(device, dtype=state) if state is not None else nullcontext():
            results = block(x, ids, keep)
        results = results if isinstance(results, tuple) else (results,)
        found["results"] = [bits(result) for result in results]
        found["buffers"] = [bits(buffer) for buffer in block.buffers()]
        sum(result.double().sum() for result in results).backward()
        found["gradients"] = [bits(leaf.grad) for leaf in (x, *block.parameters())]
    except (RuntimeError, TypeError, AttributeError, IndexError, ValueError):
        pass
    return found


def bits(tensor: Tensor | None) -> object:
    """A tensor's dtype, shape and bytes."""
    if tensor is None:
        return None
    return tensor.dtype, tuple(tensor.shape), tensor.detach().contiguous().flatten().view(torch.uint8).tolist()


def run(code: str, device: str, examples: int) -> Tally:
    """Check that many random programs of one rule."""
    tally = Tally()

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(PROGRAMS[code])
    def every(text: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(text, code, device, tally)

    every()
    return tally


def main() -> int:
    from amplint.emulation import emulated

    with emulated("cuda"):
        for argument in sys.argv[1:]:
            code, _, examples = argument.partition("=")
            tally = run(code, "cuda", int(examples))
            print(code, len(tally.mended), tally.same, tally.cured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
