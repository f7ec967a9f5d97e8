"""The examples of rules: the pair that stands in each rule, and the files of a folder.

A file ``CODE/bad_what_it_shows.py`` or ``CODE/good_what_it_shows.py`` is an example of the rule ``CODE``. Comments on
its first lines set what an :class:`~amplint.rule_base.Example` sets, one a line in the order of :data:`SETTINGS`, with
an empty line after them::

    # scenario: autocast-bf16
    # device: cpu

Nothing else may stand there, and nothing that says what is so without it.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from amplint.files import display_path
from amplint.infer.lattice.scenarios import DEVICES, scenario_names
from amplint.rule_base import Example, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

KINDS = ("bad", "good")
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
    """One example. ``name`` is that of its file, or ``bad`` or ``good`` where it stands in the rule; ``where`` is the
    file, or the attribute of the rule's class."""

    rule: Rule
    name: str
    example: Example
    where: str

    @property
    def is_bad(self) -> bool:
        return self.name.startswith("bad")


class Problem(NamedTuple):
    """What is wrong with a rule or with one of its examples, and on which of its lines if on one."""

    where: str
    row: int | None
    text: str

    def __str__(self) -> str:
        return f"{self.where}:{self.row}: {self.text}" if self.row is not None else f"{self.where}: {self.text}"


def cases(rules: Sequence[Rule], folder: Path | None, problems: list[Problem]) -> list[Case]:
    """The examples of rules: each one's own, then those in the folder, by name.

    A file of the folder that is no example of a rule, or does not say right how it is judged, is a problem.
    """
    found = [case for rule in rules for case in _own(rule)]
    if folder is None or not folder.is_dir():
        return found
    by_code = {rule.code: rule for rule in rules}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or "__pycache__" in path.parts:
            continue
        where, rule = display_path(path), by_code.get(path.parent.name)
        if rule is None or path.parent.parent != folder or not re.fullmatch(r"(bad|good)_.+\.py", path.name):
            problems.append(
                Problem(where, None, "is not an example: examples are files CODE/bad_*.py and CODE/good_*.py")
            )
            continue
        try:
            found.append(Case(rule, path.stem, parse(path.read_text(encoding="utf-8")), where))
        except ValueError as error:
            problems.append(Problem(where, None, str(error)))
    return found


def _own(rule: Rule) -> Iterator[Case]:
    where = place_of(rule)
    for name, examples in zip(KINDS, (rule.bad, rule.good), strict=True):
        yield from (Case(rule, name, example, f"{where}.{name}") for example in examples)


def place_of(rule: Rule) -> str:
    """The class of a rule, as ``module.Class``."""
    return f"{type(rule).__module__}.{type(rule).__qualname__}"


def parse(text: str) -> Example:
    """The example of a file's text. Raises ValueError where its first lines are not as they should be."""
    header = list(takewhile(lambda line: line.startswith("#"), text.splitlines()))
    settings: dict[str, str] = {}
    for line in header:
        match = _SETTING.fullmatch(line)
        if match is None or match[1] not in SETTINGS or not SETTINGS[match[1]].fullmatch(match[2]):
            raise ValueError(f"not a setting of an example: {line}")
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
