"""How casts, constructors and operations are written; shared by the operators."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutants.sources import File

DTYPES = ("float32", "float", "float16", "half", "bfloat16", "float64", "double")
WIDE = ("float32", "float", "float64", "double")
CONSTRUCTORS = [
    "zeros",
    "ones",
    "empty",
    "full",
    "arange",
    "eye",
    "linspace",
    "logspace",
    "tensor",
    "as_tensor",
    "rand",
    "randn",
    "zeros_like",
    "ones_like",
    "empty_like",
    "full_like",
    "rand_like",
    "randn_like",
    "tril_indices",
    "hann_window",
    "hamming_window",
    "scalar_tensor",
]
NEW = ["new_zeros", "new_ones", "new_empty", "new_full", "new_tensor"]
PRODUCTS = [
    "matmul",
    "mm",
    "bmm",
    "mv",
    "addmm",
    "baddbmm",
    "einsum",
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "bilinear",
    "tensordot",
    "chain_matmul",
    "addbmm",
]
ATTENTION = "scaled_dot_product_attention"
REDUCTIONS = [
    "softmax",
    "log_softmax",
    "logsumexp",
    "sum",
    "mean",
    "var",
    "std",
    "norm",
    "vector_norm",
    "cumsum",
    "cumprod",
    "prod",
    "normalize",
    "layer_norm",
    "rms_norm",
    "group_norm",
    "batch_norm",
    "pow",
    "square",
    "rsqrt",
    "sqrt",
    "exp",
    "expm1",
    "log",
    "log1p",
    "softplus",
    "cross_entropy",
    "nll_loss",
    "kl_div",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_similarity",
    "gumbel_softmax",
    "logcumsumexp",
    "reciprocal",
]
UNSUPPORTED = [
    "svd",
    "qr",
    "inv",
    "pinv",
    "det",
    "slogdet",
    "solve",
    "lstsq",
    "eigh",
    "eigvalsh",
    "eig",
    "cholesky",
    "matrix_exp",
    "fft",
    "ifft",
    "rfft",
    "irfft",
    "fft2",
    "ifft2",
    "rfft2",
    "irfft2",
    "fftn",
    "ifftn",
    "stft",
    "istft",
    "view_as_complex",
    "polar",
    "quantile",
    "nanquantile",
    "cdist",
    "lu",
    "histc",
    "numpy",
    "lerp",
    "multinomial",
    "median",
    "mode",
    "unique",
    "sort",
    "erfinv",
    "lgamma",
    "digamma",
    "bincount",
]


def is_torch(file: File, node: ast.expr, *names: str) -> bool:
    """Whether an expression is one of torch's functions of these names, by any path."""
    dotted = file.name(node)
    top, _, last = dotted.rpartition(".")
    return last in names and (top == "torch" or top.startswith("torch."))


def called(node: ast.Call) -> str:
    """The last part of a called name."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def is_dtype(file: File, node: ast.AST) -> bool:
    """Whether an expression is a dtype by how it is written: torch's name for one, or ``.dtype`` of something."""
    name = file.name(node)
    if name.startswith("torch.") and name.rpartition(".")[2] in DTYPES:
        return True
    return (isinstance(node, ast.Attribute) and node.attr == "dtype") or (
        isinstance(node, ast.Name) and node.id.endswith("dtype")
    )


def dtype_argument(file: File, call: ast.Call) -> ast.expr | ast.keyword | None:
    """The argument of ``.to(...)`` that gives the dtype, None where none does."""
    for keyword in call.keywords:
        if keyword.arg in ("dtype", "other"):
            return keyword
    return next((argument for argument in call.args if is_dtype(file, argument)), None)


def value_of(argument: ast.expr | ast.keyword) -> ast.expr:
    """The expression of an argument."""
    return argument.value if isinstance(argument, ast.keyword) else argument


def is_cast(file: File, node: ast.AST) -> bool:
    """Whether a node is a call that casts a tensor: ``x.to(dtype)``, ``x.float()``, ``x.type_as(y)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if file.name(node.func).startswith("torch."):
        return False
    kind = node.func.attr
    if kind == "to":
        return dtype_argument(file, node) is not None
    if kind in ("type_as", "type"):
        return len(node.args) == 1 and (kind == "type_as" or is_dtype(file, node.args[0]))
    return kind in ("float", "double", "half", "bfloat16") and not node.args


def is_upcast(file: File, node: ast.AST) -> bool:
    """Whether a node casts to float32 or float64, written out."""
    if not is_cast(file, node):
        return False
    assert isinstance(node, ast.Call)
    kind = called(node)
    if kind in ("float", "double"):
        return True
    argument = dtype_argument(file, node) if kind == "to" else (node.args[0] if kind == "type" else None)
    return argument is not None and file.name(value_of(argument)).rpartition(".")[2] in WIDE


def receiver(call: ast.Call) -> ast.expr:
    """What a method is called on."""
    assert isinstance(call.func, ast.Attribute)
    return call.func.value


def is_constructor(file: File, node: ast.AST) -> bool:
    """Whether a node makes a tensor from sizes or numbers."""
    if not isinstance(node, ast.Call):
        return False
    if called(node) in NEW and isinstance(node.func, ast.Attribute):
        return True
    return is_torch(file, node.func, *CONSTRUCTORS)


def operands(file: File, node: ast.AST) -> list[ast.expr]:
    """The tensors that a product works on, as it is written; empty where the node is none."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return [node.left, node.right]
    if not isinstance(node, ast.Call):
        return []
    name = called(node)
    if name not in PRODUCTS and name != ATTENTION:
        return []
    arguments = [a for a in node.args if not isinstance(a, (ast.Starred, ast.Constant, ast.JoinedStr))]
    if name in ("matmul", "mm", "bmm", "mv") and isinstance(node.func, ast.Attribute) and len(arguments) == 1:
        return [node.func.value, *arguments]
    if not (is_torch(file, node.func, name) or name == "einsum"):
        return []
    return arguments[: 3 if name == ATTENTION else 2]


def in_parentheses(node: ast.expr, text: str) -> str:
    """The text, in parentheses where a method could not be called on it or an operator would tear it apart."""
    plain = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Tuple, ast.List)
    return text if isinstance(node, plain) else f"({text})"
