"""A GPU against its cast policy over the CPU's kernels: every verdict and every output dtype, side by side.

    python benchmarks/gpu_comparison.py [--markdown FILE] [--jobs N]

Runs the fixtures and the hazard matrix of the tests on a real GPU and emulated, in every scenario and mode, and prints
each cell in which the two differ, and the counts. ``--markdown`` writes that as a table. Leaves with status 2 where
torch sees no GPU, with 1 where a verdict or dtype differs for a reason other than a gap in the CPU's kernels.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.verify.hardware import has_cuda
from amplint.verify.job import Job
from amplint.verify.parent import run_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplint.verify.job import Outcome

ROOT = Path(__file__).resolve().parent.parent
MATRIX = ROOT / "tests" / "hazard_matrix.py"


def __getattr__(name: str) -> Callable[[], Any]:
    """``bad_3`` and ``good_3`` build the third hazard of the matrix: the child process asks for them by name."""
    kind, _, number = name.partition("_")
    if kind not in ("bad", "good") or not number.isdigit():
        raise AttributeError(name)
    sys.path.insert(0, str(MATRIX.parent))
    import torch
    from hazard_matrix import HAZARDS

    return lambda: (HAZARDS[int(number)].module(kind == "bad"), (torch.randn(2, 8, 16),), {})


@dataclass(frozen=True)
class Subject:
    name: str
    path: Path
    factory: str | None = None

    def outcomes(self, run_on: str) -> dict[tuple[str, str], Outcome]:
        job = Job(
            path=str(self.path),
            name=None,
            device="cuda",
            run_on=run_on,
            scenarios=tuple(scenario.name for scenario in DEFAULT_SCENARIOS),
            results="",
            root=str(ROOT),
            factory=self.factory,
            timeout=300.0,
        )
        report = run_job(job)
        if report.broken is not None:
            print(f"{self.name} on {run_on}: {report.broken}", file=sys.stderr)
        return {(outcome.scenario, outcome.mode): outcome for outcome in report.outcomes}


def subjects() -> list[Subject]:
    files = sorted((ROOT / "fixtures" / "incidents").glob("*/*.py"))
    found = [Subject(f"{path.parent.name}/{path.name}", path) for path in files]
    sys.path.insert(0, str(MATRIX.parent))
    from hazard_matrix import HAZARDS

    for number, hazard in enumerate(HAZARDS):
        for kind in ("bad", "good"):
            factory = f"{Path(__file__).resolve()}::{kind}_{number}"
            found.append(Subject(f"{hazard.name} ({kind})", MATRIX, factory))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table there")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="targets that run at once")
    arguments = parser.parse_args()
    if not has_cuda():
        print("torch sees no CUDA GPU here: there is nothing to compare with", file=sys.stderr)
        return 2
    rows: list[tuple[str, str, str, str, str]] = []
    counts: Counter[str] = Counter()
    targets = subjects()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        both = pool.map(lambda one: (one.outcomes("cuda"), one.outcomes("cpu")), targets)
    for subject, (real, emulated) in zip(targets, both, strict=True):
        for cell in real.keys() | emulated.keys():
            one, other = real.get(cell), emulated.get(cell)
            kind = _compare(one, other)
            counts[kind] += 1
            if kind != "same":
                rows.append((subject.name, " ".join(cell), kind, _said(one), _said(other)))
        print(f"{subject.name}: {sum(row[0] == subject.name for row in rows)} of {len(real)} cells differ", flush=True)
    lines = ["| target | cell | difference | GPU | emulated |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in sorted(rows)]
    total = sum(counts.values())
    lines += ["", f"{total} cells: " + ", ".join(f"{count} {kind}" for kind, count in counts.most_common())]
    print("\n".join(lines))
    if arguments.markdown is not None:
        arguments.markdown.write_text("\n".join(lines) + "\n")
    return 1 if counts.keys() - {"same", "gap in the CPU's kernels"} else 0


def _compare(real: Outcome | None, emulated: Outcome | None) -> str:
    if real is None or emulated is None:
        return "mode missing"
    if emulated.kind == "cpu-gap":
        return "gap in the CPU's kernels"
    if real.kind != emulated.kind:
        return "verdict"
    return "same" if real.dtypes == emulated.dtypes else "dtype"


def _said(outcome: Outcome | None) -> str:
    if outcome is None:
        return "-"
    return f"{outcome.kind} {outcome.error or ', '.join(outcome.dtypes)}".replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
