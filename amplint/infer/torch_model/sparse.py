"""Tensors that hold the coordinates of their elements (COO), and products of one with a dense tensor.

CUDA computes such a product in float32 and float64 alone: ``s_addmm_out_csr_sparse_dense_cuda_worker`` dispatches
floating and complex types, "No half support" (aten/src/ATen/native/sparse/cuda/SparseCUDATensorMath.cu), and so does
``bmm``. Autocast casts the operands all the same, also below ``torch.sparse.mm`` and ``torch.sparse.addmm``: run in
torch 2.13, these give 16-bit results in a region on the CPU, which has the kernels since torch 2.4. A product of two
sparse tensors is another operation, which autocast does not know. Compressed rows (CSR) have 16-bit kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.values import Trait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.infer.state.operand import Operand
    from amplint.source import Source

_COMPRESSED = ("csr", "csc", "bsr", "bsc")
MAKERS: dict[str, Trait] = {
    "torch.sparse_coo_tensor": Trait.SPARSE,
    **dict.fromkeys((f"torch.sparse_{layout}_tensor" for layout in _COMPRESSED), Trait.COMPRESSED),
}
"""Functions that make a sparse tensor of indices and values."""
MODULE = "torch.sparse."
LEGACY = (MODULE, "torch.cuda.sparse.")
"""Where the classes of sparse tensors lie that have their dtype in their name, such as ``torch.sparse.FloatTensor``."""
CONVERSIONS: dict[str, Trait] = {
    **dict.fromkeys(("to_sparse", "to_sparse_coo"), Trait.SPARSE),
    **dict.fromkeys((f"to_sparse_{layout}" for layout in _COMPRESSED), Trait.COMPRESSED),
}
"""Methods by which a tensor becomes a sparse one."""
PRODUCTS = {
    **dict.fromkeys(("torch.sparse.mm", "torch.spmm", "torch.dsmm"), "torch.mm"),
    "torch.sparse.addmm": "torch.addmm",
}
"""Products that want a sparse tensor in the place of the first matrix, and what they are else."""
_COMPUTED = frozenset(("mm", "matmul", "addmm", "mv", "bmm"))
DEVICE = "cuda"
"""The device that lacks the kernels."""


def may_be_compressed(source: Source) -> bool:
    """Whether a file names another sparse layout, so that a matrix of which nothing else is known may have that."""
    return any(f"sparse_{layout}" in source.text for layout in _COMPRESSED)


def lacks_kernel(name: str, operands: Sequence[Operand], device: str) -> bool:
    """Whether an operation multiplies one such tensor with a dense one on a device that does so in no 16-bit dtype.

    Of two dtypes, one of them in 16 bit, the product raises as well. What a product gives of which one operand may be
    sparse is not known to be.
    """
    if device != DEVICE or name.rpartition(".")[2] not in _COMPUTED or len(operands) < 2:
        return False
    holding = [operand for operand in operands[-2:] if operand.value.trait is Trait.SPARSE]
    return len(holding) == 1 and not (holding[0].value.maybe and holding[0].value.unsure)
