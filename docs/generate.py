"""Write the pages of ``docs/rules/`` and ``rules/index.py`` from the rules, and bring up to date what the other pages
and README.md show.

    python docs/generate.py           # all, which takes a minute: it runs the commands that pages show
    python docs/generate.py --rules   # the pages and the index of the rules only

A rule's page is what ``amplint explain CODE`` prints, but for its last line. Pages of rules that are gone are removed.
The index has what a check asks of a rule before a file needs it.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from pprint import pformat
from typing import TYPE_CHECKING

from amplint.announcing import row_of
from amplint.explain.rule_families import TITLES
from amplint.explain.rule_page import rule_page
from amplint.plugins import BUILT_IN, load_rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.rule_base import Rule

FOLDER = Path(__file__).resolve().parent / "rules"
RULE_INDEX = FOLDER.parent.parent / "rules" / "index.py"
INDEX = "README.md"
NOTE = "<!-- Written by docs/generate.py. Edit the rule. -->\n\n"
BACK = f"\n[All rules]({INDEX})\n"


def main(arguments: Sequence[str]) -> int:
    """Write what differs and say which files those are."""
    write_rules()
    if "--rules" not in arguments:
        write_shown()
    return 0


def write_shown() -> None:
    """Write the outputs and tables that README.md and the pages show, and the picture of a run."""
    from shown.outputs import with_outputs
    from shown.picture import PICTURE, picture
    from shown.tables import with_tables

    for path in by_hand():
        _write(path, with_outputs(with_tables(path.read_text(encoding="utf-8"))))
    _write(PICTURE, picture())


def by_hand() -> list[Path]:
    """README.md, and the pages beside this file."""
    return [FOLDER.parent.parent / "README.md", *sorted(FOLDER.parent.glob("*.md"))]


def write_rules() -> None:
    """Write the pages and the index of the rules."""
    wanted = pages(load_rules())
    FOLDER.mkdir(exist_ok=True)
    for path in sorted(FOLDER.glob("*.md")):
        if path.name not in wanted:
            path.unlink()
            print(f"removed {path.name}")
    for name, text in wanted.items():
        _write(FOLDER / name, text)
    _write(RULE_INDEX, index_of(load_rules()))


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.name}")


def pages(rules: Sequence[Rule]) -> dict[str, str]:
    """The text of every file of the folder, by its name."""
    written = {page_name(rule): NOTE + rule_page(rule) + BACK for rule in rules}
    return {INDEX: NOTE + "\n".join(_index(rules)) + "\n", **written}


def index_of(rules: Sequence[Rule]) -> str:
    """The text of the index: a row for each module of the built-in rules that has one rule."""
    modules = [type(rule).__module__ for rule in rules]
    rows = {
        module.removeprefix(f"{BUILT_IN}."): row_of(rule)
        for rule, module in zip(rules, modules, strict=True)
        if module.startswith(f"{BUILT_IN}.") and modules.count(module) == 1
    }
    said = "What is known of each rule before it is imported. Written by docs/generate.py: edit the rule."
    return f'"""{said}"""\n\nROWS = {pformat(rows, width=120, sort_dicts=False)}\n'


def page_name(rule: Rule) -> str:
    """The name of a rule's file: its :attr:`Rule.url` follows from it."""
    return f"{rule.code}.md"


def _index(rules: Sequence[Rule]) -> Iterator[str]:
    yield from ("Rules", "=====", "")
    yield "`amplint explain CODE` prints the page of a rule. `--select AMP1` and the like take a family."
    for prefix, family in groupby(rules, lambda rule: rule.code[:4]):
        title = f"{prefix}xx: {TITLES[prefix]}"
        yield from ("", title, "-" * len(title), "")
        yield from ("| code | name | what | severity | fix |", "|---|---|---|---|---|")
        for rule in family:
            yield f"| {' | '.join(_row(rule))} |"


def _row(rule: Rule) -> tuple[str, ...]:
    summary = rule.summary.replace("|", "\\|") + ("" if rule.default else " (off by default)")
    fix = rule.fix.value if rule.fix is not None else "none"
    return f"[{rule.code}]({page_name(rule)})", rule.name, summary, rule.severity.value, fix


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
