"""The keys of a configuration, each with the kind of value that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amplint.finding import Certainty, Severity
from amplint.nearest import nearest
from amplint.threshold import POSSIBLE, UNASKED

if TYPE_CHECKING:
    from collections.abc import Callable


class KeyProblem(ValueError):
    """A key or a value that no configuration has: one line, without the file that it stands in."""


def values_of(table: dict[str, Any]) -> dict[str, Any]:
    """The values of one table, by key with underscores. Raises KeyProblem for what is unknown or of another kind.

    ``pedantic`` comes as the ``min_certainty`` that it stands for.
    """
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in KEYS:
            raise KeyProblem(f"unknown key '{key}'{nearest(key, KEYS) or '; known keys: ' + ', '.join(KEYS)}")
        values[key.replace("-", "_")] = KEYS[key](key, value)
    if "pedantic" in values:
        pedantic = values.pop("pedantic")
        certainty = values.setdefault("min_certainty", POSSIBLE if pedantic else UNASKED)
        if pedantic and certainty is not POSSIBLE:
            raise KeyProblem(f"'pedantic' means min-certainty = 'possible', and '{certainty.value}' contradicts it")
    return values


def _string(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise KeyProblem(f"'{key}' must be a string")
    return value


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise KeyProblem(f"'{key}' must be true or false")
    return value


def _strings(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise KeyProblem(f"'{key}' must be a list of strings")
    return tuple(value)


def _certainty(key: str, value: object) -> Certainty:
    return Certainty(_one_of(key, value, [level.value for level in Certainty]))


def _severity(key: str, value: object) -> Severity:
    return Severity(_one_of(key, value, [level.value for level in Severity]))


def _one_of(key: str, value: object, known: list[str]) -> str:
    text = _string(key, value)
    if text not in known:
        raise KeyProblem(f"'{key}' is one of {', '.join(known)}, not '{text}'{nearest(text, known)}")
    return text


def _file_ignores(key: str, value: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise KeyProblem(f'\'{key}\' must be a table of PATTERN = [RULES], such as "tests/*" = ["AMP3"]')
    return {pattern: _strings(f"{key}.{pattern}", codes) for pattern, codes in value.items()}


def _factories(key: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(item, str) and ":" in item for item in value.values()):
        raise KeyProblem(f"'{key}' must be a table of Class = 'FILE.py::function'")
    return dict(value)


KEYS: dict[str, Callable[[str, object], Any]] = {
    "extend": _string,
    "select": _strings,
    "extend-select": _strings,
    "ignore": _strings,
    "extend-ignore": _strings,
    "per-file-ignores": _file_ignores,
    "exclude": _strings,
    "extend-exclude": _strings,
    "force-exclude": _flag,
    "respect-gitignore": _flag,
    "scenarios": _strings,
    "device": _string,
    "torch-version": _string,
    "baseline": _string,
    "min-certainty": _certainty,
    "min-severity": _severity,
    "pedantic": _flag,
    "unsafe-fixes": _flag,
    "output-format": _string,
    "plugins": _strings,
    "factories": _factories,
}
