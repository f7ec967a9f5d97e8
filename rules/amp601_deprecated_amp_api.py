"""AMP601: names of ``torch.cuda.amp`` and ``torch.cpu.amp``, and the queries that went with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from amplint.claims.legacy_names import DEPRECATED_SINCE, LEGACY, Legacy
from amplint.claims.legacy_uses import legacy_uses
from amplint.claims.refused_calls import RefusedCall, refused_calls
from amplint.claims.surroundings import Surroundings
from amplint.rewriting.legacy_imports import Group, groups_of, unused_imports
from amplint.rule import ASSUMED, FORCED, Applicability, Example, Fix, Rule, Severity, Standing, Suspect, doubts

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Visit


_FIRST_OF_2 = (2, 0)


class DeprecatedAmpApi(Rule):
    """The code uses `torch.cuda.amp`, `torch.cpu.amp` or an autocast query of one device, deprecated since torch 2.4.

    What it does
    ------------
    Reports every use of `autocast`, `GradScaler`, `custom_fwd` and `custom_bwd` from `torch.cuda.amp` or
    `torch.cpu.amp`, and of `torch.is_autocast_cpu_enabled`, `torch.get_autocast_gpu_dtype` and their relatives, through
    whatever import or alias. An import that others may read out of the file (`__init__.py`, `__all__`) is reported
    where it stands; one that nothing uses warns of nothing, so that it is only `possible`. An annotation warns of
    nothing either: it is rewritten with the other uses only. Silent below torch 2.4, and where the file chooses by
    torch's version or falls back after an exception. Where the project still supports a release without the successor
    (`torch.amp.autocast` is there from 1.13 on, `torch.amp.GradScaler` from 2.3, the others from 2.4), the finding has
    no fix. It is no more than likely there, and where nothing states which releases the project supports, unless all of
    torch 2 have the successor.

    A `torch.get_autocast_gpu_dtype()` that may ask the wrong device is AMP602's.

    Reports calls of autocast and GradScaler with the arguments of the other API as well: a parameter that the class
    does not have or that is missing (`torch.amp.GradScaler(device_type="cuda")`, `torch.amp.autocast(enabled=True)`),
    and a boolean by position where the new names take a dtype or a device. Where a `try` imports the new name and falls
    back to the old one, the call has to suit the new one.

    Why it is bad
    -------------
    The old names are bound to one device, warn at each use and will go. Replacing them by hand goes wrong easily:
    `torch.amp.autocast` takes its arguments in another order, and without `dtype` it inherits the dtype of the region
    around it, while `torch.cuda.amp.autocast()` always means float16.

    How it shows
    ------------
    ```text
    FutureWarning: `torch.cuda.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cuda', args...)`
    DeprecationWarning: torch.get_autocast_gpu_dtype() is deprecated. Please use torch.get_autocast_dtype('cuda')
    TypeError: GradScaler.__init__() got an unexpected keyword argument 'device_type'
    TypeError: autocast.__init__() missing 1 required positional argument: 'device_type'
    TypeError: set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not bool
    ```

    Example
    -------
    ```python
    from torch.cuda.amp import autocast

    with autocast(use_amp):
        loss = model(batch)
    ```
    Use instead:
    ```python
    import torch

    with torch.amp.autocast("cuda", dtype=torch.float16, enabled=use_amp):
        loss = model(batch)
    ```

    Fix safety
    ----------
    Safe. Positional arguments are named, the old default dtype is written out, and imports follow. When every use of an
    imported name can be rewritten, one fix rewrites them all and drops the import; `__init__.py` and names in `__all__`
    keep it. The weight cache, which the old names always switched on, is written out in files that mention
    `cache_enabled`. The fix is unsafe where the file compares classes (`isinstance` with the old class), where a
    `functools.partial` leaves `enabled` to its callers, and for `is_autocast_*_enabled` in files that use TorchScript,
    which does not know the new form, and where an argument gets the name that the callee knows. There is none for
    `*args`, `**kwargs`, a call inside an f-string and the bare class as a value.
    """

    code: ClassVar[str] = "AMP601"
    name: ClassVar[str] = "deprecated-amp-api"
    severity: ClassVar[Severity] = Severity.WARNING
    of_weights = False
    tokens: ClassVar[tuple[str, ...]] = ("autocast", "GradScaler", "custom_fwd", "custom_bwd")
    fix: ClassVar[Applicability | None] = Applicability.SAFE

    claims_failure = False
    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import warnings

from torch.cuda.amp import GradScaler, autocast


def reproduce():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        scaler = GradScaler(1024.0)  # expect
        with autocast(False):  # expect
            return scaler
"""
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch


def train(model, batch, use_amp):
    scaler = torch.amp.GradScaler("cuda", enabled=use_amp)
    with torch.amp.autocast("cuda", dtype=torch.float16, enabled=use_amp):
        loss = model(batch)
    scaler.scale(loss).backward()
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        if facts.torch_version < DEPRECATED_SINCE:
            return
        around = Surroundings.of(facts.source.tree)
        refused = list(refused_calls(facts, around))
        for found in refused:
            span, severity = facts.span(found.node), Severity.ERROR if found.raises else Severity.WARNING
            yield Suspect(span, span, found.message, facts.all_scenarios(), FORCED, severity=severity, data=found)
        if any(r.name in LEGACY or r.name.rpartition(".")[0] in LEGACY for r in facts.references):
            yield from self._deprecated(facts, around, {id(found.call) for found in refused})

    def _deprecated(self, facts: FileFacts, around: Surroundings, refused: set[int]) -> Iterable[Suspect]:
        uses = legacy_uses(facts, around)
        group_of = {id(use): group for group in groups_of(facts, uses).values() for use in group.uses}
        for use in uses:
            if use.form == "annotation" or id(use.node) in refused:
                continue
            old = use.reference.name
            message = f"{old} is deprecated since torch 2.4: use {_successor(use.legacy, facts)}"
            span = facts.source.span(use.node)
            data = (use, group_of.get(id(use)) or Group([use]))
            likely = use.form == "value" or not _is_replaceable(use.legacy, facts)
            yield Suspect(span, span, message, facts.all_scenarios(), Standing(forced=not likely), data=data)
        for alias, name, exported in unused_imports(facts, around):
            message = (
                f"imports {name}, deprecated since torch 2.4: its replacement is {_successor(LEGACY[name], facts)}"
            )
            span = facts.source.span(alias)
            suspect = Suspect(span, span, message, facts.all_scenarios(), ASSUMED)
            yield suspect if exported else suspect.doubted(doubts.IMPORTED_ONLY)

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        if isinstance(suspect.data, RefusedCall):
            visit.report(suspect, _corrected(node, suspect.data, visit))
        else:
            self._report(suspect, visit)

    def visit_Name(self, node: cst.Name, suspect: Suspect, visit: Visit) -> None:
        self._report(suspect, visit)

    def visit_Dict(self, node: cst.Dict, suspect: Suspect, visit: Visit) -> None:
        visit.report(suspect, _corrected(node, suspect.data, visit))

    def visit_Attribute(self, node: cst.Attribute, suspect: Suspect, visit: Visit) -> None:
        self._report(suspect, visit)

    def _report(self, suspect: Suspect, visit: Visit) -> None:
        if suspect.data is None or isinstance(suspect.data, RefusedCall):
            visit.report(suspect)
            return
        use, group = suspect.data
        done = group.rewritten(visit)
        rewrite = done.rewrites[id(use)]
        if rewrite is None:
            visit.report(suspect)
            return
        message = f"Use {use.legacy.modern}"
        if done.whole:
            safe, edits = done.safe, done.edits
        else:
            safe = use.exact and rewrite.applicability is Applicability.SAFE
            edits = tuple(sorted({*done.imports, *rewrite.edits}))
        visit.report(suspect, Fix(Applicability.SAFE if safe else Applicability.UNSAFE, message, edits))


def _corrected(node: cst.Call | cst.Dict, refused: RefusedCall, visit: Visit) -> Fix | None:
    """The call with the device by the name that the callee takes it by, or with CUDA, which it was for."""
    import libcst as cst

    if isinstance(node, cst.Call) and refused.of_cuda and node.args:
        autocast, imports = visit.import_name("torch", "autocast")
        edits = (*imports, visit.replace(node.func, autocast), visit.insert_before(node.args[0], '"cuda", '))
        return visit.fix(Applicability.UNSAFE, f"Use {autocast} for CUDA", *edits)
    if refused.renamed is None:
        return None
    old, new = refused.renamed
    message = f"Pass {new} instead of {old}"
    if isinstance(node, cst.Call):
        argument = visit.argument(node, old)
        keyword = argument.keyword if argument is not None else None
        return visit.fix(Applicability.UNSAFE, message, visit.replace(keyword, new)) if keyword is not None else None
    keys = (element.key for element in node.elements if isinstance(element, cst.DictElement))
    key = next((k for k in keys if isinstance(k, cst.SimpleString) and k.evaluated_value == old), None)
    edit = visit.replace(key, visit.code(key).replace(old, new)) if key is not None else None
    return visit.fix(Applicability.UNSAFE, message, edit) if edit is not None else None


def _is_replaceable(legacy: Legacy, facts: FileFacts) -> bool:
    """Whether every torch that the file has to run with has what replaces a name; where nothing says which those are,
    every one of torch 2."""
    return legacy.successor_since <= (facts.oldest or _FIRST_OF_2)


def _successor(legacy: Legacy, facts: FileFacts) -> str:
    """What replaces a name, and from when on where the file has to run with a release that lacks it."""
    since = legacy.successor_since
    return (
        legacy.modern
        if since <= facts.oldest_torch
        else f"{legacy.modern} where torch is {since[0]}.{since[1]} or later"
    )
