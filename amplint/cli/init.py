"""``amplint init``: write a first configuration, with the scenarios that the project's own code shows."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amplint.cli.main import message
from amplint.config import CONFIG_NAMES, Configurations, UsageError, parse_toml
from amplint.files import display_path
from amplint.infer.lattice.scenarios import SCENARIOS, scenario_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.shown_scenarios import Shown

_OWN, _SHARED = CONFIG_NAMES
_PLACES = 3
"""Places of each scenario that are named."""

_MORE = """\
# Further keys, each with an example:
# torch-version = "2.6"                  # instead of what the project requires
# device = "cpu"                         # whose cast policy: cuda, cpu, mps, xpu
# extend-select = ["AMP113"]             # rules besides those that are on by default
# ignore = ["AMP108"]                    # rules to leave out
# per-file-ignores = {"tests/" = ["AMP3"]}
# extend-exclude = ["third_party/"]      # what to pass over: patterns as in .gitignore
# force-exclude = true                   # also where it is named, as pre-commit does
# min-certainty = "proven"               # or likely (the default), or possible
# min-severity = "error"                 # or warning (the default)
"""


@click.command("init")
@click.argument("folder", default=".", type=click.Path(exists=True, file_okay=False))
def command(folder: str) -> None:
    """Write a configuration for FOLDER, by default this one, with the scenarios that its own code shows.

    It is appended to pyproject.toml as [tool.amplint] where there is such a file, else it is a new amplint.toml. What
    is there already is never changed.

    \b
    Exit status: 0 written, 2 there is a configuration already, or the file cannot be written.
    """
    from amplint.shown_scenarios import shown_scenarios

    root = Path(os.path.abspath(folder))
    path, before = _target(root)
    held = Configurations().of(root.parent)
    shown = shown_scenarios(root)
    after = _appended(path, before, _text(shown, root))
    _write(path, before, after)
    found = ", ".join(_by_scenario(shown)) or "none, so the default ones are judged by, each where the code runs so"
    click.echo(f"Wrote {display_path(path)}. Scenarios that the code shows: {found}.", err=True)
    if held is not None and held.path is not None:
        base = os.path.relpath(held.path, root)
        message(f'note: so far {display_path(held.path)} held here; to keep what it says, add extend = "{base}"')


def _target(root: Path) -> tuple[Path, bytes | None]:
    """The file to write, and what it holds, None for a new one. Raises UsageError where a configuration is there."""
    own, shared = root / _OWN, root / _SHARED
    if own.exists():
        raise UsageError(f"{display_path(own)} is there already: edit it; amplint init overwrites nothing")
    if not shared.exists():
        return own, None
    try:
        before = shared.read_bytes()
        table = parse_toml(before.decode("utf-8-sig")).get("tool", {})
    except OSError as error:
        raise UsageError(f"cannot read {display_path(shared)}: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{display_path(shared)} is not valid TOML: {error}") from error
    if isinstance(table, dict) and "amplint" in table:
        raise UsageError(
            f"{display_path(shared)} has a table [tool.amplint] already: edit it; amplint init overwrites nothing"
        )
    return shared, before


def _appended(path: Path, before: bytes | None, text: str) -> bytes:
    """The file with the configuration at its end, in its own kind of line ends. Raises UsageError."""
    if before is None:
        return text.encode()
    end = "\r\n" if b"\r\n" in before else "\n"
    gap = "" if not before.strip() else end if before.endswith(b"\n") else 2 * end
    after = before + (gap + f"[tool.amplint]\n{text}".replace("\n", end)).encode()
    try:
        parse_toml(after.decode("utf-8-sig"))
    except ValueError as error:
        hint = "write the table by hand, or make an amplint.toml"
        raise UsageError(f"nothing can be appended to {display_path(path)}, whose tables are inline: {hint}") from error
    return after


def _write(path: Path, before: bytes | None, after: bytes) -> None:
    from amplint.fix.writing import FixError, write_atomically

    try:
        if before is None:
            with path.open("xb") as file:
                file.write(after)
        else:
            write_atomically(path, before, after)
    except OSError as error:
        raise UsageError(f"cannot write {display_path(path)}: {error.strerror or error}") from error
    except FixError as error:
        raise UsageError(str(error)) from error


def _by_scenario(shown: Sequence[Shown]) -> dict[str, list[Shown]]:
    """What shows each scenario, scenarios in the order of the table."""
    return {
        scenario.name: found
        for scenario in SCENARIOS
        if (found := [one for one in shown if one.scenario == scenario.name])
    }


def _text(shown: Sequence[Shown], root: Path) -> str:
    return "\n".join((*_scenarios(shown, root), "", _MORE))


def _scenarios(shown: Sequence[Shown], root: Path) -> Iterator[str]:
    by_scenario = _by_scenario(shown)
    names = scenario_names()
    yield "# The ways of running that all code here is judged for; without this key the default ones, each where the"
    yield f"# code runs so. Known: {', '.join(names[:7])},"
    yield f"# {', '.join(names[7:])}."
    if not by_scenario:
        yield "# No autocast, and no precision of a trainer or of loaded weights, is set in this folder's code."
        yield '# scenarios = ["autocast-bf16"]'
        return
    for name, found in by_scenario.items():
        for one in found[:_PLACES]:
            yield f"# {name}: {one.text} in {one.place.path.relative_to(root).as_posix()}:{one.place.row}"
        if len(found) > _PLACES:
            yield f"# {name}: and {len(found) - _PLACES} more"
    yield f"scenarios = {json.dumps(list(by_scenario))}"
