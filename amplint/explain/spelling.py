"""How torch writes dtypes in its messages, and which dtype each spelling means.

One dtype has many names: ``c10::ScalarType`` prints ``BFloat16``, C++ type names ``c10::BFloat16`` (``at::`` before
1.9, ``struct c10::`` with MSVC), old type names ``torch.cuda.HalfTensor`` or ``CPUBFloat16Type``, Python
``torch.bfloat16``. A bare ``float`` is C++'s, so float32.
"""

from __future__ import annotations

import re

_SCALAR_TYPES = {
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Float": "float32",
    "Double": "float64",
    "ComplexHalf": "complex32",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "Float8_e4m3fn": "float8_e4m3fn",
    "Float8_e4m3fnuz": "float8_e4m3fnuz",
    "Float8_e5m2": "float8_e5m2",
    "Float8_e5m2fnuz": "float8_e5m2fnuz",
}
_TYPE_NAMES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "complex<float>": "complex64",
    "complex<double>": "complex128",
    "long long": "int64",
    "long int": "int64",
    "long": "int64",
    "int64_t": "int64",
    "__int64": "int64",
    "int": "int32",
    "short int": "int16",
    "short": "int16",
    "signed char": "int8",
    "unsigned char": "uint8",
}
_BACKENDS = ("CPU", "CUDA", "MPS", "XPU", "HPU", "XLA", "PrivateUse1")

NAMES: dict[str, str] = {
    **_SCALAR_TYPES,
    **_TYPE_NAMES,
    **{dtype: dtype for dtype in _SCALAR_TYPES.values()},
    **{f"{name}Tensor": dtype for name, dtype in _SCALAR_TYPES.items()},
    **{f"{backend}{name}Type": dtype for name, dtype in _SCALAR_TYPES.items() for backend in _BACKENDS},
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
