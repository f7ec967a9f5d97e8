"""Starts processes that need torch: on Linux forks of one that has it imported, elsewhere new ones."""

from __future__ import annotations

import atexit
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NUMBER = struct.Struct("=i")
"""How a process, and what it ended with, are told over the socket."""

_ROOT = str(Path(__file__).resolve().parent.parent.parent)
_HEAD = f"import sys; sys.path.append({_ROOT!r}); "
_SERVE = "from amplint.verify.warm_child import serve; exec(serve(int(sys.argv[1])))"

_PATIENCE = 60.0
"""Seconds within which torch has to be imported; else a new process does so."""


class Forked:
    """A fork of a warm process: as much of ``Popen`` as is asked for here."""

    def __init__(self, pid: int, warm: _Warm) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._warm = warm

    def poll(self) -> int | None:
        """What it ended with, minus the number of a signal; None while it runs."""
        if self.returncode is None and select.select([self._warm.side], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """What it ended with, once it has. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._warm.side], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self.returncode = self._warm.number()
            if self.returncode is None:
                self.returncode = -signal.SIGKILL
                self._warm.end()
            else:
                _idle.append(self._warm)
        return self.returncode

    def kill(self) -> None:
        """End it, and nothing that it started."""
        os.kill(self.pid, signal.SIGKILL)


class _Warm:
    """A process that forks, one process at a time, until this one ends."""

    def __init__(self, environment: Mapping[str, str], work: Path) -> None:
        self.environment = environment
        self.side, other = socket.socketpair()
        self.side.settimeout(_PATIENCE)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _HEAD + _SERVE, str(other.fileno())],
                cwd=work,
                env=environment,
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def fork(self, asked: Sequence[str], output: int) -> Forked | None:
        """A fork with this output; None where none can be had."""
        with suppress(OSError):
            socket.send_fds(self.side, ["\0".join(asked).encode()], [output])
        if (pid := self.number()) is not None:
            return Forked(pid, self)
        self.end()
        return None

    def number(self) -> int | None:
        """What the process tells next; None where it is gone."""
        with suppress(OSError, struct.error):
            number: int = NUMBER.unpack(self.side.recv(NUMBER.size, socket.MSG_WAITALL))[0]
            return number
        return None

    def end(self) -> None:
        """End the process."""
        self.side.close()
        self._process.kill()
        self._process.wait()


_idle: list[_Warm] = []


@atexit.register
def _end_idle() -> None:
    while _idle:
        _idle.pop().end()


def start(
    run: str, argument: str, work: Path, variables: Mapping[str, str], output: int, *, fork: bool = True
) -> Forked | subprocess.Popen[bytes]:
    """A process that runs a statement with one argument on its command line. It is a group of its own, in the folder
    ``work``, with these variables more; what it prints goes to the file ``output``. Without ``fork`` it is new."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TORCHDYNAMO_DISABLE": "1"}
    if environment.get("PYTHONPATH"):  # relative entries are relative to the folder of this process
        entries = environment["PYTHONPATH"].split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(entry) for entry in entries)
    if fork and sys.platform == "linux":
        if _idle and _idle[-1].environment != environment:
            _end_idle()
        warm = _idle.pop() if _idle else _Warm(environment, work)
        asked = [run, argument, str(work), *(f"{name}={value}" for name, value in variables.items())]
        if (forked := warm.fork(asked, output)) is not None:
            return forked
    return subprocess.Popen(
        [sys.executable, "-c", _HEAD + run, argument],
        cwd=work,
        env={**environment, **variables},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def end(process: Forked | subprocess.Popen[bytes]) -> int:
    """End a process and everything it started; what it ended with."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    return process.wait()
