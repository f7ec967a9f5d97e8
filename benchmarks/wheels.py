"""Released packages as benchmark material: wheels downloaded by name and unpacked, never installed or imported."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from halves import project
from packaging.utils import parse_wheel_filename

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_UNREACHABLE = re.compile(
    r"\(from versions: none\)|NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError",
    re.IGNORECASE,
)


class DownloadError(Exception):
    """A wheel could not be downloaded. ``unreachable``: because there is no way to the package registry."""

    def __init__(self, requirement: str, output: str) -> None:
        self.unreachable = _UNREACHABLE.search(output) is not None
        reason = "the package registry cannot be reached" if self.unreachable else output.strip()
        super().__init__(f"cannot download {requirement}: {reason}")


def unpacked(requirement: str, into: Path, reuse: Path | None = None) -> Path:
    """The folder with the Python files of ``name==version``, from a wheel in ``reuse`` or one downloaded with pip.

    Raises DownloadError.
    """
    folder = into / requirement.replace("==", "-")
    wheel = wheel_in(requirement, reuse) if reuse is not None else None
    if wheel is None:
        wheel = _download(requirement, into / "wheels")
    _unpack(wheel, folder)
    return folder


def download(requirements: Iterable[str], folder: Path) -> None:
    """Have a wheel of each ``name==version`` in a folder: one run of pip for all that are of different projects.

    Raises DownloadError.
    """
    missing: dict[str, list[str]] = {}
    for requirement in dict.fromkeys(requirements):
        if wheel_in(requirement, folder) is None:
            missing.setdefault(requirement.partition("==")[0], []).append(requirement)
    for row in zip_longest(*missing.values()):
        together = [requirement for requirement in row if requirement is not None]
        done = _pip_download(together, folder)
        if done.returncode != 0:
            raise DownloadError(", ".join(together), done.stdout + done.stderr)


def newest(name: str, into: Path) -> str:
    """The version of the newest wheel of a package, whose Python files and metadata are unpacked in
    ``into / "NAME-VERSION"``.

    Raises DownloadError.
    """
    with tempfile.TemporaryDirectory(prefix="wheel-", dir=into) as folder:
        done = _pip_download([name], Path(folder))
        wheel = next(Path(folder).glob("*.whl"), None)
        if done.returncode != 0 or wheel is None:
            raise DownloadError(name, done.stdout + done.stderr)
        _, version, *_ = parse_wheel_filename(wheel.name)
        _unpack(wheel, into / f"{name}-{version}")
    return str(version)


_UNPACKED = (".py", ".dist-info/METADATA", ".dist-info/RECORD")


def _unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.endswith(_UNPACKED)])


def wheel_in(requirement: str, folder: Path) -> Path | None:
    """The wheel of ``name==version`` in a folder."""
    name, version = requirement.split("==")
    wanted = [project(name), version]
    return next((wheel for wheel in sorted(folder.glob("*.whl")) if _named(wheel) == wanted), None)


def requirements_in(folder: Path) -> list[str]:
    """``name==version`` of each wheel in a folder."""
    return ["==".join(_named(wheel)) for wheel in sorted(folder.glob("*.whl"))]


def _named(wheel: Path) -> list[str]:
    """The project and the release that a wheel's file name says."""
    name, version, *_ = wheel.name.split("-")
    return [project(name), version]


def _download(requirement: str, folder: Path) -> Path:
    done = _pip_download([requirement], folder)
    wheel = wheel_in(requirement, folder)
    if done.returncode != 0 or wheel is None:
        raise DownloadError(requirement, done.stdout + done.stderr)
    return wheel


def _pip_download(requirements: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Only wheels: for a source archive pip would run the package's own code."""
    options = ["--no-deps", "--only-binary=:all:", "--platform=manylinux_2_24_x86_64", "--quiet", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, *requirements]
    return subprocess.run(command, capture_output=True, text=True, check=False)
