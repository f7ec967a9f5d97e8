"""What an editor shows at a place: the dtypes of the tensor there, and the rules that found something there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from amplint.rule_base import documentation
from amplint.server.dtype_table import row_at, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.annotate.origins import Place
    from amplint.annotate.rows import FileDtypes
    from amplint.finding import Finding
    from amplint.rule_base import Announced
    from amplint.server.positions import Places
    from amplint.source import Location


def hover(
    location: Location,
    path: Path,
    found: Iterable[tuple[Finding, Announced]],
    dtypes: FileDtypes | None,
    places: Places,
) -> types.Hover | None:
    """The hover at a location of a file; None where there is nothing to say."""
    near = [(f, rule) for f, rule in found if f.span.start <= location < f.span.end or f.span.start == location]
    row = row_at(dtypes, location) if dtypes is not None else None
    parts: list[str] = []
    if dtypes is not None and row is not None:
        parts.append(table(dtypes, row[1], lambda place: _link(place, path, places)))
    parts += _rules(near)
    if not parts:
        return None
    span = row[0] if row is not None else near[0][0].span
    text = "\n\n---\n\n".join(parts)
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), places.of(path).range(span))


def _rules(near: Iterable[tuple[Finding, Announced]]) -> Iterator[str]:
    for rule in {rule.code: rule for _, rule in near}.values():
        more = f"\n\n[{rule.code} on the web]({rule.url})" if rule.url is not None else ""
        yield f"**{rule.code} {rule.name}**: {documentation(rule)}{more}"


def _link(place: Place, path: Path, places: Places) -> str:
    """``line 12``, which leads there; with the file's name where that is another one."""
    there, row = Path(place.filename), place.span.start.row
    name = f"line {row}" if there == path else f"{there.name}, line {row}"
    return f"[{name}]({places.location(there, place.span).uri}#L{row})"
