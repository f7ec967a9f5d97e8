"""JUnit's XML: a suite for each file checked, and in it a failed case for each finding."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import groupby
from typing import TYPE_CHECKING

from amplint.files import display_path
from amplint.report.account import NOT_COUNTED, account, claim, position

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amplint.finding import Finding
    from amplint.report import Context, Line

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot hold, not even by number."""
RUN = "amplint"
"""The suite of what concerns no file that was checked."""


def render(findings: Sequence[Finding], context: Context) -> Iterator[Line]:
    """The run as one XML document. A file without findings is a suite of one case that passed."""
    by_file = {path: list(group) for path, group in groupby(findings, key=lambda finding: finding.filename)}
    root = ET.Element("testsuites", name="amplint")
    for path in sorted({*context.checked, *by_file}, key=str):
        name = str(display_path(path))
        cases = [_case(name, finding, context) for finding in by_file.get(path, [])]
        _suite(root, name, cases or [_element("testcase", name=name, classname=name)])
    if context.errors:
        _suite(root, RUN, [_error(line) for line in context.errors])
    for kind in ("tests", "failures", "errors", "skipped"):
        root.set(kind, str(sum(int(suite.get(kind, "0")) for suite in root)))
    ET.indent(root)
    text = '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode")
    for line in text.split("\n"):
        yield [(line, "")]


def _suite(root: ET.Element, name: str, cases: list[ET.Element]) -> None:
    suite = ET.SubElement(root, "testsuite", name=_legal(name), tests=str(len(cases)))
    for kind, outcome in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(kind, str(sum(case.find(outcome) is not None for case in cases)))
    suite.extend(cases)


def _case(name: str, finding: Finding, context: Context) -> ET.Element:
    case = _element(
        "testcase",
        name=f"{finding.code} {finding.name} {position(finding)}",
        classname=name,
        file=name,
        line=str(finding.span.start.row),
    )
    text = _legal("\n".join(account(finding, context)))
    if context.refuted(finding):
        case.append(_element("skipped", message=NOT_COUNTED))
        return case
    failure = _element("failure", message=claim(finding, context), type=finding.severity.value)
    failure.text = text
    case.append(failure)
    return case


def _error(line: str) -> ET.Element:
    case = _element("testcase", name=line, classname=RUN)
    case.append(_element("error", message=line, type="error"))
    return case


def _element(tag: str, **attributes: str) -> ET.Element:
    return ET.Element(tag, {key: _legal(value) for key, value in attributes.items()})


def _legal(text: str) -> str:
    return _ILLEGAL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
