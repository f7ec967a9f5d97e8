"""Labels of rows that exist already: run again, or with other text in the place of the broken file."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from amplint.verify.run import Where
from mutants.children import child
from mutants.edits import apply
from mutants.labelling import MUTANT, ORIGINALS, serve
from mutants.operators import OPERATORS
from mutants.rows import KIND_TRAINING
from mutants.sources import File
from mutants.stand_ins import declare_torchvision, forget_absent_devices
from mutants.swapping import Functions
from mutants.targets import targets
from mutants.training.labelling import label_changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

    from mutants.libraries import Library
    from mutants.rows import Row
    from mutants.targets import Target

Labels = dict[str, dict[str, Any]] | str

PATIENCE = 25.0
"""CPU seconds to find out how to make a target: several times what it took when it was labelled."""


def relabel(
    library: Library, rows: Sequence[Row], change: Callable[[Row, Path, bytes], bytes | None]
) -> Iterator[tuple[Row, Labels]]:
    """Each row with the labels of what ``change`` makes of the broken file, a path and its bytes, or why it has none.

    Rows of which ``change`` makes None are left out.
    """
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    declare_torchvision()
    forget_absent_devices()
    where = Where("cuda", "cpu")
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.target].append(row)
    with where.policy():
        importlib.import_module(library.package)
        root = Path(sys.modules[library.package].__file__ or "").parent.parent
        for name, of_target in sorted(grouped.items()):
            questions = []
            for row in of_target:
                path = root / row.file
                after = change(row, path, apply(path.read_bytes(), row.edits))
                if after is not None:
                    questions.append((row, (str(path), after, row.operator, row.cases)))
            if not questions:
                continue
            if of_target[0].kind == KIND_TRAINING:
                for row, (path_of, after, operator, _) in questions:
                    yield row, label_changed(name, path_of, after, operator, str(root))
                continue
            target = _target(name)
            if target is None:
                yield from ((row, f"no target: {name} is not there") for row, _ in questions)
            else:
                yield from _asked(target, str(root), where, questions)


def _target(name: str) -> Target | None:
    module = importlib.import_module(name.rpartition(".")[0])
    file = File(Path(module.__file__ or "").read_bytes())
    return next((target for target in targets(module, file) if target.name == name), None)


def _asked(
    target: Target, root: str, where: Where, questions: list[tuple[Row, tuple[str, bytes, str, tuple[str, ...]]]]
) -> Iterator[tuple[Row, Labels]]:
    numeric = any(OPERATORS[operator].numeric for _, (_, _, operator, _) in questions)

    def work(pipe: Connection) -> None:
        serve(target, root, Functions([target.path]), where, numeric, pipe, PATIENCE)

    with child(work) as running:
        start = running.answer(8 * PATIENCE + 4 * ORIGINALS + 20)
        for row, question in questions:
            if not isinstance(start, dict):
                yield row, f"no target: {start}" if start is not None else "no answer in time"
                continue
            running.ask(question)
            yield row, running.answer(MUTANT + 30) or "the child ended"
