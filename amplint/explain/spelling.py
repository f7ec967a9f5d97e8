"""How torch writes dtypes in its messages, and which dtype each spelling means.

One dtype has many names: ``c10::ScalarType`` prints ``BFloat16``, C++ type names ``c10::BFloat16`` (``at::`` before
1.9, ``struct c10::`` with MSVC), old type names ``torch.cuda.HalfTensor`` or ``CPUBFloat16Type``, Python
``torch.bfloat16``. A bare ``float`` is C++'s, so float32.
"""

from __future__ import annotations

import re

_SPELLINGS = {
    "float16": ("Half", "half"),
    "bfloat16": ("BFloat16",),
    "float32": ("Float", "float"),
    "float64": ("Double", "double"),
    "complex32": ("ComplexHalf",),
    "complex64": ("ComplexFloat", "cfloat", "complex<float>"),
    "complex128": ("ComplexDouble", "cdouble", "complex<double>"),
    "int64": ("Long", "long long", "long int", "long", "int64_t", "__int64"),
    "int32": ("Int", "int"),
    "int16": ("Short", "short int", "short"),
    "int8": ("Char", "signed char"),
    "uint8": ("Byte", "unsigned char"),
    "bool": ("Bool",),
    **{f"float8_{form}": (f"Float8_{form}",) for form in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")},
}
"""By dtype: the name in ``c10::ScalarType``, then those of C++ types."""
_BACKENDS = ("CPU", "CUDA", "MPS", "XPU", "HPU", "XLA", "PrivateUse1")

NAMES: dict[str, str] = {
    **{name: dtype for dtype, names in _SPELLINGS.items() for name in (dtype, *names)},
    **{f"{names[0]}Tensor": dtype for dtype, names in _SPELLINGS.items()},
    **{f"{backend}{names[0]}Type": dtype for dtype, names in _SPELLINGS.items() for backend in _BACKENDS},
}
"""Every spelling without its namespace, to the torch dtype without ``torch.``."""

_NAMESPACE = re.compile(r"(?:struct )?(?:torch\.)?(?:(?:cuda|xpu|mps|hpu|xla|sparse)\.)*(?:c10::|at::)?")

PATTERN = r"(?:struct )?(?:(?:un)?signed |long |short )?[A-Za-z_]\w*(?:(?:::|\.)\w+)*(?:<\w+>)?"
"""A regular expression without groups that matches every spelling of a dtype, and more: :func:`dtype_of` decides."""

LOW = frozenset(name for name in NAMES.values() if name in ("float16", "bfloat16") or name.startswith("float8"))
FLOATING = LOW | {"float32", "float64"}
COMPLEX = frozenset({"complex32", "complex64", "complex128"})


def dtype_of(spelling: str) -> str | None:
    """The torch dtype without ``torch.`` that torch means by a spelling; None where it is not one of a dtype."""
    namespace = _NAMESPACE.match(spelling)
    return NAMES.get(spelling[namespace.end() :]) if namespace is not None else None
