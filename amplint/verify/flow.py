"""The instrument of a second run: attributes each dtype change, overflow and failure to a source line.

Nothing in the run is changed: operations are looked at below autocast and autograd, where a ``TorchDispatchMode`` sees
them, and Python's calls through the profiling hook.  No verdict rests on it; it says where.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from amplint.frozen import dataclass
from amplint.verify.event import Event, Kind, Phase
from amplint.verify.operands import failing_operands
from amplint.verify.operations import Operand, Operation, autocast_overloads, effect, floating, operation, shape, size
from amplint.verify.overflow import Before, Watch
from amplint.verify.sites import NOWHERE, Calls, Frames, Made, Nodes, Place, Role, Site, passes_dtype, qualified_name
from amplint.verify.tensors import dtype_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

_T = TypeVar("_T")

#: Distinct (line, operation, dtypes) kept; further ones only count as dropped.
_MAX_EVENTS = 20_000
#: Built-in callables that cast because the program says so.
_ASKED = {
    *("to", "type", "type_as", "float", "double", "half", "bfloat16", "_to_copy", "convert_element_type"),
    *("tensor", "as_tensor", "asarray", "new_tensor", "sparse_coo_tensor"),
}
#: Taken before an emulation may have replaced them.
_is_enabled, _dtype_of = torch._C.is_autocast_enabled, torch._C.get_autocast_dtype
_set_enabled = torch._C.set_autocast_enabled
_SETTERS = (_set_enabled, torch._C.set_autocast_dtype)
_REPEATED: set[Kind] = {"autocast-cast", "explicit-cast", "promotion"}


@dataclass(slots=True)
class _Tally:
    event: Event
    count: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """An operation and its operands' dtypes before it ran."""

    order: int
    what: Operation
    operands: list[Operand]
    dtypes: tuple[torch.dtype, ...]


@dataclass(frozen=True, slots=True)
class _Origin:
    """The line an operation is put down to; ``forward`` is what the operation did whose backward it is."""

    place: Place
    site: Site
    phase: Phase
    function: str | None
    forward: Kind | None


_UNKNOWN = _Origin(Place(None, False, None, False), NOWHERE, "forward", None, None)


