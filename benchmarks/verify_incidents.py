"""The public incidents, run: confirmed in the releases and fixtures that have them, not in their fixed forms.

    python benchmarks/verify_incidents.py [--wheels DIR] [--only releases|fixtures]

Needs torch, and no GPU. The releases are downloaded as wheels and unpacked without installing them. Each row of the
table is one ``amplint verify``; for a release with a factory of ``benchmarks/factories/``, which stands in for what
only a GPU can run. What is expected of the fixtures comes from their ``# expect`` comments; ``--fix-check`` must say
that the fixes cure them. Leaves with status 1 if one expectation fails, 2 if a release cannot be had.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner, Result
from incidents import FUSED_LINEAR, FUSED_LINEAR_FUNCTION, INT8, LOOKUP_FREE, Table, check
from wheels import DownloadError, download, unpacked

from amplint.cli.main import main as amplint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures" / "incidents"
FACTORIES = HERE / "factories"

AUTOCAST = ("autocast-fp16", "autocast-bf16")
HALF = ("fp16", "bf16")
RAN = {"clean", "not-reproduced", "not-reached"}
"""Verdicts of a run that took place and failed in nothing."""

Row = dict[str, Any]
"""A row of the JSON report of ``verify``."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A finding that is to be confirmed in each of ``scenarios``: one with ``code`` that starts in one of ``rows``.

    In the mode ``mode``, or in any. ``cured``: ``--fix-check`` runs too, and says ``cures`` wherever it is confirmed.
    """

    code: str
    rows: tuple[int, ...]
    scenarios: tuple[str, ...]
    mode: str | None = None
    cured: bool = False

    def __str__(self) -> str:
        mode = f" ({self.mode})" if self.mode else ""
        cured = ", cured by its fix" if self.cured else ""
        return f"{self.code} at line {' or '.join(map(str, self.rows))} in {' and '.join(self.scenarios)}{mode}{cured}"


@dataclass(frozen=True, slots=True)
class Incident:
    """One file and what running it is to confirm; nothing where ``confirmed`` is None.

    ``name`` is a requirement or a path below ``fixtures/incidents/``. Of a release, ``target`` is the class in
    ``file``, ``factory`` the function of a file in ``benchmarks/factories/`` that builds it, and ``needs`` other
    releases that it imports.
    """

    name: str
    confirmed: Confirmed | None
    file: str = ""
    target: str | None = None
    factory: str | None = None
    needs: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.confirmed or 'nothing'}"


def _lookup_free(version: str, confirmed: Confirmed | None) -> Incident:
    factory, needs = "lookup_free_quantizer.py::autoencoder_front", ("einops==0.8.2",)
    return Incident(f"vector-quantize-pytorch=={version}", confirmed, LOOKUP_FREE, "LFQ", factory, needs)


def _fused_linear(version: str, confirmed: Confirmed | None) -> Incident:
    factory = "fused_linear_cross_entropy.py::head"
    return Incident(f"liger-kernel=={version}", confirmed, FUSED_LINEAR, FUSED_LINEAR_FUNCTION, factory)


def _int8(version: str, confirmed: Confirmed | None) -> Incident:
    return Incident(f"bitsandbytes=={version}", confirmed, INT8, "MatMul8bitLt", "int8_matmul.py::int8_linear")


RELEASES = (
    _lookup_free("1.12.9", Confirmed("AMP106", (191,), AUTOCAST)),
    _lookup_free("1.14.44", Confirmed("AMP102", (260, 273), HALF)),
    _lookup_free("1.14.45", Confirmed("AMP106", (321,), AUTOCAST, mode="train")),
    _lookup_free("1.15.0", None),
    _fused_linear("0.3.1", Confirmed("AMP107", (122,), AUTOCAST)),
    _fused_linear("0.5.2", Confirmed("AMP107", (119,), AUTOCAST)),
    _fused_linear("0.8.0", None),
    _int8("0.44.1", Confirmed("AMP204", (473, 474), ("autocast-fp16",), mode="train")),
    _int8("0.45.0", None),
)

_FIXTURES = {
    "encoder_fast_path": ("AMP108", ("autocast-bf16",), "eval-no-grad"),
    "kv_cache_attention": ("AMP101", ("bf16-mixed-params",), "second-call"),
    "fused_linear_loss": ("AMP107", AUTOCAST, "train"),
    "int8_backward": ("AMP204", ("autocast-fp16",), "train"),
    "lookup_free_quantizer": ("AMP106", AUTOCAST, "train"),
    "lookup_free_quantizer_float": ("AMP102", HALF, "train"),
}
"""The code of the cause, and how the incident was run: scenarios and mode."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and say the exit status."""
    parser = argparse.ArgumentParser(description="Run the releases and fixtures that have the public incidents.")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="where wheels lie, or are downloaded to")
    parser.add_argument("--only", choices=("releases", "fixtures"), help="leave the others out")
    options = parser.parse_args(arguments)
    table = Table()
    with tempfile.TemporaryDirectory(prefix="amplint-incidents-") as name:
        folder = Path(name).resolve()
        commands: list[_Command] = []
        if options.only != "fixtures":
            wheels = options.wheels or folder / "wheels"
            try:
                download((name for incident in RELEASES for name in (incident.name, *incident.needs)), wheels)
            except DownloadError as error:
                print(error, file=sys.stderr)
                return 2
            commands += [_of_release(incident, folder, wheels) for incident in RELEASES]
        if options.only != "releases":
            commands += _of_fixtures()
        for command in commands:
            found, problem = _judge(command)
            table.add(str(command.incident), problem or found, not problem)
    print(table)
    return 1 if table.failed else 0


