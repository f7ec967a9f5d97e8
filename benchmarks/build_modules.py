"""How many of a library's module classes are built and run from nothing but the class?

    python benchmarks/build_modules.py LIBRARY [--count 60] [--seed 1]

Draws nn.Module classes at random from everything that an installed library defines, public or not, as far as its files
can be imported, but for abstract ones. Each is built in a process of its own, forked from one that has imported the
library, and run in eval and in train mode. Needs torch, the library, and a system with fork.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import multiprocessing
import os
import pkgutil
import random
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

import torch

from amplint.verify.build import CannotBuild, Deadline, find_recipe
from amplint.verify.build.signatures import source_tree
from amplint.verify.described import built_text, called_with
from amplint.verify.tensors import tensors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

Answer = tuple[bool, str, float]
"""Whether it ran, how or why not, and seconds."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print a line a class, then the rates."""
    parser = argparse.ArgumentParser(description="Build a library's modules from nothing but their classes.")
    parser.add_argument("library", help="the name of an importable package")
    parser.add_argument("--count", type=int, default=60, help="classes to draw (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (default: 1)")
    parser.add_argument("--seconds", type=float, default=60, help="time limit of a class (default: 60)")
    parser.add_argument("--only", default="", help="build only the drawn classes with this text in their name")
    chosen = parser.parse_args(arguments)
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    classes, skipped = module_classes(chosen.library)
    drawn, abstract = drawn_from(classes, chosen.count, chosen.seed)
    print(
        f"{chosen.library}: {len(classes)} classes, {len(drawn)} drawn, {abstract} abstract ones passed over; "
        f"{skipped} files could not be imported"
    )
    drawn = [name for name in drawn if chosen.only in name]
    built, slow, start = 0, 0.0, time.monotonic()
    for name in drawn:
        ran, why, seconds = in_child(classes[name], chosen.seconds)
        built += ran
        slow = max(slow, seconds)
        print(f"{'ok  ' if ran else 'FAIL'} {seconds:5.1f}s {name}: {why}", flush=True)
    rate = built / max(len(drawn), 1)
    total = time.monotonic() - start
    print(f"built and run in eval and train: {built} of {len(drawn)} ({rate:.0%})", end="")
    print(f" in {total:.0f} s, at most {slow:.0f} s each")
    return 0


def module_classes(library: str) -> tuple[dict[str, type], int]:
    """Every module class that a file of ``library`` defines, by its full name, and how many files failed to import."""
    package = importlib.import_module(library)
    found: dict[str, type] = {}
    skipped = 0
    for info in pkgutil.walk_packages(package.__path__, f"{library}.", onerror=lambda _: None):
        if info.name.endswith(".__main__"):
            continue
        try:
            module = importlib.import_module(info.name)
        except BaseException:
            skipped += 1
            continue
        for name, thing in vars(module).items():
            own = isinstance(thing, type) and thing.__module__ == info.name and thing.__name__ == name
            if own and issubclass(thing, torch.nn.Module):
                found[f"{info.name}.{name}"] = thing
    return found, skipped


def drawn_from(classes: dict[str, type], count: int, seed: int) -> tuple[list[str], int]:
    """The names of ``count`` random classes of those that can be run at all, and how many others were passed over."""
    order = random.Random(seed).sample(sorted(classes), len(classes))
    drawn = [name for name in order if not is_abstract(classes[name])][:count]
    passed = order[: order.index(drawn[-1])] if drawn else order
    return sorted(drawn), sum(is_abstract(classes[name]) for name in passed)


def is_abstract(kind: type) -> bool:
    """Whether only subclasses can be called: abstract methods, no forward, or one that does nothing but refuse."""
    forward = getattr(kind, "forward", None)
    if inspect.isabstract(kind) or forward is torch.nn.Module.forward:
        return True
    tree = source_tree(forward)
    body = tree.body[0].body if tree is not None and isinstance(tree.body[0], ast.FunctionDef) else [ast.Return()]
    return all(
        isinstance(part, ast.Pass)
        or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        or (isinstance(part, ast.Raise) and part.exc is not None and "NotImplemented" in ast.unparse(part.exc))
        for part in body
    )


def in_child(target: type, seconds: float) -> Answer:
    """Build and run ``target`` in a process of its own, killed after ``seconds``."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_build, args=(target, seconds, there))
    start = time.monotonic()
    child.start()
    there.close()
    try:
        answer: Answer = here.recv() if here.poll(seconds) else (False, "not within the time limit", seconds)
    except EOFError:
        answer = (False, "the process ended without an answer", time.monotonic() - start)
    child.kill()
    child.join()
    return answer


def _build(target: type, seconds: float, answer: Connection) -> None:
    with open(os.devnull, "w") as nowhere:
        sys.stdout = sys.stderr = nowhere
        start = time.monotonic()
        ran, why = _attempt(target, Deadline.after(0.8 * seconds))
        answer.send((ran, why, time.monotonic() - start))


def _attempt(target: type, deadline: Deadline) -> tuple[bool, str]:
    try:
        recipe = find_recipe(target, namespace=sys.modules[target.__module__], deadline=deadline)
    except CannotBuild as error:
        return False, error.reason
    for training in (False, True):
        built: Any = recipe.make()
        built.module.train(training)
        results = list(tensors(built.module(*built.args, **built.kwargs)))
        if not results:
            return False, "it returned no tensor"
    return True, f"{recipe.how}: {built_text(recipe)} with {called_with(built.args, built.kwargs)}"


if __name__ == "__main__":
    sys.exit(main())
