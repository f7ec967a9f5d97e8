"""Generates ``newer.json``: what newer releases of torch do otherwise than the one that the tables are measured on.

Usage: ``python -m amplint.data.generate_newer PYTHON... --work FOLDER``, each PYTHON an interpreter with a
newer release of torch in a CUDA build (no GPU is needed), expecttest and PyYAML (half an hour for each).

In each release the generators of the tables run, with this source, and write into FOLDER/RELEASE; what lies there is
not measured again. The newest is measured whole. Those between are for ``ops.json`` and ``layers.json`` only asked
about what the newest does otherwise: that tells since when.

``tables`` holds, by table, entry and release, what ``amplint.data.newer`` reads. Operations that a release gains a
kernel for on cuda say so in ``unsupported_until``, those whose result changes in ``before``, as in ``ops.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amplint.data._apart import progress
from amplint.data.newer import Entry, merged, refusal_key

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE = Path(__file__).parent
GENERATORS = {
    "autocast_policy": "generate_policy",
    "low_precision_support": "generate_support",
    "layers": "generate_layers",
    "ops": "generate_ops",
}
QUICK, SLOW = ("autocast_policy", "low_precision_support"), ("layers", "ops")
REFUSALS = "refusals"
Table = dict[str, Entry]
Tables = dict[str, Table]


def read(table: str, folder: Path) -> Table:
    """The entries of a table as a generator wrote it; refusals of CPU kernels by what tells them apart."""
    if table == REFUSALS:
        rows = json.loads((folder / "low_precision_support.json").read_text())[REFUSALS]
        return {refusal_key(row): {key: row[key] for key in ("has", "lacks") if key in row} for row in rows}
    entries: Table = json.loads((folder / f"{table}.json").read_text())["ops"]
    return entries


def measure(python: str, table: str, folder: Path, only: list[str] | None = None) -> None:
    """Run a table's generator in another release, unless its result lies there; ``only`` for some entries."""
    out = folder / f"{table}.json"
    if out.exists():
        return
    if only == []:
        out.write_text(json.dumps({"ops": {}}))
        return
    progress(f"{table} in {folder.name}: {'all' if only is None else len(only)} entries")
    command = [python, "-m", f"amplint.data.{GENERATORS[table]}", str(out)]
    source = str(HERE.parent.parent)
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, *(["--only", *only] if only else [])], cwd=source, env=environment, check=True)


def release_of(python: str) -> str:
    """The release of torch that an interpreter has, such as 2.14.1."""
    code = "import torch; print(torch.__version__.partition('+')[0])"
    return subprocess.run([python, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def differing(table: str, folder: Path) -> list[str]:
    """The entries that a release has otherwise than the table beside this file, or beyond it."""
    base, new = read(table, HERE), read(table, folder)
    return sorted(name for name in {*base, *new} if base.get(name) != new.get(name))


def change(before: Entry | None, after: Entry | None) -> Entry | None:
    """What turns one entry into the other."""
    if after is None:
        return None
    before = before or {}
    gone = {key: None for key in before if key not in after}
    return {**gone, **{key: value for key, value in after.items() if before.get(key) != value}}


def with_history(table: str, before: Entry | None, after: Entry | None, release: str, last: str) -> Entry | None:
    """An entry of ``ops`` that also says what the release before, ``last``, lacked or did otherwise."""
    if table != "ops" or before is None or after is None:
        return after
    kept: Entry = {key: before[key] for key in ("unsupported_until", "before") if key in before}
    after = {**after, **kept}
    missing = set(before.get("unsupported", {}).get("cuda", ())) - set(after.get("unsupported", {}).get("cuda", ()))
    if missing:
        until = after.get("unsupported_until", {})
        gained = {**until.get("cuda", {}), **dict.fromkeys(sorted(missing), last)}
        after = {**after, "unsupported_until": {**until, "cuda": gained}}
    if before["result"] != after["result"]:
        after = {**after, "before": {**after.get("before", {}), release: before["result"]}}
    return after


def changes(table: str, base: Table, measured: list[tuple[str, Table]], last: str) -> dict[str, dict[str, Any]]:
    """By name and release, the changes of a table's entries, from the oldest release on."""
    found: dict[str, dict[str, Any]] = {}
    state: dict[str, Entry | None] = dict(base)
    for release, entries in measured:
        for name in sorted({*state, *entries}):
            before = state.get(name)
            after = with_history(table, before, entries.get(name), release, last)
            if before != after:
                found.setdefault(name, {})[release] = step = change(before, after)
                state[name] = None if step is None else merged(before or {}, step)
        last = release
    return dict(sorted(found.items()))


def short(release: str) -> str:
    """2.14 for 2.14.1."""
    return ".".join(release.split(".")[:2])


def collected(tables: Iterable[str], releases: list[str], work: Path) -> dict[str, Any]:
    """What the releases do otherwise, by table."""
    last = short(json.loads((HERE / "ops.json").read_text())["torch"])
    found: dict[str, Any] = {}
    for table in tables:
        own = read(table, HERE)
        measured = [(short(release), read(table, work / release)) for release in releases]
        if table in SLOW:
            asked = set(differing(table, work / releases[-1]))
            measured = [(r, {**{n: own[n] for n in own if n not in asked}, **entries}) for r, entries in measured]
        found[table] = changes(table, own, measured, last)
    return found


def generate(pythons: list[str], work: Path, out: Path) -> dict[str, Any]:
    """Measure what is not there yet, and write the whole table.

    What autocast does is written first, since the measuring of operations reads it.
    """
    by_release = {release_of(python): python for python in pythons}
    releases = sorted(by_release, key=lambda release: [int(part) for part in release.split(".")])
    for release in releases:
        (work / release).mkdir(parents=True, exist_ok=True)
        for table in QUICK:
            measure(by_release[release], table, work / release)
    tables = collected((*QUICK, REFUSALS), releases, work)
    dump(releases, {**tables, **{table: {} for table in SLOW}}, out)
    for release in reversed(releases):
        for table in SLOW:
            only = differing(table, work / releases[-1]) if release != releases[-1] else None
            measure(by_release[release], table, work / release, only)
    tables |= collected(SLOW, releases, work)
    dump(releases, tables, out)
    return tables


def dump(releases: list[str], tables: dict[str, Any], path: Path) -> None:
    """Write the table with one entry a line, so that differences can be read."""
    base = json.loads((HERE / "ops.json").read_text())["torch"]
    head = {"generator": "python -m amplint.data.generate_newer PYTHON...", "base": base, "releases": releases}
    top = "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items())
    parts = []
    for table, named in tables.items():
        rows = ",\n".join(f"   {json.dumps(name)}: {json.dumps(entry)}" for name, entry in named.items())
        parts.append(f"  {json.dumps(table)}: " + ("{\n" + rows + "\n  }" if rows else "{}"))
    path.write_text("{\n" + top + ' "tables": {\n' + ",\n".join(parts) + "\n }\n}\n")


def main() -> None:
    """Write the table beside this file."""
    parser = argparse.ArgumentParser(description="Measure what newer releases of torch do otherwise.")
    parser.add_argument("python", nargs="+", metavar="PYTHON")
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER")
    options = parser.parse_args()
    tables = generate(options.python, options.work.absolute(), HERE / "newer.json")
    print(f"changed entries: { {table: len(entries) for table, entries in tables.items()} }", file=sys.stderr)


if __name__ == "__main__":
    main()
