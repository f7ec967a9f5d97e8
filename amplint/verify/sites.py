"""Which source line an operation belongs to, and which callable that line was calling."""

from __future__ import annotations

import ast
import functools
import linecache
import os
import sys
import sysconfig
from collections import OrderedDict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

import amplint
from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import CodeType, FrameType

    from amplint.verify.event import Kind

_TORCH = str(Path(torch.__file__).parent)
_OWN = str(Path(amplint.__file__).parent)
_LIBRARY = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
_PACKAGES = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
#: Files through which every dispatched operation passes, whatever was called.
_GLUE = tuple(
    os.path.join(_TORCH, *parts)
    for parts in (
        ("_dynamo", "eval_frame.py"),
        ("_compile.py",),
        ("utils", "_python_dispatch.py"),
        ("_ops.py",),
        ("library.py",),
    )
)
_ENGINE = (os.path.join(_TORCH, "autograd", "graph.py"), os.path.join(_TORCH, "autograd", "__init__.py"))
_ENGINE_ENTRIES = {"_engine_run_backward", "backward", "grad"}
_AUTOCAST = os.path.join(_TORCH, "amp", "autocast_mode.py")
#: The module whose Python functions stand in for a device's autocast kernels.
_EMULATION = "amplint.emulation.kernels"
_MAX_RAISED = 64
_MAX_NODES = 1_000_000


class Role(Enum):
    """Whose code a frame runs."""

    SKIPPED = "torch, the standard library, code without a file"
    OWN = "amplint itself"
    GLUE = "torch's way from a call to its kernel"
    ENGINE = "the entry to autograd's backward pass"
    AUTOCAST = "torch's own casts for custom_fwd"
    EMULATION = "the emulated autocast kernels"
    USER = "anything else"


class Site(NamedTuple):
    """A source line; the file is empty and the row 0 where no line is known."""

    filename: str
    row: int
    where: str


