"""Whether a text, checked alone in an empty folder, still gives a finding."""

from __future__ import annotations

import ast
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from amplint import contents
from amplint.engine import check_file
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.engine import Options
    from amplint.finding import Certainty, Finding

NAME = "report.py"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What has to stay the same of a finding."""

    code: str
    scenarios: tuple[str, ...]
    certainty: Certainty

    @classmethod
    def of(cls, finding: Finding) -> Wanted:
        return cls(finding.code, finding.scenarios, finding.certainty)


class Alone:
    """Checks texts in a folder that holds nothing else, by the same options."""

    def __init__(self, folder: Path, options: Options, wanted: Wanted) -> None:
        self._path = folder / NAME
        self._options = options
        self._wanted = wanted

    def finding(self, text: str, rows: range) -> Finding | None:
        """The wanted finding, if the text gives it in one of these rows or names one as its further place."""
        self._path.write_text(text, encoding="utf-8")
        contents.look_again()
        try:
            findings = check_file(self._path, self._options).findings
        except Exception:  # code that nobody would write may be more than amplint can bear
            return None
        for finding in findings:
            if Wanted.of(finding) == self._wanted and covers(finding, rows):
                return finding
        return None

    def shows(self, text: str, rows: range) -> bool:
        """Whether it does."""
        return self.finding(text, rows) is not None


@contextmanager
def empty_folder() -> Iterator[Path]:
    """A folder of its own, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="amplint-report-") as name:
        yield Path(name).resolve()


def covers(finding: Finding, rows: range) -> bool:
    """Whether a finding, or one of its further places in the same file, begins in one of the rows."""
    also = [place.span for place in finding.also if place.filename == finding.filename]
    return any(span.start.row in rows for span in (finding.span, *also))


def statements(tree: ast.AST) -> list[ast.stmt]:
    """All statements, in an order that is the same for equal trees."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]


def rows_of(statement: ast.stmt) -> range:
    """The rows of a statement itself: of one that holds others, without them."""
    decorators: Sequence[ast.expr] = getattr(statement, "decorator_list", ())
    first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
    inner = [node for node in ast.iter_child_nodes(statement) if isinstance(node, (ast.stmt, ast.ExceptHandler))]
    last = min((node.lineno for node in inner), default=(statement.end_lineno or first) + 1)
    return range(first, max(last, statement.lineno + 1))
