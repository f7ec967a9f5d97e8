"""AMP900, amplint's own code: a comment that is meant to silence findings and silences none."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from amplint.finding import Applicability, Severity
from amplint.nearest import nearest
from amplint.rule_base import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amplint.claims.suspect import Suspect
    from amplint.infer.state.facts import FileFacts
    from amplint.rule_base import Announced
    from amplint.suppression.directives import Selector


class UnusedSuppression(Rule):
    """A comment is meant to silence findings, and silences none.

    What it does
    ------------
    Reports a code in `# amplint: ignore[...]`, `# amplint: ignore-file[...]` or `# noqa: ...` of which nothing is found
    there, a comment without codes that silences nothing, a code that no rule has, and spellings that amplint does not
    read, such as `# amplint: disable=AMP104`. A code of a rule that this run does not select is left alone, and so are
    a code that silences what only `--pedantic` shows, codes of other tools, and `# noqa` without codes.

    Why it is bad
    -------------
    A mistyped comment silences nothing, and its author thinks that it does. One whose finding is gone will silence the
    next finding on its line, which nobody has looked at.

    How it shows
    ------------
    Nothing happens when the code runs.

    Example
    -------
    ```python
    y = x.float()  # amplint: ignore[AMP104]  nothing is found here any more
    ```

    Fix safety
    ----------
    Safe: the dead code is taken out of the comment, or the comment where nothing is left of it. Reasons and what other
    tools read stay. Unsafe for a code whose letters no rule has: it may be one of a rule pack that is not installed.
    `# amplint: ignore[AMP104, AMP900]` keeps a comment that is not used at the moment.
    """

    code = "AMP900"
    name = "unused-suppression"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    tokens = ()

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        return ()


UNUSED = UnusedSuppression()


class Rules:
    """What comments are judged by: the rules of a run, and all those that a comment may name.

    ``known`` is None where a comment may name rules that were not loaded.
    """

    def __init__(self, selected: Sequence[Announced], known: Sequence[Announced] | None) -> None:
        self._known = known
        self._named = known if known is not None else selected
        self._selected = frozenset(rule.code for rule in selected)
        self._families = tuple(sorted({letters[0] for rule in self._named if (letters := _LETTERS.match(rule.code))}))

    def may_report(self, data: bytes) -> bool:
        """Whether these bytes can hold a comment that is reported."""
        lower = data.lower()
        mentioned = UNUSED.code in self._selected and (b"amplint" in lower or b"noqa" in lower)
        return mentioned and _mention(self._families).search(data) is not None

    def decide(self, selector: Selector) -> bool:
        """Whether this run finds all that a selector names and that is on by default."""
        named = [rule for rule in self._named if names(selector, rule)]
        if self._known is None:
            named = [rule for rule in named if selector.text.upper() == rule.code or selector.text.lower() == rule.name]
        return any(rule.code in self._selected for rule in named) and self._all_on(named)

    def decide_all(self) -> bool:
        """Whether this run finds all that is on by default."""
        return self._known is not None and self._all_on(self._known)

    def _all_on(self, rules: Iterable[Announced]) -> bool:
        return all(rule.code in self._selected for rule in rules if rule.default)

    def unknown(self, selector: Selector) -> bool:
        """Whether no rule has that code, prefix or name."""
        return self._known is not None and not any(names(selector, rule) for rule in self._known)

    def ours(self, selector: Selector) -> bool:
        """Whether a code of a ``noqa`` is ours and not another tool's."""
        letters = _LETTERS.match(selector.text.upper())
        return letters is not None and letters[0] in self._families and not self.unknown(selector)

    def of_other_packs(self, selector: Selector) -> bool:
        """Whether a code that no rule has may be one of a pack that is not loaded here: none has its letters."""
        letters = _LETTERS.match(selector.text)
        return letters is not None and letters[0] not in self._families

    def nearest(self, selector: Selector) -> str:
        """`` (did you mean 'x'?)``: a code for what has digits, else a name."""
        coded = any(sign.isdigit() for sign in selector.text)
        return nearest(selector.text, [rule.code if coded else rule.name for rule in self._named])


_LETTERS = re.compile(r"[A-Z]+")


@lru_cache(maxsize=8)
def _mention(families: tuple[str, ...]) -> re.Pattern[bytes]:
    codes = "|".join(families)
    return re.compile(rf"amplint|noqa[^\n]*(?:{codes})[0-9]".encode(), re.IGNORECASE)


def names(selector: Selector, rule: Announced) -> bool:
    """Whether a code, prefix or name means a rule."""
    return rule.code.startswith(selector.text.upper()) or selector.text.lower() == rule.name