NOWHERE = Site("", 0, "")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operation was called from."""

    site: Site | None
    autocast: bool
    """Whether an emulated autocast kernel, or ``custom_fwd``, lies between the line and the operation."""
    function: str | None
    """The built-in callable that the innermost line outside the kernels was calling."""
    known: bool
    """Whether calls are recorded in this thread: if not, ``function`` says nothing."""


class Frames:
    """Finds user lines on the stack."""

    def __init__(self) -> None:
        self._roles: dict[CodeType, Role] = {}

    def role(self, frame: FrameType) -> Role:
        code = frame.f_code
        role = self._roles.get(code)
        if role is None:
            role = self._roles[code] = self._classify(frame)
        return role

    def _classify(self, frame: FrameType) -> Role:
        code = frame.f_code
        if code.co_filename.startswith("<"):
            return Role.SKIPPED
        path = os.path.abspath(code.co_filename)
        if frame.f_globals.get("__name__") == _EMULATION:
            return Role.EMULATION
        if path in _GLUE:
            return Role.GLUE
        if path in _ENGINE and code.co_name in _ENGINE_ENTRIES:
            return Role.ENGINE
        if path == _AUTOCAST:
            return Role.AUTOCAST
        if _under(path, _OWN):
            return Role.OWN
        if _under(path, _TORCH):
            return Role.SKIPPED
        of_library = any(_under(path, folder) for folder in _LIBRARY)
        return Role.SKIPPED if of_library and not any(_under(path, folder) for folder in _PACKAGES) else Role.USER

    def locate(self, frame: FrameType | None, calls: Calls | None, in_backward: bool) -> Place:
        """The place of an operation whose innermost Python frame is ``frame``."""
        autocast = entered = False
        function: str | None = None
        while frame is not None:
            role = self.role(frame)
            if role is Role.ENGINE and in_backward:
                break
            autocast = autocast or role in (Role.EMULATION, Role.AUTOCAST)
            if not entered and role not in (Role.GLUE, Role.EMULATION, Role.OWN):
                entered = True
                function = calls.of(frame) if calls is not None else None
            if role is Role.USER:
                site = Site(os.path.abspath(frame.f_code.co_filename), frame.f_lineno, qualified_name(frame))
                return Place(site, autocast, function, calls is not None)
            frame = frame.f_back
        return Place(None, autocast, function, calls is not None)


def _under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)


def qualified_name(frame: FrameType) -> str:
    """``Block.forward``, as far as this Python can tell."""
    code = frame.f_code
    if sys.version_info >= (3, 11):
        return code.co_qualname.replace("<locals>.", "")
    if "self" in code.co_varnames[: code.co_argcount] and "self" in frame.f_locals:
        return f"{type(frame.f_locals['self']).__name__}.{code.co_name}"
    return code.co_name


class Calls:
    """The built-in callables that one thread is inside of, from the interpreter's profiling hook.

    A ``TorchFunctionMode`` would see calls too, but while one is on, torch avoids its own fast paths: it would change
    what it looks at.  ``on_return`` is called when one of ``watched`` has returned.
    """

    def __init__(self, watched: Iterable[Any], on_return: Callable[[], None]) -> None:
        self._stack: list[tuple[int, Any]] = []
        self._watched = tuple(watched)
        self._on_return = on_return
        self._raised: OrderedDict[int, str] = OrderedDict()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            self._stack.append((id(frame), argument))
        elif event == "c_return":
            self._leave(frame)
            for callable_ in self._watched:
                if argument is callable_:
                    self._on_return()
        elif event == "c_exception":
            self._leave(frame)
            self._raised[id(frame)] = getattr(argument, "__name__", "")
            if len(self._raised) > _MAX_RAISED:
                self._raised.popitem(last=False)

    def _leave(self, frame: FrameType) -> None:
        """Drop the frame's call, and calls within it whose end was not heard."""
        for i in range(len(self._stack) - 1, -1, -1):
            if self._stack[i][0] == id(frame):
                del self._stack[i:]
                return

    def of(self, frame: FrameType) -> str | None:
        """The name of what the frame is calling; None for an operator."""
        wanted = id(frame)
        for identity, argument in reversed(self._stack):
            if identity == wanted:
                return getattr(argument, "__name__", None)
        return None

    def raised_in(self, frame: FrameType) -> str | None:
        """The name of what the frame, which has not been left since, was calling when that raised."""
        return self._raised.get(id(frame)) or None


class Made(NamedTuple):
    """The forward operation of an autograd node: its line, and what happened there."""

    site: Site
    kind: Kind | None


class Nodes:
    """The forward line and kind of each autograd node, by its sequence number, up to a bound."""

    def __init__(self) -> None:
        autograd = getattr(torch._C, "_autograd", None)
        self._next = getattr(autograd, "_get_sequence_nr", None)
        self._current = getattr(torch._C, "_current_autograd_node", None)
        self._made: OrderedDict[int, Made] = OrderedDict()

    def current(self) -> Any:
        """The node whose backward runs in this thread, or None."""
        return self._current() if self._current is not None else None

    def made(self, made: Made) -> None:
        """The newest node belongs to this operation, unless an earlier one claimed it."""
        if self._next is None:
            return
        number = self._next() - 1
        if number not in self._made:
            self._made[number] = made
            if len(self._made) > _MAX_NODES:
                self._made.popitem(last=False)

    def of(self, node: Any) -> Made | None:
        """What made the node."""
        number = getattr(node, "_sequence_nr", None)
        return self._made.get(number()) if number is not None else None


def passes_dtype(site: Site, function: str | None) -> bool:
    """Whether the line calls the function with ``dtype=``."""
    if function is None:
        return False
    return any(name == function and first <= site.row <= last for first, last, name in _calls_with_dtype(site.filename))


@functools.lru_cache(maxsize=256)
def _calls_with_dtype(filename: str) -> tuple[tuple[int, int, str], ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    calls = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and any(
            keyword.arg == "dtype" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None)
            for keyword in node.keywords
        ):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            calls.append((node.lineno, node.end_lineno or node.lineno, name))
    return tuple(calls)
