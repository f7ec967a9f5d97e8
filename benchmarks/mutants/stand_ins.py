"""What lets a library be imported, and run often, where torchvision and devices are missing."""

from __future__ import annotations

import contextlib
import importlib.util
import re
from pathlib import Path

import torch

_REGISTERED = re.compile(r'register_(?:meta|fake)\(\s*"(?:torchvision::)?(\w+)"')
_library: list[torch.library.Library] = []


def declare_torchvision() -> None:
    """Declare the operators that torchvision registers shapes for on import, so that its pure Python can be imported.

    A torchvision built for another torch leaves them out, and fails at the first. They stay without a kernel.
    """
    found = importlib.util.find_spec("torchvision")
    if _library or found is None or found.origin is None:
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    text = Path(found.origin).with_name("_meta_registrations.py").read_text()
    for name in dict.fromkeys(_REGISTERED.findall(text)):
        with contextlib.suppress(RuntimeError):
            library.define(f"{name}(Tensor self) -> Tensor")
    _library.append(library)


def forget_absent_devices() -> None:
    """Seed no device that this torch lacks: each seeding would keep its stack as text for the day there is one."""
    for module in (torch.mtia, torch.xpu):
        if not module.is_available():
            module._lazy_call = lambda *_args, **_kwargs: None  # type: ignore[attr-defined]
