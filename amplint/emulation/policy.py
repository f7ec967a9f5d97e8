"""Which operations a device's autocast casts, and how, by torch release."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import amplint.data
from amplint.data.newer import changed_names, entry_in

_NEWEST = (sys.maxsize, 0)
#: Devices whose policy can be put over CPU kernels.
DEVICES = ("cuda", "mps", "xpu")


@cache
def _table() -> dict[str, dict[str, dict[str, str]]]:
    path = Path(amplint.data.__file__).with_name("autocast_policy.json")
    operations: dict[str, dict[str, dict[str, str]]] = json.loads(path.read_text())["ops"]
    return operations


def release(version: str) -> tuple[int, int]:
    """``(2, 13)`` for ``"2.13.0+cpu"``."""
    major, minor = version.partition("+")[0].split(".")[:2]
    return int(major), int(minor)


def policies(device: str, torch_release: tuple[int, int] | None = None) -> dict[str, dict[str, str]]:
    """Overload -> ``policy`` and, where it is not the oldest on record, ``since``, for one device.

    Policies are ``lower``, ``fp32``, ``fp32_set_opt_dtype``, ``fp32_append_dtype``, ``promote`` and ``banned``, as
    ``autocast_policy.json`` has them. Only what is on the device's list in the release, or the newest that is known.
    """
    asked = torch_release or _NEWEST
    names = {**_table(), **dict.fromkeys(changed_names("autocast_policy"))}
    entries = {name: entry_in(asked, "autocast_policy", name, _table().get(name)) for name in names}
    found: dict[str, dict[str, str]] = {n: entry[device] for n, entry in entries.items() if entry and device in entry}
    return {name: entry for name, entry in found.items() if _first(entry) <= asked}


def _first(entry: dict[str, Any]) -> tuple[int, int]:
    return release(entry["since"]) if "since" in entry else (0, 0)