@dataclass(frozen=True, slots=True)
class _Command:
    """One run of ``amplint verify``. ``beside`` are folders that the run imports from, as from an environment."""

    incident: Incident
    path: Path
    beside: tuple[Path, ...] = ()

    @property
    def arguments(self) -> list[str]:
        incident = self.incident
        target = f"{self.path}::{incident.target}" if incident.target else str(self.path)
        factory = ["--factory", str(FACTORIES / incident.factory)] if incident.factory else []
        fix_check = ["--fix-check"] if incident.confirmed and incident.confirmed.cured else []
        return [target, *factory, *fix_check, "--isolated", "--run-on", "cpu", "--output-format", "json"]


def _of_release(incident: Incident, folder: Path, wheels: Path) -> _Command:
    beside = tuple(unpacked(requirement, folder, wheels) for requirement in incident.needs)
    return _Command(incident, unpacked(incident.name, folder, wheels) / incident.file, beside)


def _of_fixtures() -> Iterator[_Command]:
    for name, (code, scenarios, mode) in _FIXTURES.items():
        failing = FIXTURES / name / "failing.py"
        lines = failing.read_text(encoding="utf-8").splitlines()
        rows = tuple(row for row, line in enumerate(lines, 1) if code in line.partition("# expect:")[2])
        yield _Command(Incident(f"{name}/failing.py", Confirmed(code, rows, scenarios, mode, cured=True)), failing)
        yield _Command(Incident(f"{name}/fixed.py", None), FIXTURES / name / "fixed.py")


def _judge(command: _Command) -> tuple[str, str]:
    """What was found, with the seconds it took, and what is wrong with that (empty if nothing is)."""
    start = time.perf_counter()
    done = _verify(command)
    seconds = time.perf_counter() - start
    rows: list[Row] = json.loads(done.stdout)
    confirmed = [row for row in rows if row["verdict"] == "confirmed"]
    places = ", ".join(sorted({f"{row['code']} at {row['location']['row']}" for row in confirmed if row["location"]}))
    found = f"{places or 'nothing'} ({len(rows)} rows, {seconds:.0f} s)"
    expected = command.incident.confirmed
    if done.exit_code != (1 if confirmed else 0):
        return found, f"left with status {done.exit_code}, {len(confirmed)} rows confirmed"
    if expected is not None:
        return found, _missing(expected, confirmed, command.path, found)
    wrong = sorted(
        {
            f"{row['verdict']} in {row['scenario']} {row['mode']}: {row['error']}"
            for row in rows
            if row["verdict"] not in RAN
        }
    )
    return found, "; ".join(wrong) if rows else "nothing was run"


def _verify(command: _Command) -> Result:
    """Raises RuntimeError where the command was refused or failed itself."""
    paths = [*map(str, command.beside), *filter(None, [os.environ.get("PYTHONPATH")])]
    line = ["verify", *command.arguments]
    done = CliRunner().invoke(amplint, line, env={"PYTHONPATH": os.pathsep.join(paths) or None})
    if done.exit_code not in (0, 1) or not isinstance(done.exception, SystemExit | None):
        raise RuntimeError(
            f"amplint {' '.join(line)} left with status {done.exit_code}:\n{done.stderr}"
        ) from done.exception
    return done


def _missing(expected: Confirmed, confirmed: list[Row], path: Path, found: str) -> str:
    """What of the expectation is not there; an empty string if all is."""
    told = [finding for finding in check([path]) if finding["code"] == expected.code]
    wanted = {finding["fingerprint"] for finding in told if finding["location"]["row"] in expected.rows}
    also = {place["location"]["row"] for finding in told for place in finding["also"]}.intersection(expected.rows)
    matching = [
        row
        for row in confirmed
        if (row["fingerprint"] in wanted or (row["code"] == expected.code and row["location"]["row"] in also))
        and expected.mode in (None, row["mode"])
    ]
    without = [name for name in expected.scenarios if all(row["scenario"] != name for row in matching)]
    if without:
        return f"not confirmed in {', '.join(without)}: {found}"
    effects = {str(row.get("fix")) for row in matching}
    return f"--fix-check says {', '.join(sorted(effects))}" if expected.cured and effects != {"cures"} else ""


if __name__ == "__main__":
    sys.exit(main())
