"""How a use of a deprecated mixed-precision name is written with the name that replaced it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from amplint.finding import Applicability, Edit
from amplint.frozen import dataclass
from amplint.infer.syntax.bodies import once_for_each_node
from amplint.source import Source, Span

if TYPE_CHECKING:
    from amplint.claims.legacy_names import Legacy
    from amplint.infer.syntax.references import Reference


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Edits of one use, and whether they keep its behaviour exactly."""

    edits: tuple[Edit, ...]
    applicability: Applicability = Applicability.SAFE


def rewrite_call(reference: Reference, legacy: Legacy, source: Source, torch: str) -> Rewrite | None:
    """``autocast(False, dtype)`` becomes ``torch.amp.autocast("cuda", enabled=False, dtype=dtype)``.

    None where the arguments cannot be told apart (``*args``, ``**kwargs``) or are not what the old name takes.
    ``torch`` is how the file spells torch.
    """
    call, callee = reference.call, rename(reference, f"{torch}.{legacy.target}", source)
    if call is None or callee is None or not _fits(legacy, call.args, call.keywords):
        return None
    layout = _Layout(source, call)
    if legacy.is_decorator:
        device = f'device_type="{legacy.device}"'
        if call.keywords and not call.args:
            return Rewrite((callee, layout.insert(0, f"{device}, ")))
        if call.args and call.keywords:
            return Rewrite((callee, layout.insert(len(call.args), f"{device}, ")))
        return Rewrite((callee, layout.append(device)))
    leading = [f'"{legacy.device}"']
    names: dict[int, str] = {}
    if legacy.default_dtype is not None:
        leading += _written_out(legacy, call.args, call.keywords, source, torch)
        names = {index: f"{legacy.parameters[index]}=" for index in range(len(call.args))}
    prefix = ", ".join(leading)
    if not layout.starts:
        return Rewrite((callee, layout.insert(0, prefix)))
    edits = [layout.insert(0, f"{prefix}, {names.get(0, '')}")]
    edits += [layout.insert(index, text) for index, text in names.items() if index]
    return Rewrite((callee, *edits))


def ask_device(call: ast.Call, device: str, source: Source) -> Edit:
    """Give a query without arguments the device to ask."""
    return _Layout(source, call).insert(0, device)


def rewrite_partial(
    reference: Reference, partial: ast.Call, legacy: Legacy, source: Source, torch: str
) -> Rewrite | None:
    """``functools.partial(autocast, enabled=False)``; the reference is the first argument.

    Unsafe for an ``autocast`` whose ``enabled`` is left open: a caller may still pass it by position.
    """
    renamed = f"{torch}.{legacy.target}"
    rest = partial.args[1:]
    if not (legacy.is_class or legacy.is_decorator) or not _fits(legacy, rest, partial.keywords, partial=True):
        return None
    if legacy.is_decorator:
        callee = rename(reference, f'{renamed}, device_type="{legacy.device}"', source)
        return Rewrite((callee,)) if callee is not None and not rest else None
    leading = [renamed, f'"{legacy.device}"']
    names: list[str] = []
    safe = True
    if legacy.default_dtype is not None:
        leading += _written_out(legacy, rest, partial.keywords, source, torch)
        names = [f"{legacy.parameters[index]}=" for index in range(len(rest))]
        safe = any(keyword.arg == "enabled" for keyword in partial.keywords)
    callee = rename(reference, ", ".join(leading), source)
    if callee is None:
        return None
    layout = _Layout(source, partial)
    edits = [layout.insert(index, text) for index, text in enumerate(names, start=1)]
    return Rewrite((callee, *edits), Applicability.SAFE if safe else Applicability.UNSAFE)


def rewrite_bare(reference: Reference, legacy: Legacy, source: Source, torch: str) -> Rewrite | None:
    """``@custom_fwd`` becomes ``@torch.amp.custom_fwd(device_type="cuda")``. ``@autocast`` never was right."""
    if not legacy.is_decorator:
        return None
    callee = rename(reference, f'{torch}.{legacy.target}(device_type="{legacy.device}")', source)
    return Rewrite((callee,)) if callee is not None else None


