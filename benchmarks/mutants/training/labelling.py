"""Labels for the training loops of a library."""

from __future__ import annotations

import hashlib
import importlib
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutants.children import child
from mutants.edits import apply
from mutants.judging import ThrownOut
from mutants.mutation import found_in
from mutants.operators import OPERATORS
from mutants.rows import Row
from mutants.sources import File
from mutants.swapping import CannotSwap, Functions, put
from mutants.training.judging import label, originals
from mutants.training.loops import LOOPS

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection, Iterator
    from multiprocessing.connection import Connection

    from mutants.edits import Edit
    from mutants.libraries import Library
    from mutants.mutation import Mutation
    from mutants.training.judging import Known
    from mutants.training.loops import Loop

KIND = "training"
SECONDS = 60.0


def label_loops(
    library: Library, seen: Collection[tuple[str, str, tuple[Edit, ...]]], thrown_out: Counter[str]
) -> Iterator[Row]:
    """The labels of every mutant on a row of a loop's file that ran. To be called inside of cuda's policy."""
    for loop in LOOPS:
        if loop.library != library.name:
            continue
        module = importlib.import_module(loop.module)
        path = module.__file__ or ""
        root = str(Path(sys.modules[library.package].__file__ or "").parent.parent)
        known = originals(loop, [path])
        if not known.references:
            thrown_out[f"{loop.target} does not train as in float32"] += 1
            continue
        functions = Functions([path])
        before = Path(path).read_bytes()
        file = str(Path(path).relative_to(root))
        for mutation in found_in(File(before)):
            ran = known.rows.get(path, frozenset())
            if (file, mutation.operator, mutation.edits) in seen:
                continue
            if not any(row in ran for row in range(mutation.rows[0], mutation.rows[1] + 1)):
                continue

            work = partial(_serve, loop, known, functions, path, mutation, root)
            with child(work) as running:
                outcome = running.answer(SECONDS)
            if not isinstance(outcome, dict):
                thrown_out[outcome or "no answer in time"] += 1
                continue
            digest = hashlib.sha256(before).hexdigest()
            made = (library.name, library.release, file, digest, loop.target, KIND, mutation.operator, mutation.edits)
            yield Row(*made, outcome)


def _serve(
    loop: Loop, known: Known, functions: Functions, path: str, mutation: Mutation, root: str, pipe: Connection
) -> None:
    pipe.send(_labels(loop, known, functions, path, mutation, root))


def _labels(
    loop: Loop, known: Known, functions: Functions, path: str, mutation: Mutation, root: str
) -> dict[str, dict[str, Any]] | str:
    before = Path(path).read_bytes()
    try:
        put(functions, sys.modules[loop.module], path, before, apply(before, mutation.edits))
    except (CannotSwap, ValueError) as error:
        return f"not swapped: {error}"
    made = label(loop, known, root, numeric=OPERATORS[mutation.operator].numeric)
    return made.why if isinstance(made, ThrownOut) else {scenario: one.to_json() for scenario, one in made.items()}
