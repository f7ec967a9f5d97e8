"""Asks torch for a GPU in a process of its own: the parent imports no torch."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

_QUESTION = "import torch; print(torch.cuda.is_available())"


def has_cuda(timeout: float = 60.0) -> bool:
    """Whether torch can run on a CUDA GPU here; False where it does not answer within ``timeout`` seconds."""
    if _built_without_gpu():
        return False
    try:
        answer = subprocess.run(
            [sys.executable, "-c", _QUESTION], capture_output=True, text=True, timeout=timeout, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.strip().endswith("True")


def _built_without_gpu() -> bool:
    """Whether the installed torch says of itself that it was built for the CPU alone."""
    spec = importlib.util.find_spec("torch")
    try:
        text = (Path(spec.origin or "").parent / "version.py").read_text() if spec is not None else ""
    except OSError:
        return False
    values: dict[str, str] = dict(re.findall(r"^(cuda|hip)\b[^=\n]*= (.+)$", text, re.MULTILINE))
    return values.get("cuda", "").strip() == "None" and values.get("hip", "None").strip() == "None"
