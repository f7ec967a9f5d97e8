"""``amplint explain``: one rule, an error text, or a pasted traceback."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amplint.cli.main import message, print_lines, write_out
from amplint.cli.options import format_option, isolated_option, no_plugins_option
from amplint.cli.rules import as_json, as_text
from amplint.cli.terminal import terminal_columns
from amplint.config import Config, UsageError, find_config
from amplint.explain.rule_families import Family, family_of
from amplint.explain.rule_page import rule_page
from amplint.infer.lattice.scenarios import SCENARIOS
from amplint.judging import judging_options, rules_here
from amplint.nearest import nearest
from amplint.plugins import find_rule
from amplint.rule_base import documentation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.rule_base import Rule

STDIN = "-"
_TEXT_FILES = (".log", ".txt", ".out", ".err")
NAME_WORDS = 3
"""More words than this are never meant as the name of a rule."""

_PASTE = (
    "paste the last line of the traceback in quotes, or all of it to `amplint explain -`; "
    "a rule's code such as AMP105 works too"
)


@click.command("explain")
@click.argument("words", nargs=-1, required=True, metavar="CODE | FAMILY | 'ERROR TEXT' | FILE | -")
@format_option("full", "json")
@isolated_option
@no_plugins_option
def command(words: tuple[str, ...], output_format: str, isolated: bool, no_plugins: bool) -> None:
    """Explain a rule by its code or name, an error text, or a traceback from a file or from stdin (-).

    A family, by the beginning of its codes or its name, is answered by the list of its rules.

    \b
    amplint explain AMP105
    amplint explain AMP1
    amplint explain "mat1 and mat2 must have the same dtype, but got Float and BFloat16"
    python train.py 2>&1 | amplint explain -
    amplint explain train.log

    A traceback's files are looked for from the current folder and checked; nothing is run.

    \b
    Exit status: 0 explained, 2 nothing known was in the text.
    """
    rules = rules_here(plugins=not (isolated or no_plugins))
    if words == (STDIN,):
        _explain_text(_read(), rules, output_format, isolated)
        return
    text = " ".join(words)
    is_rule = any(text.casefold() in (rule.name, rule.code.casefold()) for rule in rules)
    family = family_of(text, rules) if not is_rule else None
    if family is not None:
        _list_family(family, output_format)
    elif len(words) == 1 and not is_rule and _is_path(text):
        _explain_text(_read_file(text), rules, output_format, isolated)
    elif (rule := _named_rule(text, rules)) is not None:
        _explain_rule(rule, output_format)
    else:
        _explain_text(text, rules, output_format, isolated)


def _read() -> str:
    if sys.stdin.isatty():
        message("paste the error or the traceback, then press Ctrl-D on a line of its own")
    text = sys.stdin.buffer.read().decode("utf-8", errors="replace")
    if not text.strip():
        raise UsageError(f"there is nothing on stdin: {_PASTE}")
    return text


def _is_path(text: str) -> bool:
    """Whether one word is a file, or could be nothing else."""
    return os.path.exists(text) or text.endswith(_TEXT_FILES) or "/" in text or os.sep in text


def _read_file(name: str) -> str:
    try:
        text = Path(name).read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from error
    if not text.strip():
        raise UsageError(f"there is nothing in {name}: {_PASTE}")
    return text


# ---- rules --------------------------------------------------------------------------------------------------------


def _named_rule(text: str, rules: Sequence[Rule]) -> Rule | None:
    """The rule that a code or a name, or both, name. Raises UsageError for one word that names none."""
    words = text.split()
    if len(words) == 1:
        return find_rule(rules, words[0])
    for rule in rules if len(words) <= NAME_WORDS else ():
        if "".join(words).casefold() in (rule.code.casefold(), (rule.code + rule.name).casefold()):
            return rule
    return None


def _list_family(family: Family, output_format: str) -> None:
    if output_format == "json":
        rules = [as_json(rule) for rule in family.rules]
        document = {"family": {"prefix": family.prefix, "title": family.title, "rules": rules}}
        write_out(json.dumps(document, indent=2) + "\n")
    else:
        write_out(f"{family.heading}\n{'=' * len(family.heading)}\n\n{as_text(family.rules)}")
        message("amplint explain CODE explains one of them")


def _explain_rule(rule: Rule, output_format: str) -> None:
    if output_format == "json":
        document = {"rule": {**as_json(rule), "documentation": documentation(rule)}}
        write_out(json.dumps(document, indent=2) + "\n")
    else:
        write_out(rule_page(rule) + (f"\n{rule.url}\n" if rule.url else ""))


# ---- texts --------------------------------------------------------------------------------------------------------


def _explain_text(text: str, rules: Sequence[Rule], output_format: str, isolated: bool) -> None:
    from amplint.explain.answer import answer
    from amplint.explain.render import document, full
    from amplint.report import Context

    config = Config() if isolated else find_config(Path.cwd())
    judging = Config(device=config.device, torch_version=config.torch_version)
    found = answer(text, judging_options(judging, rules, scenario=[scenario.name for scenario in SCENARIOS]))
    if not found.matches:
        _decline(text, rules)
    context = Context({rule.code: rule for rule in rules}, columns=terminal_columns())
    if output_format == "json":
        write_out(json.dumps(document(found, context), indent=2) + "\n")
    else:
        print_lines(list(full(found, context)))


def _decline(text: str, rules: Sequence[Rule]) -> None:
    """Say what to paste instead. Raises UsageError."""
    words = text.split()
    if len(words) <= NAME_WORDS:
        known = [*(rule.code for rule in rules), *(rule.name for rule in rules)]
        raise UsageError(f"unknown rule or error text '{' '.join(words)}'{nearest('-'.join(words), known)}: {_PASTE}")
    codes = [rule.code for rule in rules if re.search(rf"\b{rule.code}\b", text)]
    if len(codes) == 1:
        raise UsageError(f"this text names {codes[0]}: amplint explain {codes[0]}")
    raise UsageError(f"no mixed-precision error is known in this text: {_PASTE}")
