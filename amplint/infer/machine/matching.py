"""What the patterns of ``match`` statements bind."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.infer.lattice.joining import element_of
from amplint.infer.lattice.values import UNKNOWN, Sequence, Value

if TYPE_CHECKING:
    from amplint.infer.state.frame import Frame


def capture(frame: Frame, pattern: ast.pattern, subject: Value) -> None:
    """Bind the names of a pattern that matched."""
    if isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None:
            capture(frame, pattern.pattern, subject)
        if pattern.name is not None:
            frame.bind(pattern.name, subject)
    elif isinstance(pattern, ast.MatchSequence):
        _capture_items(frame, pattern, subject)
    else:
        for node in ast.walk(pattern):
            name = getattr(node, "name", None) or getattr(node, "rest", None)
            if isinstance(name, str):
                frame.bind(name, UNKNOWN)


def _capture_items(frame: Frame, pattern: ast.MatchSequence, subject: Value) -> None:
    items = subject.items if isinstance(subject, Sequence) else None
    element = element_of(frame.session, subject) if isinstance(subject, Sequence) else None
    starred = any(isinstance(part, ast.MatchStar) for part in pattern.patterns)
    for number, part in enumerate(pattern.patterns):
        if isinstance(part, ast.MatchStar):
            if part.name is not None:
                frame.bind(part.name, UNKNOWN if element is None else Sequence(None, element, True))
        elif items is not None and not starred and len(items) == len(pattern.patterns):
            capture(frame, part, items[number])
        else:
            capture(frame, part, UNKNOWN if element is None else element)