def rewrite_annotation(reference: Reference, legacy: Legacy, source: Source, torch: str) -> Rewrite | None:
    """``scaler: GradScaler`` becomes ``scaler: torch.amp.GradScaler``."""
    callee = rename(reference, f"{torch}.{legacy.target}", source) if legacy.is_class else None
    return Rewrite((callee,)) if callee is not None else None


def rename(reference: Reference, new: str, source: Source) -> Edit | None:
    """Replace the dotted name; None where it does not stand in the source as one (in an f-string of old Pythons)."""
    node = reference.node
    assert isinstance(node, ast.expr)
    span = source.span(node)
    if re.sub(r"[\s\\]+", "", source.segment(span)) != ast.unparse(node):
        return None
    return Edit(span, new)


def _fits(legacy: Legacy, args: list[ast.expr], keywords: list[ast.keyword], *, partial: bool = False) -> bool:
    """Whether these are arguments that the old name takes, all of them told apart."""
    named = [keyword.arg for keyword in keywords]
    if any(isinstance(arg, ast.GeneratorExp) for arg in args):
        return False
    if legacy.target == "amp.GradScaler":
        return "device" not in named and len(args) <= len(legacy.parameters)  # the device goes first, the rest stays
    if any(isinstance(arg, ast.Starred) for arg in args) or None in named:
        return False
    least, most = legacy.positional
    if legacy.target == "amp.custom_bwd" and not partial:
        least = 0 if "bwd" in named else 1
    given = [*legacy.parameters[: len(args)], *named]
    return least <= len(args) <= most and set(named) <= set(legacy.parameters) and len(set(given)) == len(given)


def _written_out(
    legacy: Legacy, args: list[ast.expr], keywords: list[ast.keyword], source: Source, torch: str
) -> list[str]:
    """The old defaults that differ from the new ones: the dtype, and in files that deal with it the weight cache."""
    given = {*legacy.parameters[: len(args)], *(keyword.arg for keyword in keywords)}
    out = [] if "dtype" in given else [f"dtype={torch}.{legacy.default_dtype}"]
    if "cache_enabled" not in given and _deals_with_cache(source.tree):
        out.append("cache_enabled=True")
    return out


@once_for_each_node
def _deals_with_cache(tree: ast.Module) -> bool:
    """Whether a file passes ``cache_enabled`` anywhere, or asks torch for it."""
    names = ("cache_enabled", "is_autocast_cache_enabled", "set_autocast_cache_enabled")
    return any(getattr(n, "arg", getattr(n, "attr", getattr(n, "name", ""))) in names for n in ast.walk(tree))


class _Layout:
    """Where the arguments of a call lie in the text, with the parentheses around them."""

    def __init__(self, source: Source, call: ast.Call) -> None:
        self._source = source
        self._text = source.text
        self._close = source.offset(source.span(call).end) - 1
        place = self._skip(source.offset(source.span(call.func).end), ")")
        place += 1
        arguments: list[ast.expr | ast.keyword] = sorted(
            [*call.args, *call.keywords], key=lambda node: (node.lineno, node.col_offset)
        )
        self.starts: list[int] = []
        self._trailing_comma = False
        for argument in arguments:
            self.starts.append(self._skip(place))
            place = self._skip(source.offset(source.span(argument).end), ")", stop=self._close)
            self._trailing_comma = place < self._close
            place += 1
        self._empty = not arguments

    def insert(self, index: int, text: str) -> Edit:
        """Put text before an argument; before the closing parenthesis where there is none."""
        return self._edit(self.starts[index] if index < len(self.starts) else self._close, text)

    def append(self, text: str) -> Edit:
        """Put an argument after the last one."""
        if self._empty:
            return self._edit(self._close, text)
        return self._edit(self._close, f" {text}" if self._trailing_comma else f", {text}")

    def _skip(self, offset: int, more: str = "", stop: int | None = None) -> int:
        """The first place from here that is not white space, a comment, or one of the characters in ``more``."""
        text = self._text
        while stop is None or offset < stop:
            if text[offset] == "#":
                while text[offset] not in "\r\n":
                    offset += 1
            elif text[offset].isspace() or text[offset] == "\\" or text[offset] in more:
                offset += 1
            else:
                break
        return offset

    def _edit(self, offset: int, text: str) -> Edit:
        place = self._source.location(offset)
        return Edit(Span(place, place), text)
