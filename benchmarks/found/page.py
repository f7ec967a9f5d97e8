"""``docs/found.md``: the cases and what their runs said, as a page; and what a written page says."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from found.case import Case

NOTE = "<!-- Written by python benchmarks/found --write docs/found.md. Edit the cases. -->\n\n"
_ROW = re.compile(r"^\| `(\w+)` \|.*\| `` (.*) `` \|", re.MULTILINE)


def page(cases: Mapping[str, Case], errors: Mapping[str, str]) -> str:
    """The text of the page; ``errors`` is what the run of each case said."""
    return NOTE + "\n".join(_lines(cases, errors)) + "\n"


def errors(text: str) -> dict[str, str]:
    """What a page says each run said, by case."""
    return {name: error.replace("\\|", "|") for name, error in _ROW.findall(text)}


def _lines(cases: Mapping[str, Case], errors: Mapping[str, str]) -> Iterator[str]:
    reported = {name: case for name, case in cases.items() if case.code is not None}
    packages = sorted({case.package for case in reported.values()})
    counts = Counter(case.code for case in reported.values())
    yield from ("Found in current releases", "=========================", "")
    yield from textwrap.wrap(
        f"{len(reported)} findings in {len(packages)} packages that are real defects: each runs clean in float32 and "
        "fails in the scenario named, at the line that `amplint check` reports. The smallest module or call that shows "
        "one is in `benchmarks/found/cases/`, in the file of its name. They run on the CPU by CUDA's cast policy, or "
        "by the CPU's own where the scenario says so:",
        120,
    )
    yield from ("", "```sh", "python benchmarks/found             # all, with the releases installed")
    yield from (f"python benchmarks/found --case {next(iter(cases), 'NAME')}", "```", "")
    by_rule = ", ".join(f"{code} {counts[code]}" for code in sorted(filter(None, counts)))
    yield from textwrap.wrap(f"By rule: {by_rule}.", 120)
    for package in packages:
        own = {name: case for name, case in reported.items() if case.package == package}
        yield from _table(f"{package} {', '.join(sorted({case.release for case in own.values()}))}", own, errors)
    missed = {name: case for name, case in cases.items() if case.code is None}
    if missed:
        yield from _table("Not reported by amplint", missed, errors)


def _table(title: str, cases: Mapping[str, Case], errors: Mapping[str, str]) -> Iterator[str]:
    yield from ("", title, "-" * len(title), "")
    yield from ("| case | release | line | rule | scenario | error | what breaks |", "|---|---|---|---|---|---|---|")
    for name, case in sorted(cases.items(), key=lambda item: (item[1].path, item[1].line)):
        rule = f"[{case.code}](rules/{case.code}.md)" if case.code else "none"
        error = errors[name].replace("|", "\\|")
        release = f"{case.package} {case.release}"
        scenario = case.scenario if case.device == "cuda" else f"{case.scenario}, {case.device}"
        yield f"| `{name}` | {release} | `{case.place}` | {rule} | {scenario} | `` {error} `` | {case.breaks} |"
