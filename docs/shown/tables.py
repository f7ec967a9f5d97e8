"""Tables in the pages that follow from the program or from kept figures, between ``begin`` and ``end`` comments."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from amplint.cli.main import main
from amplint.infer.lattice.scenarios import SCENARIOS
from amplint.judge.doubts import TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
_FIGURES = ROOT / "benchmarks" / "figures" / "results"
_REGION = re.compile(r"(<!-- begin: (.*?) -->\n).*?(<!-- end: \2 -->)", re.DOTALL)
_ROUND = re.compile(r"round of (\S+), \S+ \((\w+)\)")


def with_tables(text: str) -> str:
    """The same page with its tables as they are now. Raises KeyError for a table that is not known."""
    return _REGION.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n{found[3]}", text)


def _rounds(last: int = 0) -> str:
    """The last rounds at default settings, or all of them."""
    rows = []
    for name, round_ in _figures("judged-fresh").items():
        if (when := _ROUND.fullmatch(name)) is not None and not when[1].endswith("-preview"):
            pooled, sure = round_["pooled"], round_["proven"]
            shares = (pooled["right"], pooled["arguable"], pooled["wrong"], sure["right"], sure["wrong"])
            rows.append((when[1], f"`{when[2]}`", str(pooled["judged"]), *shares))
    head = ("round", "amplint", "judged", "right", "arguable", "wrong", "of proven: right", "wrong")
    return _table(head, rows[-last:])


def _missed() -> str:
    mined, mutants = _figures("mined-bugs")["bugs"], _figures("mutants")
    rows = [
        ("fixed bugs", _share(mined["all"]["found"])),
        ("those of them that one file decides", _share(mined["decidable in one file"]["found"])),
        ("broken on purpose, mean of the kinds of edit", mutants["found, mean of operators"]),
    ]
    return _table(("at first sight", "found"), rows)


def _doubts() -> str:
    rows = ((d.name, _short(d.codes), d.effect.value, d.message) for d in TABLE)
    return _table(("doubt", "rules", "leaves at most", "why there may be no harm"), rows)


def _short(codes: tuple[str, ...]) -> str:
    """Codes in the order of their numbers, AMP only once."""
    return f"AMP{', '.join(sorted(code.removeprefix('AMP') for code in codes))}" if codes else "all"


def _scenarios() -> str:
    rows = (
        (
            f"`{s.name}`" + (f" (`{s.alias}`)" if s.alias else ""),
            *(s.parameters, s.buffers, s.inputs, s.autocast or "off", "yes" if s.default else "no"),
        )
        for s in SCENARIOS
    )
    return _table(("name", "parameters", "buffers", "float inputs", "autocast", "by default"), rows)


def _options() -> str:
    context = click.Context(main)
    command = main.get_command(context, "check")
    assert command is not None
    rows = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None:
            rows.append((f"`{record[0]}`", record[1].replace("|", "\\|")))
    return _table(("option", "meaning"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "first sight": _rounds,
    "latest rounds": partial(_rounds, last=4),
    "missed": _missed,
    "doubts": _doubts,
    "options of check": _options,
    "scenarios": _scenarios,
}
"""What makes each table, by the name in its comments."""


def _figures(name: str) -> dict[str, Any]:
    """What a benchmark found on code that nobody had looked at."""
    kept: dict[str, Any] = json.loads((_FIGURES / f"{name}.json").read_text(encoding="utf-8"))["first_sight"]
    return kept


def _share(counted: list[int]) -> str:
    found, of = counted
    return f"{found} of {of} ({found / of:.0%})"


def _table(head: tuple[str, ...], rows: Iterator[tuple[Any, ...]] | list[tuple[Any, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
