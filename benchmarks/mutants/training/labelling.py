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
from mutants.rows import KIND_TRAINING, Row
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
    from mutants.training.judging import Known
    from mutants.training.loops import Loop

SECONDS = 90.0


def label_loops(
    library: Library, seen: Collection[tuple[str, str, tuple[Edit, ...]]], thrown_out: Counter[str]
) -> Iterator[Row]:
    """The labels of every mutant on a row of a loop's file that ran. To be called inside of cuda's policy."""
    for loop in LOOPS:
        if loop.library != library.name:
            continue
        path = importlib.import_module(loop.module).__file__ or ""
        root = str(Path(sys.modules[library.package].__file__ or "").parent.parent)
        known = originals(loop, [path])
        if not known.references:
            thrown_out[f"{loop.target} does not train as in float32"] += 1
            continue
        before = Path(path).read_bytes()
        digest = hashlib.sha256(before).hexdigest()
        file, ran = str(Path(path).relative_to(root)), known.rows.get(path, frozenset())
        for mutation in found_in(File(before)):
            new = (file, mutation.operator, mutation.edits) not in seen
            if not new or not any(row in ran for row in range(mutation.rows[0], mutation.rows[1] + 1)):
                continue
            try:
                after = apply(before, mutation.edits)
            except ValueError:
                continue
            outcome = _in_child(loop, known, path, after, mutation.operator, root)
            if isinstance(outcome, str):
                thrown_out[outcome[:60]] += 1
                continue
            made = (library.name, library.release, file, digest, loop.target, KIND_TRAINING)
            yield Row(*made, mutation.operator, mutation.edits, outcome)


def label_changed(target: str, path: str, after: bytes, operator: str, root: str) -> dict[str, dict[str, Any]] | str:
    """The labels of a changed file for the loop of that name. To be called inside of cuda's policy."""
    loop = next(one for one in LOOPS if one.target == target)
    importlib.import_module(loop.module)
    return _in_child(loop, originals(loop, [path]), path, after, operator, root)


def _in_child(
    loop: Loop, known: Known, path: str, after: bytes, operator: str, root: str
) -> dict[str, dict[str, Any]] | str:
    with child(partial(_answer, loop, known, path, after, operator, root)) as running:
        outcome: dict[str, dict[str, Any]] | str | None = running.answer(SECONDS)
    return "no answer in time" if outcome is None else outcome


def _answer(loop: Loop, known: Known, path: str, after: bytes, operator: str, root: str, pipe: Connection) -> None:
    try:
        put(Functions([path]), sys.modules[loop.module], path, Path(path).read_bytes(), after)
    except CannotSwap as error:
        pipe.send(f"not swapped: {error}")
        return
    made = label(loop, known, root, numeric=OPERATORS[operator].numeric)
    pipe.send(made.why if isinstance(made, ThrownOut) else {name: one.to_json() for name, one in made.items()})
