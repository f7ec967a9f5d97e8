"""What the torch operation that failed needed its operands to be, carried back to the inputs they came from."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import torch

from amplint.verify.build.reshape import resized, with_kind, with_rank
from amplint.verify.build.spec import Plan, Repair, Tensor, replaced, tensors_of
from amplint.verify.build.subscript_repair import SUBSCRIPTS, subscripts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.verify.build.searches import InputSearch
    from amplint.verify.build.trace import Failure, Trace

_BROADCAST = {
    "add", "sub", "mul", "div", "__add__", "__radd__", "__mul__", "__rmul__", "__sub__", "__rsub__", "__truediv__",
    "__rtruediv__", "__iadd__", "__imul__", "__isub__", "add_", "mul_", "sub_", "where", "masked_fill", "masked_fill_",
    "lerp", "addcmul", "copy_", "maximum", "minimum", "mse_loss", "__or__", "__and__", "__pow__", "expand_as",
    "__gt__", "__lt__", "__ge__", "__le__", "__eq__",
}  # fmt: skip
MOST_GROWN = 1_000_000
"""Elements of an input up to which it is made larger."""
_LOGICAL = {"__invert__", "bitwise_not", "__and__", "__or__", "__xor__", "bitwise_and", "bitwise_or", "__rand__"}
_MATMUL = {"matmul", "__matmul__", "bmm", "mm", "baddbmm", "__rmatmul__", "addmm"}


def from_operation(search: InputSearch, plan: Plan, trace: Trace) -> Iterator[Repair]:
    """Plans under which the failed operation of ``trace`` gets what it needs."""
    failure = trace.failure
    if failure is None:
        return
    name, text = failure.name, str(failure.error)
    first = failure.argument(0, "input")
    tensor = first if isinstance(first, torch.Tensor) else None
    if name == "linear" and tensor is not None:
        weight = failure.argument(1, "weight")
        yield from _dimension(search, plan, trace, tensor, -1, int(weight.shape[1]))
    elif name.startswith("conv") and tensor is not None:
        yield from _convolution(search, plan, trace, failure, tensor)
    elif name in ("layer_norm", "rms_norm") and tensor is not None:
        wanted = failure.argument(1, "normalized_shape")
        yield from _dimension(search, plan, trace, tensor, -1, int(wanted[-1]))
    elif name in ("group_norm", "batch_norm", "instance_norm", "prelu") and tensor is not None:
        yield from _channels(search, plan, trace, failure, tensor)
    elif name == "embedding":
        yield from _embedding(search, plan, trace, failure)
    elif name.startswith("index_"):
        yield from _positions(plan, trace, failure)
    elif name in _LOGICAL and re.search(r"[Bb]ool", text):
        came_from = {path for tensor in failure.tensors() for path in trace.origins(tensor)}
        for path in sorted(came_from & tensors_of(plan).keys()):
            yield 0.4, with_kind(plan, path, "bool", 0)
    elif name in SUBSCRIPTS:
        yield from subscripts(plan, trace, failure)
    elif name in _BROADCAST:
        yield from _broadcast(search, plan, trace, failure)
    elif name in _MATMUL:
        yield from _product(search, plan, trace, failure)
    elif name in ("cat", "stack", "concat", "hstack", "vstack"):
        yield from _broadcast(search, plan, trace, failure)
    elif name in ("view", "reshape", "unflatten", "_shape_as_tensor"):
        yield from _view(plan, trace, failure)
    elif name in ("multi_head_attention_forward", "scaled_dot_product_attention"):
        yield from _broadcast(search, plan, trace, failure)
    yield from _ranks(search, plan, trace, failure, text)


def _dimension(
    search: InputSearch, plan: Plan, trace: Trace, tensor: torch.Tensor, dim: int, want: int
) -> Iterator[Repair]:
    """Make ``tensor`` have ``want`` elements in ``dim``, through the inputs it came from."""
    if tensor.dim() == 0:
        for path in sorted(trace.origins(tensor)):
            yield from with_rank(search.module, plan, path, 2, tensor)
        return
    have = int(tensor.shape[dim])
    if have == want:
        return
    inputs = tensors_of(plan)
    origins = sorted(trace.origins(tensor) & set(inputs), key=lambda path: inputs[path].shape != tuple(tensor.shape))
    for rank, path in enumerate(origins):
        spec = inputs[path]
        cost = 0.3 + 0.3 * rank
        if spec.shape == tuple(tensor.shape):
            shape = list(spec.shape)
            shape[dim] = want
            yield cost, replaced(plan, path, spec.shaped(shape))
        for index, changed in enumerate(resized(spec, have, want)):
            yield cost + 0.2 + 0.2 * index, replaced(plan, path, changed)
        if spec.shape:
            yield cost + 1.0, replaced(plan, path, spec.shaped((*spec.shape[:-1], want)))


def _convolution(
    search: InputSearch, plan: Plan, trace: Trace, failure: Failure, tensor: torch.Tensor
) -> Iterator[Repair]:
    weight = failure.argument(1, "weight")
    transposed = "transpose" in failure.name
    groups = failure.argument(6, "groups", 1)
    channels = int(weight.shape[0]) if transposed else int(weight.shape[1]) * (groups if isinstance(groups, int) else 1)
    if tensor.dim() not in (weight.dim(), weight.dim() - 1):
        for path in sorted(trace.origins(tensor)):
            yield from with_rank(search.module, plan, path, weight.dim(), tensor)
        return
    if tensor.dim() == weight.dim() - 1:  # torch takes it as one image without a batch; a module seldom means that
        for path in sorted(trace.origins(tensor)):
            for cost, changed in with_rank(search.module, plan, path, weight.dim(), tensor):
                yield cost - 0.3, changed
    yield from _dimension(search, plan, trace, tensor, 1 - weight.dim(), channels)
    if "Kernel size can't be greater" in str(failure.error) or "smaller than kernel" in str(failure.error):
        yield from _grown(plan, trace, tensor)


def _grown(plan: Plan, trace: Trace, tensor: torch.Tensor) -> Iterator[Repair]:
    """Larger spatial sizes: the small ones first."""
    inputs = tensors_of(plan)
    for path in sorted(trace.origins(tensor) & set(inputs)):
        spec = inputs[path]
        if len(spec.shape) < 3:
            continue
        for index, least in enumerate((16, 32, 64, 128, 256)):
            shape = (*spec.shape[:2], *(max(size, least) for size in spec.shape[2:]))
            if shape != spec.shape and math.prod(shape) <= MOST_GROWN:
                yield 0.4 + 0.3 * index, replaced(plan, path, spec.shaped(shape))


def _channels(
    search: InputSearch, plan: Plan, trace: Trace, failure: Failure, tensor: torch.Tensor
) -> Iterator[Repair]:
    positions = {"group_norm": (2, "weight"), "prelu": (1, "weight"), "batch_norm": (1, "running_mean")}
    position, name = positions.get(failure.name, (1, "running_mean"))
    weight = failure.argument(position, name)
    if weight is None:
        weight = failure.argument(3, "weight")
    if isinstance(weight, torch.Tensor) and tensor.dim() > 1:
        yield from _dimension(search, plan, trace, tensor, 1, int(weight.shape[0]))


def _embedding(search: InputSearch, plan: Plan, trace: Trace, failure: Failure) -> Iterator[Repair]:
    indices, weight = failure.argument(0, "input"), failure.argument(1, "weight")
    if not isinstance(indices, torch.Tensor):
        return
    paths = sorted(trace.origins(indices) & set(tensors_of(plan)))
    together = plan
    for path in paths:
        yield 0.3, with_kind(plan, path, "long", int(weight.shape[0]))
        together = with_kind(together, path, "long", 2)
    if len(paths) > 1:  # an index calculated from several
        yield 0.3, together


def _positions(plan: Plan, trace: Trace, failure: Failure) -> Iterator[Repair]:
    """``index_add_(dim, index, source)`` and its like: one position for each slice of the source, in a vector."""
    target, dim = failure.argument(0, "self"), failure.argument(1, "dim")
    index, source = failure.argument(2, "index"), failure.argument(3, "source")
    if not (isinstance(target, torch.Tensor) and isinstance(index, torch.Tensor) and isinstance(dim, int)):
        return
    if not -target.dim() <= dim < target.dim():
        return
    size = int(target.shape[dim])
    count = int(source.shape[dim]) if isinstance(source, torch.Tensor) and source.dim() == target.dim() else 3
    inputs = tensors_of(plan)
    for path in sorted(trace.origins(index) & set(inputs)):
        yield 0.3, replaced(plan, path, Tensor((count,), "long", size))
    if isinstance(source, torch.Tensor):
        for path in sorted(trace.origins(source) & set(inputs)):
            shape = list(target.shape)
            shape[dim] = index.numel() if index.dim() == 1 else 3
            yield 0.4, replaced(plan, path, inputs[path].shaped(shape))


def _broadcast(search: InputSearch, plan: Plan, trace: Trace, failure: Failure) -> Iterator[Repair]:
    """Operands whose shapes disagree: each made to fit each other."""
    operands = failure.tensors()[:4]
    inputs = tensors_of(plan)
    for mine in operands:
        for other in operands:
            if mine is other or mine.shape == other.shape:
                continue
            paths = sorted(trace.origins(mine) & set(inputs))
            fresh = [path for path in paths if path not in trace.origins(other)] or paths
            if mine.dim() == other.dim():
                for dim in range(mine.dim()):
                    if mine.shape[dim] != other.shape[dim]:
                        yield from _dimension(search, plan, trace, mine, dim, int(other.shape[dim]))
            else:
                for have, want in zip(reversed(mine.shape), reversed(other.shape), strict=False):
                    if have != want and have != 1 and want != 1:
                        yield from _dimension(search, plan, trace, mine, -1, int(want))
                        break
                for path in fresh:
                    yield from with_rank(search.module, plan, path, other.dim(), mine)


def _product(search: InputSearch, plan: Plan, trace: Trace, failure: Failure) -> Iterator[Repair]:
    operands = failure.tensors()[-2:]
    if len(operands) < 2 or min(tensor.dim() for tensor in operands) < 2:
        for mine, other in zip(operands, reversed(operands), strict=True):
            for path in sorted(trace.origins(mine)):
                yield from with_rank(search.module, plan, path, other.dim(), mine)
        return
    left, right = operands
    yield from _dimension(search, plan, trace, left, -1, int(right.shape[-2]))
    yield from _dimension(search, plan, trace, right, -2, int(left.shape[-1]))
    if left.dim() == right.dim():
        for dim in range(left.dim() - 2):
            if left.shape[dim] != right.shape[dim]:
                yield from _dimension(search, plan, trace, left, dim, int(right.shape[dim]))
                yield from _dimension(search, plan, trace, right, dim, int(left.shape[dim]))
    else:
        for mine, other in ((left, right), (right, left)):
            for path in sorted(trace.origins(mine)):
                yield from with_rank(search.module, plan, path, other.dim(), mine)


def _view(plan: Plan, trace: Trace, failure: Failure) -> Iterator[Repair]:
    """A reshape whose sizes do not multiply to the tensor's: sizes of the inputs that make them."""
    tensor = failure.argument(0, "input")
    if not isinstance(tensor, torch.Tensor):
        return
    sizes = [int(size) for size in re.findall(r"-?\d+", str(failure.error).partition("is invalid")[0])]
    wanted = [
        size
        for argument in failure.args[1:]
        for size in (argument if isinstance(argument, (tuple, list)) else (argument,))
    ]
    known = math.prod(size for size in (wanted or sizes) if isinstance(size, int) and size > 0)
    inputs = tensors_of(plan)
    for path in sorted(trace.origins(tensor) & set(inputs)):
        spec = inputs[path]
        for dim in reversed(range(len(spec.shape))):
            size = spec.shape[dim]
            scaled = size * known / max(tensor.numel(), 1)
            for index, want in enumerate(
                dict.fromkeys((scaled, *(number for number in wanted if isinstance(number, int))))
            ):
                if want > 0 and want == int(want) and int(want) != size and want <= 8192:
                    shape = (*spec.shape[:dim], int(want), *spec.shape[dim + 1 :])
                    yield 0.7 + 0.3 * (index > 0) + 0.1 * (dim == 0), replaced(plan, path, spec.shaped(shape))


