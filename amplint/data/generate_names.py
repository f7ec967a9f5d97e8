"""Generates ``names.json``: what the public modules of torch hold, release by release.

Usage: ``python -m amplint.data.generate_names PYTHON... [--out OUT]``, each PYTHON an interpreter with a release of
torch of its own (seconds for each; CUDA is not needed).

``releases`` are those read, that of the torch beside this generator among them. ``modules`` holds by module, and by the
first and last release that have them (``"2.3-"``; empty where all do), public names: attributes, and submodules that
can be imported, private ones too. Each release is asked for what any has, since a module may hide what it still gives.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Held = dict[str, set[str]]
    Release = tuple[int, int]

MODULES = (
    *("torch", "torch.accelerator", "torch.amp", "torch.autograd", "torch.autograd.functional", "torch.backends"),
    *("torch.autograd.function", "torch.autograd.profiler", "torch.backends.cuda"),
    *("torch.compiler", "torch.cpu", "torch.cpu.amp", "torch.cuda", "torch.cuda.amp", "torch.distributed"),
    *("torch.distributed.fsdp", "torch.distributions", "torch.fft", "torch.func", "torch.jit", "torch.linalg"),
    *("torch.mps", "torch.multiprocessing", "torch.nested", "torch.nn", "torch.nn.attention", "torch.nn.functional"),
    *("torch.nn.init", "torch.nn.parallel", "torch.nn.parameter", "torch.nn.utils", "torch.nn.utils.parametrizations"),
    *("torch.nn.utils.parametrize", "torch.nn.utils.rnn", "torch.onnx", "torch.optim", "torch.optim.lr_scheduler"),
    *("torch.profiler", "torch.quantization", "torch.random", "torch.sparse", "torch.special", "torch.testing"),
    *("torch.utils", "torch.utils.checkpoint", "torch.utils.data", "torch.utils.hooks", "torch.xpu"),
)


def held(asked: dict[str, list[str]]) -> dict[str, list[str]]:
    """The names in each module of the torch that runs this: those it shows, and of those asked for what it gives.
    Nothing but torch is needed, of any release from 1.7 on."""
    warnings.simplefilter("ignore")
    found = {}
    for module_name in MODULES:
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            continue
        names = {name for name in dir(module) if not name.startswith("_")}
        names |= {found.name for found in pkgutil.iter_modules(getattr(module, "__path__", ()))}
        names |= {name for name in asked.get(module_name, ()) if hasattr(module, name)}
        found[module_name] = sorted(names)
    return found


def read(python: str, asked: Held) -> tuple[str, Held]:
    """The release of torch that an interpreter has, and what its modules hold."""
    wanted = json.dumps({module: sorted(names) for module, names in asked.items()})
    command = [python, str(Path(__file__).resolve()), "--read"]
    done = subprocess.run(command, input=wanted, stdout=subprocess.PIPE, check=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return found["torch"], {module: set(names) for module, names in found["modules"].items()}


def release_of(text: str) -> Release:
    """The release (major, minor) of a version."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def span(name: str, found: list[tuple[str, set[str]]]) -> str:
    """The first and the last of some releases, oldest first, that have a name: ``"1.7-1.13"``, ``"2.3-"``, or nothing
    where the oldest and the newest do."""
    having = [".".join(release.split(".")[:2]) for release, names in found if name in names]
    first = having[0] if name not in found[0][1] else ""
    last = having[-1] if name not in found[-1][1] else ""
    return f"{first}-{last}" if first or last else ""


def table(reads: list[tuple[str, Held]]) -> dict[str, dict[str, str]]:
    """By module, the names by span, each list as words."""
    rows: dict[str, dict[str, str]] = {}
    for module in MODULES:
        found = [(release, held.get(module, set())) for release, held in reads]
        spans: dict[str, list[str]] = {}
        for name in sorted(set().union(*(names for _, names in found))):
            spans.setdefault(span(name, found), []).append(name)
        rows[module] = {key: " ".join(names) for key, names in sorted(spans.items())}
    return rows


def main() -> None:
    """Write the table to the path given, else beside this file; ``--read`` prints what one release holds."""
    parser = argparse.ArgumentParser(description="Collect the names in torch's public modules, by release.")
    parser.add_argument("python", nargs="*", metavar="PYTHON")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("names.json"))
    parser.add_argument("--read", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        modules = held(json.load(sys.stdin))
        torch = importlib.import_module("torch")
        found = json.dumps({"torch": torch.__version__.partition("+")[0], "modules": modules})
        sys.stdout.write(f"\n{found}\n")
        return
    pythons = [sys.executable, *options.python]
    asked: Held = {}
    for python in pythons:
        for module, names in read(python, {})[1].items():
            asked.setdefault(module, set()).update(names)
    reads = sorted((read(python, asked) for python in pythons), key=lambda each: release_of(each[0]))
    head = {"generator": f"python -m amplint.data.{Path(__file__).stem} PYTHON...", "releases": [r for r, _ in reads]}
    text = json.dumps(head | {"modules": table(reads)}, indent=1)
    options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
