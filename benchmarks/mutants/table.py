"""The figures: of each operator and scenario, and of both halves apart."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from mutants.claims import finds
from mutants.outcomes import HARMLESS, HURTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mutants.claims import Claim
    from mutants.rows import Original, Row

SCENARIOS = ("autocast-fp16", "autocast-bf16", "fp16", "bf16", "bf16-mixed-params")
CERTAINTIES = ("proven", "likely")


@dataclass
class Count:
    """Mutants in scenarios: those that hurt and are found; the harmless ones that are claimed to hurt, by certainty of
    an error, and by any warning."""

    hurting: int = 0
    found: int = 0
    elsewhere: int = 0
    harmless: int = 0
    undecided: int = 0
    wrong: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)} | {"wrong": dict(self.wrong)}

    @property
    def share(self) -> float:
        """Found, of those that hurt."""
        return self.found / self.hurting if self.hurting else 0.0


@dataclass
class Tables:
    """The counts of one half, by operator and scenario; claims on rows of originals that ran clean."""

    cells: dict[str, dict[str, Count]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(Count)))
    labels: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    clean_rows: int = 0
    refuted: Counter[str] = field(default_factory=Counter)
    mutants: int = 0

    def add(self, row: Row, new: Iterable[Claim]) -> None:
        """Count a mutant in every scenario in which it has a label."""
        new = list(new)
        self.mutants += 1
        self.kinds[row.kind] += 1
        for scenario, label in row.labels.items():
            count = self.cells[row.operator][scenario]
            self.labels[label["label"]] += 1
            named = [claim for claim in new if scenario in claim.scenarios]
            if label["label"] in HURTS:
                count.hurting += 1
                found = any(finds(claim, row, scenario) for claim in named)
                count.found += found
                count.elsewhere += bool(named) and not found
            elif label["label"] == HARMLESS:
                count.harmless += 1
                errors = {claim.certainty for claim in named if claim.severity == "error"}
                if errors:
                    count.wrong[next(one for one in (*CERTAINTIES, "possible") if one in errors)] += 1
                elif named:
                    count.wrong["warning"] += 1
            else:
                count.undecided += 1

    def add_original(self, original: Original, claims: Iterable[Claim]) -> None:
        """Count claims of errors, by certainty, that lie on rows of an original that ran clean."""
        for scenario, ranges in original.clean.items():
            self.clean_rows += sum(last - first + 1 for first, last in ranges)
            for claim in claims:
                if claim.severity == "error" and scenario in claim.scenarios:
                    ran = any(first <= claim.first and claim.last <= last for first, last in ranges)
                    self.refuted[claim.certainty] += ran


def lines(half: str, tables: Tables) -> Iterator[str]:
    """The tables of a half as text."""
    yield f"{half}: {tables.mutants} mutants ({_counted(tables.kinds)})"
    yield f"  in their scenarios: {_counted(tables.labels)}"
    heads = (("hurts", 7), ("found", 7), ("share", 7), ("else", 6), ("harmless", 10))
    wrong = "".join(f"{name:>8}" for name in (*CERTAINTIES, "warned"))
    yield f"  {'operator':32}" + "".join(f"{name:>{width}}" for name, width in heads) + wrong
    totals = {operator: summed(by.values()) for operator, by in tables.cells.items()}
    for operator, count in sorted(totals.items()):
        yield _line(operator, count)
    yield _line("all", summed(totals.values()))
    yield f"  {_mean('mean of operators', totals.values())}"
    for scenario in SCENARIOS:
        counts = [by[scenario] for by in tables.cells.values() if scenario in by]
        yield _line(scenario, summed(counts))
        yield f"    {_mean('mean of operators', counts)}"
    refuted = _counted(tables.refuted) or "none"
    yield f"  errors claimed on rows of originals that ran clean in that scenario: {refuted} ({tables.clean_rows} rows)"


def _line(name: str, count: Count) -> str:
    share = f"{count.share:.0%}" if count.hurting else "-"
    wrong = "".join(f"{count.wrong[kind]:8}" for kind in (*CERTAINTIES, "warning"))
    return f"  {name:32}{count.hurting:7}{count.found:7}{share:>7}{count.elsewhere:6}{count.harmless:10}{wrong}"


def _mean(name: str, counts: Iterable[Count]) -> str:
    """Each operator counts the same."""
    counts = list(counts)
    shares = [count.share for count in counts if count.hurting]
    text = f"{name}: found {sum(shares) / len(shares):.1%} of {len(shares)}" if shares else f"{name}: none hurts"
    harmless = [count for count in counts if count.harmless]
    for kind in (*CERTAINTIES, "warning"):
        rates = [count.wrong[kind] / count.harmless for count in harmless]
        text += f"; {kind} on harmless {sum(rates) / len(rates):.1%}" if rates else ""
    return text


def summed(counts: Iterable[Count]) -> Count:
    """The counts added up."""
    total = Count()
    for count in counts:
        total.hurting += count.hurting
        total.found += count.found
        total.elsewhere += count.elsewhere
        total.harmless += count.harmless
        total.undecided += count.undecided
        total.wrong += count.wrong
    return total


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.most_common())
