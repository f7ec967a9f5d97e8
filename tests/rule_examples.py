"""The examples of rules: the pair that stands in each rule, and the files of ``fixtures/rules/``.

A file is called ``bad_`` or ``good_`` and what it shows. Comments on its first lines set what an
:class:`~amplint.rule_base.Example` sets, one a line in the order of :data:`SETTINGS`, with an empty line after them::

    # scenario: autocast-bf16
    # device: cpu

Nothing else may stand there, and nothing that says what is so without it.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.lattice.scenarios import DEVICES, scenario_names
from amplint.plugins import load_rules
from amplint.rule_base import Example, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "rules"
RULES = tuple(rule for rule in load_rules() if rule.code != "AMP901")
DEVICE = Example("").device
SETTINGS = {
    "scenario": re.compile("|".join(scenario_names())),
    "device": re.compile("|".join(device for device in DEVICES if device != DEVICE)),
    "torch-version": re.compile(r"\d+\.\d+"),
    "emulated": re.compile("yes"),
    "pedantic": re.compile("yes"),
}
"""The settings in their order, and what may be said of each."""

_SETTING = re.compile(r"# ([a-z-]+): (\S+)")


class Case(NamedTuple):
    """One example. ``name`` is that of its file, or ``bad`` or ``good`` where it stands in the rule."""

    rule: Rule
    name: str
    example: Example


def bad(rule: Rule) -> list[Case]:
    """The rule's own bad example, then those in files, by name."""
    return [*(Case(rule, "bad", example) for example in rule.bad), *_in_files(rule, "bad")]


def good(rule: Rule) -> list[Case]:
    """The rule's own good example, then those in files, by name."""
    return [*(Case(rule, "good", example) for example in rule.good), *_in_files(rule, "good")]


def every_bad() -> list[Case]:
    return [case for rule in RULES for case in bad(rule)]


def every_good() -> list[Case]:
    return [case for rule in RULES for case in good(rule)]


def ids(cases: Sequence[Case]) -> list[str]:
    return [f"{case.rule.code}-{case.name}" for case in cases]


def parse(text: str) -> Example:
    """The example of a file's text. Raises ValueError where its first lines are not as they should be."""
    header = list(takewhile(lambda line: line.startswith("#"), text.splitlines()))
    settings: dict[str, str] = {}
    for line in header:
        match = _SETTING.fullmatch(line)
        if match is None or match[1] not in SETTINGS or not SETTINGS[match[1]].fullmatch(match[2]):
            raise ValueError(f"no setting of an example: {line}")
        settings[match[1]] = match[2]
    if [f"# {name}: {settings[name]}" for name in SETTINGS if name in settings] != header:
        raise ValueError(f"an example sets each of {', '.join(SETTINGS)} at most once, in this order")
    if header and text.splitlines()[len(header) :][:1] != [""]:
        raise ValueError("an empty line ends the settings of an example")
    return Example(
        text,
        scenario=settings.get("scenario"),
        device=settings.get("device", DEVICE),
        torch_version=settings.get("torch-version"),
        emulated="emulated" in settings,
        pedantic="pedantic" in settings,
    )


@cache
def _in_files(rule: Rule, kind: str) -> list[Case]:
    paths = sorted((FOLDER / rule.code).glob(f"{kind}_*.py"))
    return [Case(rule, path.stem, parse(path.read_text(encoding="utf-8"))) for path in paths]
