"""Labels for one library: its targets are built and run, broken at one place, and run again.

A child for each target builds it and runs the original; this process then chooses the mutants among the rows that ran,
and the child forks once more for each of them, with the changed code in place of the original's.
"""

from __future__ import annotations

import hashlib
import importlib
import random
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from amplint.verify.build import CannotBuild, Deadline
from amplint.verify.run import Where
from mutants.children import child
from mutants.edits import apply
from mutants.judging import ThrownOut, label
from mutants.mutation import METHOD, Mutation, found_in
from mutants.operators import OPERATORS
from mutants.originals import originals
from mutants.outcomes import HURTS
from mutants.rows import Original, Row, load, ranges, write
from mutants.sources import File
from mutants.stand_ins import declare_torchvision, forget_absent_devices
from mutants.swapping import CannotSwap, Functions, parsed_before, put
from mutants.targets import Target, library_modules, recipe_for, targets
from mutants.training.labelling import label_loops

if TYPE_CHECKING:
    import types
    from collections.abc import Iterable, Iterator
    from multiprocessing.connection import Connection

    from amplint.verify.build import Recipe
    from mutants.edits import Edit
    from mutants.libraries import Library
    from mutants.originals import Originals

SEED = 1
BUILD, ORIGINALS, MUTANT = 7.0, 14.0, 15.0
"""Seconds for building a target, for running its original, and for one mutant."""
A_TARGET, A_QUICK_TARGET, QUICK = 24, 60, 2.0
"""Mutants of one target at most, and of one whose originals take no more than so many CPU seconds."""
MANY = 12
"""Places in a target from which on more do not make it come earlier."""
HURTING, OTHERS = 40, 12
"""Mutants of one operator in a library at most, of those that hurt and of the others."""


@dataclass
class Tally:
    """What has become of a library so far."""

    operators: Counter[str] = field(default_factory=Counter)
    hurting: Counter[str] = field(default_factory=Counter)
    thrown_out: Counter[str] = field(default_factory=Counter)
    seen: set[tuple[str, str, tuple[Edit, ...]]] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)
    clean: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    rows: int = 0

    def add(self, row: Row) -> None:
        """Count a mutant with its labels."""
        self.rows += 1
        self.targets.add(row.target)
        self.seen.add((row.file, row.operator, row.edits))
        self.operators[row.operator] += 1
        self.hurting[row.operator] += any(one["label"] in HURTS for one in row.labels.values())

    def newly_clean(self, file: str, scenario: str, rows: Iterable[int]) -> set[int]:
        """The rows of a file that had not been seen to run clean before."""
        known = self.clean.setdefault((file, scenario), set())
        new = set(rows) - known
        known |= new
        return new


def label_library(library: Library, path: Path, most: int, seconds: float) -> Tally:
    """Append labels to ``path`` until it has ``most`` mutants, within about so many seconds. What is there stays."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    declare_torchvision()
    forget_absent_devices()
    tally = _resumed(path)
    start = time.monotonic()
    where = Where("cuda", "cpu")
    with where.policy():
        importlib.import_module(library.package)
        for row in label_loops(library, tally.seen, tally.thrown_out):
            write(path, [row])
            tally.add(row)
        modules = library_modules(library.package, library.left_out, library.files, SEED)
        modules = [one for one in modules if (getattr(one, "__file__", None) or "").endswith(".py")]
        root = str(Path(sys.modules[library.package].__file__ or "").parent.parent)
        files = [one.__file__ or "" for one in modules]
        found = [target for one in modules for target in _targets(one)]
        random.Random(SEED).shuffle(found)
        found.sort(key=lambda target: -min(len(_sites(target)), MANY))
        functions = Functions(files)
        for target in found:
            if tally.rows >= most or time.monotonic() - start > seconds:
                break
            if target.name not in tally.targets and _sites(target):
                for entry in _of_target(library, target, root, functions, tally, where):
                    write(path, [entry])
    return tally


def _resumed(path: Path) -> Tally:
    tally = Tally()
    rows, originals = load(path) if path.exists() else ([], [])
    for row in rows:
        tally.add(row)
    for original in originals:
        for scenario, ranges_of in original.clean.items():
            for first, last in ranges_of:
                tally.newly_clean(original.file, scenario, range(first, last + 1))
    return tally


@cache
def _file(path: str) -> File | None:
    try:
        return File(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


@cache
def _mutations(path: str) -> tuple[Mutation, ...]:
    file = _file(path)
    return tuple(found_in(file)) if file is not None else ()


def _targets(module: types.ModuleType) -> list[Target]:
    file = _file(module.__file__ or "")
    return list(targets(module, file)) if file is not None and b"torch" in file.data else []


def _sites(target: Target) -> list[Mutation]:
    """The mutants whose place lies in a target's own source."""
    return [m for m in _mutations(target.path) if target.rows[0] <= m.edits[0].row <= target.rows[1]]


