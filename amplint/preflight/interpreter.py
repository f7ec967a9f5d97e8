"""What another Python process says of itself: its version, its packages, and the torch it would import.

Torch is never imported here. It can take long, hang on a broken driver, or crash, so a child process with a time limit
does it, and what the child had said until then still counts.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import field
from typing import Any

from packaging.utils import canonicalize_name

from amplint.config import UsageError
from amplint.frozen import dataclass

SECONDS = 60.0
"""How long torch may take to import and to look for devices."""

_PROBE = """
import json, sys
if sys.path and sys.path[0] == "":
    del sys.path[0]
def say(**facts):
    sys.__stdout__.write(json.dumps(facts) + "\\n")
    sys.__stdout__.flush()
packages = {}
try:
    from importlib.metadata import distributions
    for found in distributions():
        name, version = found.metadata["Name"], found.version
        if name and version:
            packages.setdefault(name, version)
except Exception as error:
    say(packages_error=repr(error))
say(python=".".join(map(str, sys.version_info[:3])), packages=packages)
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            say(torch_error=str(error))
        raise SystemExit
    except BaseException as error:
        say(torch_error="%s: %s" % (type(error).__name__, error))
        raise SystemExit
    version = getattr(torch, "version", None)
    say(torch=str(torch.__version__), cuda=getattr(version, "cuda", None), hip=getattr(version, "hip", None))
    try:
        flags = torch._C._cuda_getArchFlags()
        say(arch_list=flags.split() if flags else [])
    except Exception:
        try:
            say(arch_list=list(torch.cuda.get_arch_list()))
        except Exception:
            pass
    for name, asked in (("mps", "backends.mps"), ("xpu", "xpu")):
        try:
            module = torch
            for part in asked.split("."):
                module = getattr(module, part)
            if module.is_available():
                say(accelerator=name)
        except Exception:
            pass
    try:
        available = bool(torch.cuda.is_available())
        for index in range(torch.cuda.device_count() if available else 0):
            about = torch.cuda.get_device_properties(index)
            capability = None if getattr(version, "hip", None) else list(torch.cuda.get_device_capability(index))
            say(gpu=str(torch.cuda.get_device_name(index)), index=index, capability=capability,
                gfx=str(getattr(about, "gcnArchName", "")) or None, uuid=str(getattr(about, "uuid", "")) or None)
        why = [str(warning.message).splitlines()[0] for warning in caught if "CUDA" in str(warning.message)]
        say(cuda_available=available, why_not=None if available or not why else why[-1])
    except Exception as error:
        say(cuda_available=False, why_not="%s: %s" % (type(error).__name__, error))
"""


@dataclass(frozen=True, slots=True)
class TorchGpu:
    """A device as torch numbers it; ``capability`` is None under ROCm, where ``gfx`` names the architecture."""

    index: int
    name: str
    capability: tuple[int, int] | None
    gfx: str | None
    uuid: str | None


@dataclass(slots=True)
class TorchBuild:
    """A torch that was imported. ``cuda`` and ``hip`` are the versions it was built for, None where it was not.

    ``available`` is what ``torch.cuda.is_available()`` said, None where it did not get that far.
    """

    version: str
    cuda: str | None
    hip: str | None
    arch_list: tuple[str, ...] = ()
    available: bool | None = None
    why_not: str | None = None
    accelerators: list[str] = field(default_factory=list)
    gpus: list[TorchGpu] = field(default_factory=list)


@dataclass(slots=True)
class Interpreter:
    """A Python environment: path of the interpreter, versions by canonical name, and its torch."""

    path: str
    version: str | None = None
    packages: dict[str, str] = field(default_factory=dict)
    torch: TorchBuild | None = None
    unseen: list[str] = field(default_factory=list)


def inspect_interpreter(path: str | None = None, seconds: float = SECONDS) -> Interpreter:
    """Ask an interpreter (this one where None). Raises UsageError where it cannot be started."""
    executable = path or sys.executable
    command = shutil.which(executable)
    if command is None:
        raise UsageError(f"no Python interpreter at {executable}")
    found = Interpreter(command)
    output, late, status = _run([command, "-c", _PROBE], seconds)
    for line in output.splitlines():
        try:
            facts = json.loads(line)
        except ValueError:
            continue
        if isinstance(facts, dict):
            _take(found, facts)
    if found.version is None:
        raise UsageError(f"{executable} did not run as a Python interpreter" + ("" if late else f" (status {status})"))
    if late:
        found.unseen.append(f"torch in {command} did not answer within {seconds:g} s: devices were not asked")
    elif status and (found.torch is None or found.torch.available is None):
        found.unseen.append(f"torch in {command} ended the process that imported it (status {status})")
    elif found.torch is None and not found.unseen:
        found.unseen.append(f"torch is not installed in {command}: name another interpreter with --python")
    return found


def _take(found: Interpreter, facts: dict[str, Any]) -> None:
    """One line of the child."""
    if "packages" in facts:
        found.version = facts["python"]
        found.packages = {str(canonicalize_name(name)): version for name, version in facts["packages"].items()}
    elif "packages_error" in facts:
        found.unseen.append(f"the packages of {found.path} could not be listed: {facts['packages_error']}")
    elif "torch_error" in facts:
        found.unseen.append(f"torch in {found.path} cannot be imported: {facts['torch_error']}")
    elif "torch" in facts:
        found.torch = TorchBuild(facts["torch"], facts["cuda"], facts["hip"])
    elif found.torch is None:
        return
    elif "arch_list" in facts:
        found.torch.arch_list = tuple(facts["arch_list"])
    elif "accelerator" in facts:
        found.torch.accelerators.append(facts["accelerator"])
    elif "gpu" in facts:
        capability = facts["capability"]
        found.torch.gpus.append(
            TorchGpu(
                facts["index"],
                facts["gpu"],
                (capability[0], capability[1]) if capability else None,
                facts["gfx"],
                facts["uuid"],
            )
        )
    elif "cuda_available" in facts:
        found.torch.available = facts["cuda_available"]
        found.torch.why_not = facts["why_not"]


def _run(command: list[str], seconds: float) -> tuple[str, bool, int]:
    """What a child wrote to stdout, whether it ran past the limit, and its exit status. Its children end with it."""
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise UsageError(f"cannot run {command[0]}: {error.strerror or error}") from error
    try:
        output, _ = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _end(child)
        output, _ = child.communicate()
        return output, True, child.returncode
    return output, False, child.returncode


def _end(child: subprocess.Popen[str]) -> None:
    if os.name == "posix":
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
    else:
        child.kill()