class DtypeFlow(TorchDispatchMode):
    """Use as ``with DtypeFlow() as flow: module(...)``; exceptions pass unchanged.

    The innermost line that is neither torch's, amplint's nor the standard library's counts.  Only the thread that
    entered, and autograd's own threads, are seen.

    Attributes:
        first_nonfinite: The first operation that made inf or NaN of sound operands.
        dropped: How many events were not kept because there were too many distinct ones.
        unseen: How many operations could not be described; the run itself is not affected by that.
    """

    supports_higher_order_operators = True

    @classmethod
    def is_infra_mode(cls) -> bool:
        """torch.compile takes no notice of it; its code is seen as the operations that it runs."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch would import its compiler at the first operation, which takes seconds, to keep it out of here."""
        return False

    def __init__(self) -> None:
        TorchDispatchMode.__init__(self)
        self._failure: Event | None = None
        self.first_nonfinite: Event | None = None
        self.dropped = 0
        self.unseen = 0
        self._saturated: Event | None = None
        self._frames = Frames()
        self._nodes = Nodes()
        self._watch = Watch()
        self._tallies: dict[Any, _Tally] = {}
        self._order = 0
        self._listed: dict[str, frozenset[str]] = {}
        self._raised: list[tuple[int, str, Event]] = []
        self._calls: Calls | None = None
        self._previous: Any = None
        self._autocast: dict[str, tuple[bool, torch.dtype]] = {}

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened, in the order of the first occurrences."""
        tallies = sorted(self._tallies.values(), key=lambda tally: tally.event.order)
        return tuple(replace(tally.event, count=tally.count, bytes=tally.bytes) for tally in tallies)

    @property
    def failure(self) -> Event | None:
        """The operation, or the line, at which the exception was raised that left the block or was concluded upon.

        Without an exception to go by, it is the run's last operation if that raised: errors that the program itself
        caught are followed by others.
        """
        if self._failure is None and self._raised and self._raised[-1][0] == self._order:
            return self._raised[-1][2]
        return self._failure

    def to_json(self) -> dict[str, Any]:
        """``events``, ``failure`` and ``first_nonfinite`` (or None) as ``Event.to_json`` gives them, ``dropped``."""
        one = {"failure": self.failure, "first_nonfinite": self.first_nonfinite}
        found = {name: event.to_json() if event is not None else None for name, event in one.items()}
        return {"events": [event.to_json() for event in self.events], **found, "dropped": self.dropped}

    def __enter__(self) -> DtypeFlow:
        self._read_autocast()
        self._previous = sys.getprofile()
        self._calls = Calls(_SETTERS, self._read_autocast)
        TorchDispatchMode.__enter__(self)
        sys.setprofile(self._calls)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        sys.setprofile(self._previous)
        TorchDispatchMode.__exit__(self, kind, error, traceback)
        if self.first_nonfinite is None:
            self.first_nonfinite = self._saturated
        if isinstance(error, Exception):
            self.conclude(error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        calls = self._calls if sys.getprofile() is self._calls else None
        if calls is not None:
            sys.setprofile(None)  # what happens in here is no call of the program's, and costs half as much unheard
        try:
            return self._dispatch(func, args, kwargs or {}, sys._getframe(1), calls)
        finally:
            if calls is not None:
                sys.setprofile(calls)

    def _dispatch(self, func: Any, args: Any, kwargs: Any, caller: FrameType, calls: Calls | None) -> Any:
        self._order += 1
        what = operation(func)
        operands = what.operands(args, kwargs)
        step = _Step(self._order, what, operands, tuple(operand.tensor.dtype for operand in operands))
        origin = self._seen(lambda: self._traced(caller, calls), _UNKNOWN)
        before = self._seen(lambda: self._watch.before(what, operands), Before({}, {}))
        nowhere: list[str] = []
        regions = self._seen(lambda: self._regions(what, origin), nowhere)
        try:
            self._switch(regions, True)
            result = func(*args, **kwargs)
        except Exception as error:
            text = str(error)
            self._seen(lambda: self._failed(step, origin, text), None)
            raise
        finally:
            self._switch(regions, False)
        self._seen(lambda: self._ran(step, origin, result, before, func, args, kwargs), None)
        return result

    def _seen(self, look: Callable[[], _T], otherwise: _T) -> _T:
        """What a look at the run gives; one that fails does not affect the run."""
        try:
            return look()
        except Exception:
            self.unseen += 1
            return otherwise

    def _regions(self, what: Operation, origin: _Origin) -> list[str]:
        """Devices whose autocast is on where the operation was called, but off here, below the dispatcher's keys.

        A kernel made of other operations (nested tensors, the encoder's fast path, custom operators) meets it there.
        It does not where an autocast kernel called: that switches autocast off for what it calls.
        """
        on = [device for device, (enabled, _) in self._autocast.items() if enabled]
        if not on or what.view or origin.place.autocast:
            return []
        return [device for device in on if not self._cast_by_autocast(device, what, origin.place.function)]

    def _cast_by_autocast(self, device: str, what: Operation, function: str | None) -> bool:
        """Whether autocast has a kernel for the operation, or for the callable by whose name it was called."""
        if device not in self._listed:
            overloads = autocast_overloads(device)
            self._listed[device] = overloads | {name.partition(".")[0] for name in overloads}
        return what.overload in self._listed[device] or f"aten::{function}" in self._listed[device]

    def _switch(self, regions: list[str], on: bool) -> None:
        for device in regions:
            _set_enabled(device, on)

    def _read_autocast(self) -> None:
        """Within an operation the switches read as off, so they are read whenever the program sets them."""
        for device in ("cpu", "cuda", "xpu", "mps"):
            try:
                self._autocast[device] = (_is_enabled(device), _dtype_of(device))
            except (RuntimeError, TypeError):
                self._autocast.pop(device, None)

    def _traced(self, caller: FrameType, calls: Calls | None) -> _Origin:
        """Where the operation being dispatched comes from, and for a built-in backward what happened in forward."""
        node = self._nodes.current()
        place = self._frames.locate(caller, calls, node is not None)
        if node is None:
            return _Origin(place, place.site or NOWHERE, "forward", place.function, None)
        made = self._nodes.of(node)
        if made is not None and place.site is None:
            return _Origin(place, made.site, "backward", place.function or node.name(), made.kind)
        if place.site is None:
            outer = self._frames.locate(caller, None, False)
            return _Origin(place, outer.site or NOWHERE, "backward", place.function or node.name(), None)
        return _Origin(place, place.site, "backward", place.function, None)

    def _ran(
        self, step: _Step, origin: _Origin, result: Any, before: Before, func: Any, args: Any, kwargs: Any
    ) -> None:
        output = next(floating(result), None)
        if step.what.cast:
            told = self._cast(origin, step.operands[0].tensor, step.dtypes[0], output)
        else:
            told = effect(step.what, step.operands, output, step.dtypes)
        result_dtype = output.dtype if output is not None else None
        if told is not None:
            self._add(step, told[0], origin, result_dtype, told[1])
        self._nodes.made(Made(origin.site, told[0] if told is not None else None))
        found = self._watch.after(step.what, func, args, kwargs, result, step.operands, before)
        if found is not None:
            event = self._add(step, "nonfinite", origin, result_dtype, 0, found.note)
            if found.constant:
                self._saturated = self._saturated or event
            else:
                self.first_nonfinite = self.first_nonfinite or event

    def _cast(
        self, origin: _Origin, source: torch.Tensor, was: torch.dtype, output: torch.Tensor | None
    ) -> tuple[Kind, int] | None:
        """Who asked for a cast, and the bytes it wrote; None for a copy that casts nothing."""
        if output is None or output.dtype == was:
            return None
        moved = size(output)
        place = origin.place
        with_dtype = passes_dtype(origin.site, place.function)
        if not was.is_floating_point:
            return ("explicit-cast", moved) if with_dtype or place.function in _ASKED else None
        if place.autocast:
            return ("explicit-cast" if with_dtype else "autocast-cast"), moved
        if with_dtype or place.function in _ASKED:
            return "explicit-cast", moved
        if origin.phase == "backward" and place.site is None:
            if origin.forward in _REPEATED:
                return origin.forward, moved
        elif not place.known:
            return "explicit-cast", moved
        else:
            on, low = self._autocast.get(source.device.type, (False, None))
            if on and output.dtype in (low, torch.float32) and not (source.device.type == "cpu" and _emulated()):
                return "autocast-cast", moved
        return ("promotion" if output.dtype.itemsize > was.itemsize else "op-output"), moved

    def _add(
        self, step: _Step, kind: Kind, origin: _Origin, output: torch.dtype | None, moved: int, note: str = ""
    ) -> Event:
        """Count it, and give the event of its first occurrence."""
        key = (origin.site, origin.phase, kind, step.what.name, step.dtypes, output)
        tally = self._tallies.get(key)
        if tally is None:
            event = Event(
                order=step.order,
                kind=kind,
                op=step.what.name,
                function=origin.function,
                inputs=tuple(dtype_name(dtype) for dtype in step.dtypes),
                output=None if output is None else dtype_name(output),
                shapes=tuple(shape(operand.tensor) for operand in step.operands),
                bytes=0,
                filename=origin.site.filename,
                row=origin.site.row,
                where=origin.site.where,
                phase=origin.phase,
                operands=tuple(operand.name for operand in step.operands),
                note=note,
            )
            if len(self._tallies) >= _MAX_EVENTS and kind not in ("failed", "nonfinite"):
                self.dropped += 1
                return event
            tally = self._tallies[key] = _Tally(event)
        tally.count += 1
        tally.bytes += moved
        return tally.event

    def _failed(self, step: _Step, origin: _Origin, text: str) -> None:
        event = self._add(step, "failed", origin, None, 0, text)
        self._raised = [*self._raised[-15:], (step.order, text, event)]

    def conclude(self, error: BaseException) -> None:
        """Look for the place where ``error`` was raised, where it was caught before it left the block.

        It is the operation that raised this text; if there is none, the call failed above the dispatcher, and the
        traceback says where.
        """
        text = str(error)
        for _, raised, event in reversed(self._raised):
            if raised == text:
                self._failure = event
                return
        site = NOWHERE
        phase: Phase = "forward"
        innermost: TracebackType | None = None
        step = error.__traceback__
        while step is not None:
            frame, role = step.tb_frame, self._frames.role(step.tb_frame)
            if role is Role.ENGINE:
                phase = "backward"
            if role is Role.USER:
                site = Site(os.path.abspath(frame.f_code.co_filename), step.tb_lineno, qualified_name(frame))
            if role not in (Role.OWN, Role.EMULATION, Role.GLUE):
                innermost = step
            step = step.tb_next
        found = failing_operands(innermost) if innermost is not None else []
        self._failure = Event(
            order=self._order + 1,
            kind="failed",
            op="",
            function=self._calls.raised_in(innermost.tb_frame) if self._calls is not None and innermost else None,
            inputs=tuple(dtype_name(tensor.dtype) for _, tensor in found),
            output=None,
            shapes=tuple(shape(tensor) for _, tensor in found),
            bytes=0,
            filename=site.filename,
            row=site.row,
            where=site.where,
            phase=phase,
            operands=tuple(name for name, _ in found),
            note=text or type(error).__name__,
        )
        self._tallies[text] = _Tally(self._failure, 1)


def _emulated() -> bool:
    """Whether autocast's kernels for the CPU have been replaced: then only what these do is autocast's."""
    lines = torch._C._dispatch_dump("aten::mm").splitlines()
    return not any(line.startswith("AutocastCPU: ") and "autocast_mode.cpp" in line for line in lines)