def _of_target(
    library: Library, target: Target, root: str, functions: Functions, tally: Tally, where: Where
) -> Iterator[Row | Original]:
    numeric = any(OPERATORS[mutation.operator].numeric for mutation in _mutations(target.path))

    def work(pipe: Connection) -> None:
        serve(target, root, functions, where, numeric, pipe)

    with child(work) as running:
        answer = running.answer(8 * BUILD + 4 * ORIGINALS + 20)
        if not isinstance(answer, dict):
            tally.thrown_out["target: " + (answer or "no answer")[:60]] += 1
            return
        yield from _cleaned(library, root, answer["clean"], tally)
        most = A_QUICK_TARGET if answer["seconds"] <= QUICK else A_TARGET
        for path, mutation in _choose(target, root, answer["rows"], tally, most):
            try:
                after = apply(Path(path).read_bytes(), mutation.edits)
            except ValueError:
                continue
            running.ask((path, after, mutation.operator, ()))
            outcome = running.answer(2 * MUTANT + 10)
            if outcome is None:
                tally.thrown_out["the child ended"] += 1
                return
            if isinstance(outcome, str):
                tally.thrown_out[outcome[:60]] += 1
                continue
            file = Path(path)
            row = Row(
                library.name,
                library.release,
                str(file.relative_to(root)),
                hashlib.sha256(file.read_bytes()).hexdigest(),
                target.name,
                _kind(mutation, answer["parameters"]),
                mutation.operator,
                mutation.edits,
                outcome,
                tuple(answer["cases"]),
            )
            tally.add(row)
            yield row


def _kind(mutation: Mutation, parameters: int) -> str:
    if mutation.kind == METHOD:
        return "module" if parameters else "module without parameters"
    return mutation.kind


def _choose(
    target: Target, root: str, rows: dict[str, frozenset[int]], tally: Tally, most: int
) -> list[tuple[str, Mutation]]:
    """New mutants on rows of the target's file that ran, those of the operators with the fewest so far first."""
    ran = rows.get(target.path, frozenset())
    file = str(Path(target.path).relative_to(root))
    possible = [
        mutation
        for mutation in _mutations(target.path)
        if (file, mutation.operator, mutation.edits) not in tally.seen
        and any(row in ran for row in range(mutation.rows[0], mutation.rows[1] + 1))
    ]
    random.Random(f"{SEED} {target.name}").shuffle(possible)
    chosen: list[tuple[str, Mutation]] = []
    counts = Counter(tally.operators)
    while possible and len(chosen) < most:
        best = min(possible, key=lambda mutation: counts[mutation.operator])
        possible.remove(best)
        hurting = tally.hurting[best.operator]
        if hurting >= HURTING or counts[best.operator] - hurting >= OTHERS:
            continue
        counts[best.operator] += 1
        chosen.append((target.path, best))
    return chosen


def _cleaned(
    library: Library, root: str, clean: dict[str, dict[str, frozenset[int]]], tally: Tally
) -> Iterator[Original]:
    """What ran clean of each file and had not before."""
    for path in sorted({path for by_file in clean.values() for path in by_file}):
        file = str(Path(path).relative_to(root))
        new = {
            scenario: list(ranges(tally.newly_clean(file, scenario, by_file[path])))
            for scenario, by_file in sorted(clean.items())
            if path in by_file
        }
        new = {scenario: found for scenario, found in new.items() if found}
        if new:
            digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            yield Original(library.name, library.release, file, digest, new)


def serve(
    target: Target, root: str, functions: Functions, where: Where, numeric: bool, pipe: Connection, build: float = BUILD
) -> None:
    """The child of a target: tells what ran, then answers each mutant with its labels, or why it has none.

    ``build``: CPU seconds to find out how to make it.
    """
    try:
        recipe = recipe_for(target, build)
        start = time.process_time()
        known = originals(recipe, where, functions.files, Deadline.after(ORIGINALS, slack=4), numeric=numeric)
        seconds = time.process_time() - start
        built = recipe.make()
    except CannotBuild as error:
        pipe.send(f"not built: {error.reason}")
        return
    except BaseException as error:
        pipe.send(f"not built: {type(error).__name__}: {error}")
        return
    if not known.clean:
        pipe.send("the original does not run clean")
        return
    parameters = sum(1 for _ in built.module.parameters()) if isinstance(built.module, torch.nn.Module) else 0
    told = {"rows": known.rows, "clean": known.clean_rows, "cases": known.cases}
    pipe.send({**told, "parameters": parameters, "seconds": seconds})
    parsed_before(Path(target.path).read_bytes())
    while True:
        try:
            path, after, operator, cases = pipe.recv()
        except EOFError:
            return
        work = partial(_answer, recipe, known.only(cases), where, root, functions, path, after, operator)
        with child(work) as running:
            answer = running.answer(2 * MUTANT)  # a busy machine is no reason
        pipe.send(answer if answer is not None else "no answer in time")


def _answer(
    recipe: Recipe,
    known: Originals,
    where: Where,
    root: str,
    functions: Functions,
    path: str,
    after: bytes,
    operator: str,
    pipe: Connection,
) -> None:
    """The child of a mutant: its labels, or why it has none."""
    how = OPERATORS[operator]
    try:
        put(functions, module_of(path), path, Path(path).read_bytes(), after)
        made = label(recipe, known, where, root, numeric=how.numeric, inference=how.inference)
    except (CannotSwap, ValueError) as error:
        pipe.send(f"not swapped: {error}")
        return
    pipe.send(made.why if isinstance(made, ThrownOut) else {name: one.to_json() for name, one in made.items()})


def module_of(path: str) -> types.ModuleType:
    """The imported module of a file."""
    return next(one for one in list(sys.modules.values()) if getattr(one, "__file__", None) == path)
