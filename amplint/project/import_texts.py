"""Import statements, told from the text of a file without parsing it, wherever they stand and however they wrap."""

from __future__ import annotations

import re

FROM = re.compile(
    rb"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]*import\b[ \t]*(\((?:#[^\n]*|[^)#])*\)|(?:\\\r?\n|[^\n;])*)", re.MULTILINE
)
"""``from module import names``: the dots before the module, the module, and what stands behind ``import``."""
PLAIN = re.compile(rb"^[ \t]*import[ \t]+((?:\\\r?\n|[^\n;])+)", re.MULTILINE)
"""``import modules``: what stands behind ``import``."""


def without_imports(text: bytes) -> bytes:
    """A text without its import statements."""
    return PLAIN.sub(b"", FROM.sub(b"", text))