def _ranks(search: InputSearch, plan: Plan, trace: Trace, failure: Failure, text: str) -> Iterator[Repair]:
    """Messages that say how many dimensions were expected."""
    wanted: list[int] = []
    for pattern in (
        r"[Ee]xpected (\d)D(?: or (\d)D)?(?: \(\w+\) or (\d)D)?",
        r"(\d)D (?:or (\d)D )?(?:\(batch mode\) )?tensor expected",
        r"len\(dims\) = (\d)",
        r"must be (\d)-?D",
        r"[Ee]xpected (\d)-dimensional",
        r"Only (\d)D, (\d)D",
        r"expected (\d)D input",
    ):
        for match in re.finditer(pattern, text):
            wanted += [int(group) for group in match.groups() if group]
    tensors = failure.tensors()[:2]
    if re.search(r"too many indices|Dimension out of range|IndexError", text):
        wanted += [tensor.dim() + 1 for tensor in tensors[:1]]
    if re.search(r"Padding length|Dimension specified as 0 but tensor has no", text):
        wanted += [4, 5]
    if (
        re.search(r"(Kernel size|kernel size|Output size is too small|Padding size should be less|too small)", text)
        and tensors
    ):
        yield from _grown(plan, trace, tensors[0])
    for rank in sorted(set(wanted), reverse=True):
        for tensor in tensors:
            for path in sorted(trace.origins(tensor)):
                if tensor.dim() != rank:
                    yield from with_rank(search.module, plan, path, rank, tensor)
