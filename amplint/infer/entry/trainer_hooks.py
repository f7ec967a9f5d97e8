"""Hooks of Lightning: its trainer switches autocast on around the steps of a module alone.

Training with ``precision="bf16-mixed"`` runs ``training_step``, ``validation_step``, ``test_step`` and
``predict_step`` under autocast, and everything else that it calls outside of it. That was seen by asking for autocast
in each hook of a module and of a callback, in Lightning 1.9.5 and 2.6. With manual optimization a module calls for
backward and the optimizer's step within its own step: the hooks around these then run under autocast.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amplint.infer.lattice.values import External
from amplint.infer.names.classes import LIGHTNING, ancestry

if TYPE_CHECKING:
    from amplint.infer.names.definitions import Function

_BETWEEN_STEPS = re.compile(
    r"on_(fit|sanity_check|(train|validation|test|predict)(_batch|_epoch)?)_(start|end)"
    r"|(training|validation|test)_(epoch|step)_end|setup|teardown|configure_optimizers"
)
_HOOKED = frozenset(f"{package}.{name}" for package in LIGHTNING for name in ("LightningModule", "Callback"))


def between_steps(function: Function) -> bool:
    """Whether a function is a hook that Lightning calls outside of autocast."""
    if function.owner is None or not _BETWEEN_STEPS.fullmatch(function.name):
        return False
    bases = (base.name for base in ancestry(function.owner) if isinstance(base, External))
    return any(f"{name.partition('.')[0]}.{name.rpartition('.')[2]}" in _HOOKED for name in bases)
