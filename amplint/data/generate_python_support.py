"""Generates ``python_support.json``: by Python, the first and the last release of torch that has a wheel for it on
Linux.

Usage: ``python -m amplint.data.generate_python_support [OUT]`` (half a minute; asks pip, which asks its index).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

FIRST = 6
"""The minor release of the oldest Python 3 asked for."""
LATEST = 99
"""A patch release that none is above: releases of torch want some of Python's."""
PLATFORMS = ("linux_x86_64", "manylinux1_x86_64", "manylinux2014_x86_64", "manylinux_2_28_x86_64")


def releases(python: str) -> list[str]:
    """The releases (major.minor) that pip would install for a Python, the oldest first."""
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    latest = f"{python}.{LATEST}"
    asked = ["index", "versions", "torch", "--python-version", latest, "--only-binary=:all:", *platforms]
    done = subprocess.run([sys.executable, "-m", "pip", *asked], capture_output=True, text=True, check=False)
    listed = re.search(r"Available versions: (.*)", done.stdout)
    found = (
        {tuple(map(int, re.findall(r"\d+", one)[:2])) for one in listed[1].split(",")} if listed is not None else set()
    )
    return [".".join(map(str, release)) for release in sorted(found)]


def tables() -> dict[str, dict[str, str]]:
    """Every Python 3 from the first on that has one, with the first and the last."""
    first: dict[str, str] = {}
    last: dict[str, str] = {}
    minor = FIRST
    while found := releases(f"3.{minor}"):
        first[f"3.{minor}"], last[f"3.{minor}"] = found[0], found[-1]
        minor += 1
    return {"first": first, "last": last}


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("python_support.json")
    head = {"generator": "python -m amplint.data.generate_python_support"}
    out.write_text(json.dumps(head | tables(), indent=1) + "\n", encoding="utf-8")
