"""Pages that are complete in themselves: filled templates whose data neither leads out of the page nor breaks it."""

from __future__ import annotations

import html
import json
import re
from importlib import resources

POLICY = html.escape("default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'")
"""Everything is in the page; a browser is told to load nothing."""


def filled(package: str, name: str, **parts: str) -> str:
    """``NAME.html`` of a package with its ``{{parts}}``; ``style`` and ``script`` are ``NAME.css`` and ``NAME.js``."""
    folder = resources.files(package)
    page, style, script = (folder.joinpath(f"{name}.{kind}").read_text("utf-8") for kind in ("html", "css", "js"))
    parts |= {"policy": POLICY, "style": style, "script": script}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], page)


def embedded(data: object) -> str:
    """JSON that neither ends the element that holds it nor starts another."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
