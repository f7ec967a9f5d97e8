"""Generates ``autocast_policy.json``: the autocast policy of every aten overload, by device.

Usage: ``python -m amplint.data.generate_policy [OUT]`` (about ten seconds).

Two independent sources in the installed torch are read and compared:

* the template names ``WrapFunction_<CastPolicy, DeviceType, ..., &at::_ops::OP::call>`` inside libtorch_cpu, which
  exist for every device, and
* the dispatcher: an overload with an ``AutocastCUDA`` or ``AutocastCPU`` kernel is called with arguments made up from
  its schema, below a mode that records the casts and stops at the first other operation.  Autocast casts before an
  operation looks at its arguments, so they need not be valid.

``since`` is the first of the releases listed in ``policy_history.json`` (read the same way from released wheels) from
which on the policy has been what it is now; it is left out where the oldest release on record already had it.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import mmap
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

HERE = Path(__file__).parent
DEVICES = {"cuda": "AutocastCUDA", "cpu": "AutocastCPU", "mps": "AutocastMPS", "xpu": "AutocastXPU"}
DEVICE_NUMBERS = {0: "cpu", 1: "cuda", 12: "xpu", 13: "mps"}
POLICIES = ("lower", "fp32", "fp32_set_opt_dtype", "fp32_append_dtype", "promote")
INTEGER_ARGUMENTS = {"indices", "index", "target", "input_lengths", "target_lengths"}
MADE_UP: dict[str, Any] = {"int": 0, "SymInt": 0, "float": 2.0, "number": 2.0, "Scalar": 2.0, "bool": False}
MADE_UP |= {"List[int]": [1, 1], "List[SymInt]": [1, 1], "List[float]": [1.0, 1.0], "List[bool]": [False]}
SYMBOL = re.compile(rb"WrapFunction_ILNS0_10CastPolicyE(\d)ELN3c1010DeviceTypeE(\d+)E[\x21-\x7e]*")
#: `at::norm` is wrapped as a plain function, so the template name holds no overload.
NORM_OVERLOADS = {"norm(opt_p)": "norm.Scalar", "norm(opt_p,dim)": "norm.ScalarOpt_dim"}


class _Stop(Exception):
    """Raised at the first operation that is not a cast."""


class _CastRecorder(TorchDispatchMode):
    """Records the casts autocast makes and the dtype argument of the operation below it."""

    def __init__(self) -> None:
        TorchDispatchMode.__init__(self)
        self.casts: list[tuple[torch.dtype, torch.dtype | None]] = []
        self.dtype_argument: torch.dtype | None = None
        self.reached = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten._to_copy.default:
            self.casts.append((args[0].dtype, kwargs.get("dtype")))
            return func(*args, **kwargs)
        if func.namespace == "prim":
            return func(*args, **kwargs)
        self.reached = str(func)
        values = [*kwargs.values(), *args]
        self.dtype_argument = next((value for value in values if isinstance(value, torch.dtype)), None)
        raise _Stop


@contextlib.contextmanager
def _autocast(device: str, dtype: torch.dtype) -> Iterator[None]:
    """Switch autocast on for a device that need not be present."""
    enabled, previous = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    torch.set_autocast_enabled(device, True)
    torch.set_autocast_dtype(device, dtype)
    torch.autocast_increment_nesting()
    try:
        yield
    finally:
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, previous)


def _made_up(argument: Any, tensor: Callable[[str], torch.Tensor]) -> Any:
    """A value of the argument's schema type."""
    kind = str(argument.type)
    if kind in ("Tensor", "Optional[Tensor]"):
        return tensor(argument.name)
    if kind == "List[Tensor]":
        return [tensor("first"), tensor("second")]
    if kind == "List[Optional[Tensor]]":
        return [tensor("indices")]
    if argument.has_default_value():
        return argument.default_value
    if kind == "str":
        return "ij,jk->ik" if argument.name == "equation" else "fro"
    return MADE_UP.get(kind)


def _probe(overload: Any, device: str, dtypes: Iterable[torch.dtype]) -> tuple[_CastRecorder, str]:
    """Call the overload with tensors of the given dtypes in turn; the casts, and the error text if any."""
    turn = iter(dtypes)

    def tensor(name: str) -> torch.Tensor:
        dtype = torch.long if name in INTEGER_ARGUMENTS else next(turn)
        return torch.ones(2, 2, dtype=dtype, device=device)

    arguments = [(a, _made_up(a, tensor)) for a in overload._schema.arguments]
    recorder, error = _CastRecorder(), ""
    with _autocast(device, torch.bfloat16), recorder:
        try:
            overload(
                *[value for a, value in arguments if not a.kwarg_only],
                **{a.name: value for a, value in arguments if a.kwarg_only},
            )
        except _Stop:
            pass
        except Exception as raised:
            error = str(raised)
    return recorder, error


def _classify(overload: Any, device: str) -> str | None:
    """The policy seen from outside, or None where the made-up call shows nothing."""
    full, low = torch.float32, torch.bfloat16
    all_full, error = _probe(overload, device, itertools.repeat(full))
    all_low, _ = _probe(overload, device, itertools.repeat(low))
    mixed, _ = _probe(overload, device, itertools.cycle([full, low]))
    if "unsafe to autocast" in error:
        return "banned"
    if (full, low) in all_full.casts:
        return "lower"
    if (low, full) in all_low.casts:
        return "fp32"
    if all_low.dtype_argument is full:
        return "fp32_append_dtype" if "norm." in all_low.reached else "fp32_set_opt_dtype"
    return "promote" if (low, full) in mixed.casts else None


