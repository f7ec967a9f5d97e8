"""``force_fp32`` of mmcv 1, which closes autocast around a method where the project trains with mmcv's own ``fp16``.

``mmcv/runner/fp16_utils.py`` (1.7): once ``wrap_fp16_model`` has turned ``fp16_enabled`` on, it casts the arguments
that it names, or all, from float16 to float32, those in lists and dicts too, and runs the method within
``autocast(enabled=False)``; else it only calls the method. A project that decorates its methods so trains with mmcv's
``fp16``, and not in an autocast of its own: so it is judged as if ``fp16_enabled`` were on under autocast, of bfloat16
too, which mmcv has not, and off with half weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.decorators import CustomDecorator
from amplint.infer.lattice.values import NONE, Const, Sequence, Value

if TYPE_CHECKING:
    from amplint.infer.lattice.arguments import Arguments
    from amplint.infer.state.session import Session

FORCE_FP32 = ("mmcv.runner.force_fp32", "mmcv.runner.fp16_utils.force_fp32")


def force_fp32(session: Session, arguments: Arguments) -> CustomDecorator:
    """What calling ``force_fp32(apply_to=None, out_fp16=False)`` gives: a decorator."""
    names = arguments.get(0, "apply_to")
    every = names is None or names is NONE
    casts = None if every else tuple(_texts(names))
    return CustomDecorator(None, session.dtype("float32"), casts)


def _texts(names: Value | None) -> list[str]:
    items = names.items if isinstance(names, Sequence) and names.items is not None else (names,)
    return [item.value for item in items if isinstance(item, Const) and isinstance(item.value, str)]
