"""Findings drawn at random for someone to judge."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from ecosystem.releases import Release
    from ecosystem.result import Checked, Found

T = TypeVar("T")


def draw(checked: Sequence[Checked], count: int, seed: int, most: int | None = None) -> list[tuple[Release, Found]]:
    """``count`` findings, or all where there are fewer, in the order of release and place.

    The rules take turns, and within a rule the packages do, so that neither a noisy rule nor a large package crowds
    the others out; with ``most``, no package has more of them. The same result, count and seed give the same findings,
    and a smaller count some of them.
    """
    random_order = random.Random(seed)
    rules: dict[str, dict[str, list[tuple[Release, Found]]]] = {}
    for one in sorted(checked, key=lambda one: one.release):
        for finding in sorted(one.findings):
            rules.setdefault(finding.code, {}).setdefault(one.release.package, []).append((one.release, finding))
    queues = []
    for _, packages in sorted(rules.items()):
        shuffled = [random_order.sample(found, len(found)) for found in packages.values()]
        random_order.shuffle(shuffled)
        queues.append(_in_turn(shuffled))
    random_order.shuffle(queues)
    return sorted(islice(_at_most(_in_turn(queues), most), count))


def _at_most(drawn: Iterable[tuple[Release, Found]], most: int | None) -> Iterator[tuple[Release, Found]]:
    counts: Counter[str] = Counter()
    for release, finding in drawn:
        counts[release.package] += 1
        if most is None or counts[release.package] <= most:
            yield release, finding


def _in_turn(queues: Iterable[list[T]]) -> list[T]:
    """The first of each, then the second of each, and so on."""
    turns = zip_longest(*([(one,) for one in queue] for queue in queues), fillvalue=())
    return [one for turn in turns for maybe in turn for one in maybe]


def save(drawn: Iterable[tuple[Release, Found]], path: Path) -> None:
    """One JSON object a line, with an empty ``verdict`` and ``reason`` to be filled in."""
    rows = [
        {
            "package": release.package,
            "release": release.version,
            "path": finding.path,
            "line": finding.line,
            "code": finding.code,
            "severity": finding.severity,
            "certainty": finding.certainty,
            "scenarios": list(finding.scenarios),
            "message": finding.message,
            "verdict": "",
            "reason": "",
        }
        for release, finding in drawn
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