def _overload(name: str) -> Any:
    base, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, base, None)
    return getattr(packet, overload or "default", None)


def _registered(device: str) -> list[str]:
    """Names (``base.overload``, without namespace) that have an autocast kernel for the device."""
    key = DEVICES[device]
    names = sorted(name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::"))
    found = [name for name in names if torch._C._dispatch_has_kernel_for_dispatch_key(name, key)]
    return [name.removeprefix("aten::") for name in found]


def probed() -> dict[str, dict[str, str]]:
    """Policies by overload and device, from the dispatcher: CPU as it is, CUDA through fake tensors."""
    table: dict[str, dict[str, str]] = {}
    for device in ("cuda", "cpu"):
        mode = FakeTensorMode(allow_non_fake_inputs=True) if device == "cuda" else contextlib.nullcontext()
        with mode:
            for name in _registered(device):
                overload = _overload(name)
                policy = _classify(overload, device) if overload is not None else None
                if policy:
                    table.setdefault(name, {})[device] = policy
    return table


def _symbol_name(text: str, end: int) -> str:
    """The operation named in one mangled template name."""
    at = text.find("_ops", end)
    if at >= 0:
        length = re.match(r"\d+", text[at + 4 :])
        assert length
        start = at + 4 + length.end()
        return text[start : start + int(length[0])]
    function = re.search(r"XadL_ZNS_(\d+)", text)
    assert function
    name = text[function.end() : function.end() + int(function[1])]
    if "ArrayRef" not in text[end:]:
        return name + "(opt_p)"
    return name + ("(dim,names)" if "Dimname" in text[end : function.start()] else "(opt_p,dim)")


def symbols() -> dict[str, dict[str, str]]:
    """Policies by device and symbol name, from the template names inside libtorch_cpu."""
    folder = Path(torch.__file__).parent / "lib"
    library = next(p for p in folder.iterdir() if re.fullmatch(r"(lib)?torch_cpu\.(so|dylib|dll)", p.name))
    table: dict[str, dict[str, str]] = {}
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for match in SYMBOL.finditer(data):
            device = DEVICE_NUMBERS.get(int(match[2]))
            if device:
                name = _symbol_name(match[0].decode(), match.end(2) - match.start())
                table.setdefault(device, {})[name] = POLICIES[int(match[1])]
    return table


def _flat(name: str) -> str:
    """The symbol name of an overload: ``sum.dim_IntList`` is ``sum_dim_IntList``."""
    return next((symbol for symbol, full in NORM_OVERLOADS.items() if full == name), name.replace(".", "_"))


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


def _since(history: dict[str, Any], device: str, name: str, policy: str) -> str | None:
    """First release on record from which the policy has held without a break, None if it always has."""
    current = _version(torch.__version__)
    releases = [v for v in history["releases"] if _version(v) <= current]
    spans: dict[str, list[list[str | None]]] = history["devices"].get(device, {})
    held = [span for span in spans.get(_flat(name), []) if span[0] == policy]
    if not held or policy == "banned":
        return None
    first = held[-1][1]
    oldest = releases[0]
    base = name.partition(".")[0]
    before_overloads = [span for span in spans.get(base, []) if span[0] == policy and span[1] == oldest]
    if first == oldest or (before_overloads and first == releases[1]):
        return None
    return first


def generate() -> dict[str, Any]:
    """The whole table; where the two sources disagree on more than the kind of float32, says so on stderr."""
    history = json.loads((HERE / "policy_history.json").read_text())
    from_symbols, from_probe = symbols(), probed()
    table: dict[str, dict[str, dict[str, str]]] = {}
    differing: list[str] = []
    for device in DEVICES:
        for name in _registered(device):
            policy = from_symbols[device].get(_flat(name))
            seen = from_probe.get(name, {}).get(device)
            if policy and seen and policy[:4] != seen[:4]:
                differing.append(f"{name} on {device}: {policy} by symbol, {seen} by probe")
            policy = policy or seen or from_probe.get(name, {}).get("cuda")
            if policy is None:
                differing.append(f"{name} on {device}: policy unknown")
                continue
            since = _since(history, device, name, policy)
            table.setdefault(name, {})[device] = {"policy": policy, **({"since": since} if since else {})}
    for line in differing:
        print(line, file=sys.stderr)
    version = torch.__version__.partition("+")[0]
    return {"torch": version, "generator": "python -m amplint.data.generate_policy", "ops": table}


def dump(table: dict[str, Any], path: Path) -> None:
    """Write a table with one operation a line, sorted, so that differences can be read."""
    head = {key: value for key, value in table.items() if key != "ops"}
    lines = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(table["ops"].items())]
    top = "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items())
    path.write_text("{\n" + top + ' "ops": {\n' + ",\n".join(lines) + "\n }\n}\n")


def write(generate: Callable[[frozenset[str]], dict[str, Any]], path: Path, about: str) -> None:
    """Run a generator as its command line asks: OUT, else ``path``, is where to, ``--only`` names entries."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("out", nargs="?", type=Path, default=path)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    options = parser.parse_args()
    dump(generate(frozenset(options.only)), options.out)


def main() -> None:
    """Write the table to the path given, else beside this file."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "autocast_policy.json"
    table = generate()
    dump(table, out)
    print(f"{len(table['ops'])} overloads in {out}", file=sys.stderr)


if __name__ == "__main__":
    main()
