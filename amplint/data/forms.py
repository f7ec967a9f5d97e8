"""Calls of torch functions that OpInfo has no samples for, or none in the form users write.

Each form is a qualified name and a builder of ``(args, kwargs)``: small float32 CPU tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Builder = Callable[[], Arguments]

FORMS: list[tuple[str, Builder]] = []


def t(*shape: int) -> torch.Tensor:
    """Values in [0.1, 0.9], so that logarithms, probabilities and divisions are defined."""
    return torch.rand(shape) * 0.8 + 0.1


def _add(names: str, build: Callable[[], tuple[Any, ...]], **kwargs: Any) -> None:
    """``@x`` stands for ``torch.Tensor.x``."""
    for name in names.split():
        FORMS.append((name.replace("@", "torch.Tensor."), lambda: (build(), kwargs)))


def _rows() -> torch.Tensor:
    return torch.tensor([0, 1])


def _grid() -> torch.Tensor:
    return torch.zeros(2, 4, dtype=torch.long)


def _mask() -> torch.Tensor:
    return torch.tensor([True, False, True, False])


def _spd() -> torch.Tensor:
    return torch.eye(3) * 2


_F = "torch.nn.functional."

# ---- matrix products
_add("torch.matmul torch.mm @matmul @mm", lambda: (t(3, 4), t(4, 3)))
_add("torch.bmm @bmm", lambda: (t(2, 3, 4), t(2, 4, 3)))
_add("torch.addmm @addmm @addmm_", lambda: (t(3, 3), t(3, 4), t(4, 3)))
_add("torch.baddbmm @baddbmm @baddbmm_", lambda: (t(2, 3, 3), t(2, 3, 4), t(2, 4, 3)))
_add("torch.addbmm @addbmm @addbmm_", lambda: (t(3, 3), t(2, 3, 4), t(2, 4, 3)))
_add("torch.addmv @addmv @addmv_", lambda: (t(3), t(3, 4), t(4)))
_add("torch.addr @addr @addr_", lambda: (t(3, 4), t(3), t(4)))
_add("torch.einsum", lambda: ("ij,jk->ik", t(3, 4), t(4, 3)))
_add("torch.einsum", lambda: ("i,j->ij", t(3), t(4)))
_add("torch.einsum", lambda: ("bi,bj->bij", t(2, 3), t(2, 4)))
_add("torch.tensordot", lambda: (t(3, 4), t(4, 3)), dims=1)
_add("torch.chain_matmul", lambda: (t(3, 4), t(4, 3), t(3, 2)))
_add("torch.linalg.multi_dot", lambda: ([t(3, 4), t(4, 3), t(3, 2)],))
_add(_F + "linear", lambda: (t(2, 4), t(3, 4), t(3)))
_add(_F + "bilinear", lambda: (t(2, 4), t(2, 5), t(3, 4, 5), t(3)))

# ---- convolutions
_add(_F + "conv1d torch.conv1d", lambda: (t(1, 2, 6), t(3, 2, 3), t(3)))
_add(_F + "conv2d torch.conv2d", lambda: (t(1, 2, 6, 6), t(3, 2, 3, 3), t(3)))
_add(_F + "conv3d torch.conv3d", lambda: (t(1, 2, 4, 4, 4), t(3, 2, 3, 3, 3), t(3)))
_add(_F + "conv_transpose1d torch.conv_transpose1d", lambda: (t(1, 2, 6), t(2, 3, 3), t(3)))
_add(_F + "conv_transpose2d torch.conv_transpose2d", lambda: (t(1, 2, 6, 6), t(2, 3, 3, 3), t(3)))
_add(_F + "conv_transpose3d torch.conv_transpose3d", lambda: (t(1, 2, 4, 4, 4), t(2, 3, 3, 3, 3), t(3)))
_add("torch.nn.grad.conv1d_input", lambda: ([1, 2, 6], t(3, 2, 3), t(1, 3, 4)))
_add("torch.nn.grad.conv2d_input", lambda: ([1, 2, 6, 6], t(3, 2, 3, 3), t(1, 3, 4, 4)))
_add("torch.nn.grad.conv3d_input", lambda: ([1, 2, 4, 4, 4], t(3, 2, 3, 3, 3), t(1, 3, 2, 2, 2)))
_add("torch.nn.grad.conv1d_weight", lambda: (t(1, 2, 6), [3, 2, 3], t(1, 3, 4)))
_add("torch.nn.grad.conv2d_weight", lambda: (t(1, 2, 6, 6), [3, 2, 3, 3], t(1, 3, 4, 4)))
_add("torch.nn.grad.conv3d_weight", lambda: (t(1, 2, 4, 4, 4), [3, 2, 3, 3, 3], t(1, 3, 2, 2, 2)))

# ---- attention and recurrent layers
_add(_F + "scaled_dot_product_attention", lambda: (t(1, 2, 4, 8), t(1, 2, 4, 8), t(1, 2, 4, 8)))
_add(_F + "scaled_dot_product_attention", lambda: (t(1, 2, 4, 8), t(1, 2, 4, 8), t(1, 2, 4, 8), t(4, 4)))


def _attention() -> tuple[Any, ...]:
    query, key, value = t(4, 2, 8), t(4, 2, 8), t(4, 2, 8)
    return (query, key, value, 8, 2, t(24, 8), t(24), None, None, False, 0.0, t(8, 8), t(8))


_add(_F + "multi_head_attention_forward", _attention)
_add(_F + "multi_head_attention_forward", _attention, need_weights=False)


def _lstm(gates: int) -> tuple[Any, ...]:
    weights = [t(gates * 5, 4), t(gates * 5, 5), t(gates * 5), t(gates * 5)]
    state = (t(1, 2, 5), t(1, 2, 5)) if gates == 4 else t(1, 2, 5)
    return (t(2, 3, 4), state, weights, True, 1, 0.0, False, False, True)


def _cell(gates: int) -> tuple[Any, ...]:
    state = (t(2, 5), t(2, 5)) if gates == 4 else t(2, 5)
    return (t(2, 4), state, t(gates * 5, 4), t(gates * 5, 5), t(gates * 5), t(gates * 5))


_add("torch.lstm", lambda: _lstm(4))
_add("torch.gru", lambda: _lstm(3))
_add("torch.rnn_tanh torch.rnn_relu", lambda: _lstm(1))
_add("torch.lstm_cell", lambda: _cell(4))
_add("torch.gru_cell", lambda: _cell(3))
_add("torch.rnn_tanh_cell torch.rnn_relu_cell", lambda: _cell(1))

# ---- normalisation
_add(_F + "layer_norm", lambda: (t(2, 4), (4,), t(4), t(4)))
_add(_F + "group_norm", lambda: (t(2, 4, 3), 2, t(4), t(4)))
_add(_F + "rms_norm", lambda: (t(2, 4), (4,), t(4)))
_add("torch.rms_norm", lambda: (t(2, 4), (4,), t(4)))
_add("torch.layer_norm", lambda: (t(2, 4), (4,), t(4), t(4)))
_add("torch.group_norm", lambda: (t(2, 4, 3), 2, t(4), t(4)))
_add(_F + "batch_norm", lambda: (t(4, 3), t(3), t(3), t(3), t(3)))
_add(_F + "batch_norm", lambda: (t(4, 3), t(3), t(3), t(3), t(3)), training=True)
_add(_F + "batch_norm", lambda: (t(4, 3), None, None, t(3), t(3)), training=True)
_add(_F + "instance_norm", lambda: (t(2, 3, 5),), weight=t(3), bias=t(3))
_add(_F + "normalize", lambda: (t(2, 4),))
_add(_F + "local_response_norm", lambda: (t(2, 4, 5), 2))
_add(_F + "prelu torch.prelu @prelu", lambda: (t(2, 3), t(3)))

# ---- writes
_add("@index_put_ @index_put torch.index_put torch.index_put_", lambda: (t(4, 4), (_rows(),), t(2, 4)))
_add("@index_put_", lambda: (t(4, 4), (_mask(),), t(2, 4)))
_add("@index_put_", lambda: (t(4, 4), (_rows(),), t(2, 4)), accumulate=True)
for _name in ("index_add", "index_copy"):
    _add(f"@{_name}_ @{_name} torch.{_name}", lambda: (t(4, 4), 0, _rows(), t(2, 4)))
_add("@index_reduce_ @index_reduce torch.index_reduce", lambda: (t(4, 4), 0, _rows(), t(2, 4), "mean"))
for _name in ("scatter", "scatter_add"):
    _add(f"@{_name}_ @{_name} torch.{_name}", lambda: (t(4, 4), 0, _grid(), t(2, 4)))
for _name in ("mean", "sum", "amax"):
    _add("@scatter_reduce_ @scatter_reduce torch.scatter_reduce", lambda: (t(4, 4), 0, _grid(), t(2, 4)), reduce=_name)
_add("@masked_scatter_ @masked_scatter torch.masked_scatter", lambda: (t(4), _mask(), t(4)))
_add("@masked_fill_ @masked_fill torch.masked_fill", lambda: (t(4), _mask(), -1.0))
_add("@put_ @put torch.put", lambda: (t(4, 4), _rows(), t(2)))
_add("@copy_", lambda: (t(4), t(4)))
_add("@fill_ torch.fill torch.fill_", lambda: (t(4), 0.5))
_add("@lerp_ @lerp torch.lerp", lambda: (t(4), t(4), 0.5))
_add("@lerp_ @lerp torch.lerp", lambda: (t(4), t(4), t(4)))
_add("@lerp_ @lerp torch.lerp", lambda: (t(4), t(4), t()))
_add("@fill_diagonal_", lambda: (t(4, 4), 0.5))

# ---- choosing and joining
_add("torch.where", lambda: (_mask(),))
_add("torch.where", lambda: (_mask(), t(4), t(4)))
_add("torch.where", lambda: (_mask(), t(4), 0.5))
_add("@where", lambda: (t(4), _mask(), t(4)))
_add(
    "torch.cat torch.concat torch.concatenate torch.stack torch.hstack torch.vstack torch.dstack",
    lambda: ([t(4), t(4)],),
)
_add("torch.block_diag torch.cartesian_prod torch.meshgrid", lambda: (t(4), t(4)))
_add("torch.meshgrid torch.broadcast_tensors torch.atleast_1d torch.atleast_2d torch.atleast_3d", lambda: (t(4), t(4)))
_add("torch.atleast_1d torch.atleast_2d torch.atleast_3d", lambda: (t(4),))
_add("torch.linalg.cross torch.cross @cross", lambda: (t(2, 3), t(2, 3)))
_add("@expand_as @view_as @reshape_as", lambda: (t(3, 4), t(3, 4)))
_add("@type_as", lambda: (t(3, 4), t(3, 4)))
_add("torch.isclose torch.allclose torch.equal @isclose @allclose @equal", lambda: (t(3), t(3)))

# ---- views and shapes
_add("@view @reshape torch.reshape", lambda: (t(3, 4), (4, 3)))
_add("@permute torch.permute", lambda: (t(3, 4), (1, 0)))
_add("@expand @broadcast_to torch.broadcast_to", lambda: (t(1, 4), (3, 4)))
_add("@repeat @tile torch.tile", lambda: (t(3, 4), (2, 1)))
_add("@transpose torch.transpose @transpose_ @swapaxes", lambda: (t(3, 4), 0, 1))
_add("@unsqueeze torch.unsqueeze @unsqueeze_", lambda: (t(3, 4), 0))
_add("@chunk torch.chunk @split torch.split @tensor_split torch.tensor_split", lambda: (t(4, 4), 2))
_add("@hsplit torch.hsplit @vsplit torch.vsplit", lambda: (t(4, 4), 2))
_add("@split torch.split", lambda: (t(4, 4), [1, 3]))
_add("@unbind torch.unbind", lambda: (t(4, 4), 0))
_add("torch.nonzero @nonzero", lambda: (t(3, 4),), as_tuple=True)
_add("@unfold", lambda: (t(4, 4), 0, 2, 1))
_add("@narrow torch.narrow", lambda: (t(4, 4), 0, 1, 2))
_add("@select torch.select", lambda: (t(4, 4), 0, 1))
_add("@flatten torch.flatten @ravel torch.ravel", lambda: (t(4, 4),))
_add("@unflatten torch.unflatten", lambda: (t(4, 4), 0, (2, 2)))
_add("@size", lambda: (t(4, 4),))
_add("@size @stride", lambda: (t(4, 4), 0))
_add("@item", lambda: (t(1),))
_add("@resize_ @new_zeros @new_ones @new_empty", lambda: (t(3, 4), (4, 3)))
_add("@new_full", lambda: (t(3, 4), (4, 3), 0.5))

# ---- creation, under the default dtype float32
_add("torch.zeros torch.ones torch.empty torch.rand torch.randn", lambda: ((2, 3),))
_add(
    "torch.eye torch.randperm torch.hann_window torch.hamming_window torch.blackman_window torch.bartlett_window",
    lambda: (4,),
)
_add("torch.arange", lambda: (4,))
_add("torch.arange", lambda: (0, 4, 2))
_add("torch.full", lambda: ((2, 3), 1))
_add("torch.linspace torch.logspace", lambda: (0.0, 1.0, 4))
_add("torch.randint", lambda: (0, 4, (2, 3)))
_add("torch.tril_indices torch.triu_indices", lambda: (3, 3))
_add("torch.scalar_tensor", lambda: (0.5,))
_add("torch.bernoulli @bernoulli torch.poisson", lambda: (t(4),))
_add("torch.normal", lambda: (t(4), t(4)))
_add("@bernoulli_ @normal_ @uniform_ @exponential_", lambda: (t(4),))
_add("@log_normal_ @cauchy_ @geometric_", lambda: (t(4), 0.5))
_add("torch.complex torch.polar torch.heaviside", lambda: (t(3), t(3)))

# ---- embedding, sampling, resizing
_add(_F + "embedding", lambda: (_rows(), t(3, 4)))
_add("torch.embedding", lambda: (t(3, 4), _rows()))
_add(_F + "embedding_bag", lambda: (_rows()[None], t(3, 4)), mode="sum", per_sample_weights=t(1, 2))
_add(_F + "embedding_bag", lambda: (_rows()[None], t(3, 4)))
_add(_F + "one_hot", lambda: (_rows(), 4))
_add(_F + "grid_sample", lambda: (t(1, 2, 4, 4), t(1, 3, 3, 2)), align_corners=False)
_add(_F + "affine_grid", lambda: (t(1, 2, 3), (1, 1, 3, 3)), align_corners=False)
for _mode in ("nearest", "bilinear", "bicubic"):
    _add(f"{_F}interpolate {_F}upsample", lambda: (t(1, 1, 3, 3),), scale_factor=2, mode=_mode)
_add(f"{_F}interpolate {_F}upsample", lambda: (t(1, 1, 3),), scale_factor=2, mode="linear")
_add(_F + "interpolate", lambda: (t(1, 1, 3, 3),), size=(5, 5), mode="area")
_add(_F + "upsample_nearest " + _F + "upsample_bilinear", lambda: (t(1, 1, 3, 3),), scale_factor=2)
_add(_F + "gumbel_softmax", lambda: (t(2, 4),))
_add(_F + "gumbel_softmax", lambda: (t(2, 4),), hard=True)
_add("torch.searchsorted", lambda: (t(4).sort()[0], t(4)))
_add("torch.bucketize", lambda: (t(4), t(4).sort()[0]))
_add("torch.bincount", lambda: (_rows(), t(2)))
_add("torch.multinomial @multinomial", lambda: (t(4), 2))
_add(
    "torch.trapezoid torch.trapz torch.cosine_similarity torch.pairwise_distance torch.dist", lambda: (t(3, 4), t(3, 4))
)
_add("torch.cdist", lambda: (t(3, 4), t(3, 4)))
for _p in (1.0, 2.0):
    _add("torch.cdist", functools.partial(lambda p: (t(3, 4), t(3, 4), p), _p))
for _mode in ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
    _add("torch.cdist", lambda: (t(3, 4), t(3, 4)), compute_mode=_mode)
_add("torch.stft @stft", lambda: (t(64), 16), window=torch.ones(16), return_complex=True)
_add("torch.quantile @quantile torch.nanquantile", lambda: (t(4), 0.5))
_add("torch.quantile @quantile torch.nanquantile", lambda: (t(4), t(2)))

_add(_F + "pad", lambda: (t(3, 4), (1, 1)))
_add("torch.stft @stft", lambda: (t(64), 16), return_complex=True)
_add("torch.affine_grid_generator", lambda: (t(1, 2, 3), (1, 1, 3, 3), False))
_add("torch.grid_sampler", lambda: (t(1, 2, 4, 4), t(1, 3, 3, 2), 0, 0, False))
_add("torch.polygamma torch.special.polygamma", lambda: (1, t(4)))
_add("torch.special.gammainc torch.special.gammaincc", lambda: (t(4), t(4)))
_add("torch.istft @istft", lambda: (torch.randn(9, 17, dtype=torch.complex64), 16), window=torch.ones(16))
_add("torch.view_as_real torch.imag torch.real torch.abs torch.angle", lambda: (torch.randn(3, dtype=torch.complex64),))
_add("torch.kaiser_window torch.fft.fftfreq torch.fft.rfftfreq", lambda: (4,))
_add("@requires_grad_ @share_memory_", lambda: (t(4),))

# ---- pooling and dropout, as torch.* spells them
_add(
    "torch.dropout torch.dropout_ torch.alpha_dropout torch.alpha_dropout_ torch.native_dropout",
    lambda: (t(2, 4), 0.5, True),
)
_add("torch.feature_dropout torch.feature_dropout_ torch.feature_alpha_dropout", lambda: (t(2, 4, 4), 0.5, True))
_add(_F + "dropout1d", lambda: (t(2, 4, 4),))
_add("torch.max_pool1d torch.max_pool1d_with_indices", lambda: (t(1, 2, 6), 2))
_add("torch.max_pool2d", lambda: (t(1, 2, 6, 6), 2))
_add("torch.max_pool3d", lambda: (t(1, 2, 4, 4, 4), 2))
_add(_F + "max_pool1d_with_indices " + _F + "lp_pool1d", lambda: (t(1, 2, 6), 2, 2))
_add(_F + "max_pool2d_with_indices " + _F + "lp_pool2d", lambda: (t(1, 2, 6, 6), 2, 2))
_add(_F + "max_pool3d_with_indices " + _F + "lp_pool3d", lambda: (t(1, 2, 4, 4, 4), 2, 2))
_add(_F + "adaptive_max_pool1d_with_indices", lambda: (t(1, 2, 6), 2))
_add(_F + "adaptive_max_pool2d_with_indices", lambda: (t(1, 2, 6, 6), 2))
_add(_F + "adaptive_max_pool3d_with_indices", lambda: (t(1, 2, 6, 6, 6), 2))
_add("torch.adaptive_max_pool1d", lambda: (t(1, 2, 6), 2))
_add(_F + "fold", lambda: (t(1, 8, 4), (3, 3), (2, 2)))
_add(_F + "conv_tbc torch.conv_tbc", lambda: (t(6, 1, 2), t(3, 2, 3), t(3)))
_add("torch.batch_norm", lambda: (t(4, 3), t(3), t(3), t(3), t(3), True, 0.1, 1e-5, False))
_add("torch.instance_norm", lambda: (t(2, 3, 5), t(3), t(3), None, None, True, 0.1, 1e-5, False))
_add("torch.addr @addr", lambda: (t(3, 4), t(3), t(4)), beta=1.0)

# ---- losses
_LIKELIHOOD = "binary_cross_entropy binary_cross_entropy_with_logits kl_div poisson_nll_loss"
for _name in f"mse_loss l1_loss smooth_l1_loss huber_loss {_LIKELIHOOD}".split():
    _add(_F + _name, lambda: (t(2, 4), t(2, 4)))
_add(_F + "binary_cross_entropy " + _F + "binary_cross_entropy_with_logits", lambda: (t(2, 4), t(2, 4)), weight=t(2, 4))
_add(_F + "binary_cross_entropy_with_logits", lambda: (t(2, 4), t(2, 4)), pos_weight=t(4))
_add("torch.binary_cross_entropy_with_logits torch.kl_div", lambda: (t(2, 4), t(2, 4)))
_add(_F + "cross_entropy " + _F + "nll_loss", lambda: (t(2, 4), _rows()))
_add(_F + "cross_entropy " + _F + "nll_loss", lambda: (t(2, 4), _rows()), weight=t(4))
_add(_F + "cross_entropy", lambda: (t(2, 4), t(2, 4)))
_add(_F + "gaussian_nll_loss", lambda: (t(2, 4), t(2, 4), t(2, 4)))
_add(_F + "triplet_margin_loss", lambda: (t(2, 4), t(2, 4), t(2, 4)))
_add(_F + "cosine_embedding_loss", lambda: (t(2, 4), t(2, 4), torch.ones(2)))
_add("torch.cosine_embedding_loss", lambda: (t(2, 4), t(2, 4), torch.ones(2)))
_add("torch.margin_ranking_loss", lambda: (t(4), t(4), torch.ones(4)))
_add("torch.poisson_nll_loss", lambda: (t(4), t(4), True, False, 1e-8, 1))
_add("torch.ctc_loss", lambda: (t(5, 1, 4).log_softmax(-1), _rows()[None] + 1, torch.tensor([5]), torch.tensor([2])))
_add(_F + "margin_ranking_loss", lambda: (t(4), t(4), torch.ones(4)))
_add(_F + "ctc_loss", lambda: (t(5, 1, 4).log_softmax(-1), _rows()[None] + 1, torch.tensor([5]), torch.tensor([2])))

# ---- decompositions and solvers
_add("torch.linalg.solve", lambda: (_spd(), t(3, 1)))
_add("torch.linalg.lstsq", lambda: (_spd(), t(3, 1)))
_add("torch.linalg.solve_triangular", lambda: (_spd(), t(3, 1)), upper=True)
_add("torch.cholesky_solve @cholesky_solve", lambda: (t(3, 1), _spd()))
_add("torch.svd_lowrank torch.pca_lowrank", lambda: (t(6, 6),), q=2)

# ---- initialisation, in place
_INIT = "torch.nn.init."
_FILLS = "zeros_ ones_ eye_ normal_ uniform_ trunc_normal_ orthogonal_ orthogonal normal uniform eye"
_FANS = [f"{n}_{kind}{end}" for n in ("xavier", "kaiming") for kind in ("normal", "uniform") for end in ("_", "")]
for _name in [*_FILLS.split(), *_FANS]:
    _add(_INIT + _name, lambda: (t(4, 4),))
_add(f"{_INIT}constant_ {_INIT}constant", lambda: (t(4, 4), 0.5))
_add(f"{_INIT}sparse_ {_INIT}sparse", lambda: (t(4, 4), 0.5))
_add(f"{_INIT}dirac_ {_INIT}dirac", lambda: (t(3, 3, 3),))

# ---- sequences, parameters, windows
_SEQUENCES = "torch.nn.utils.rnn."
_add(_SEQUENCES + "pad_sequence", lambda: ([t(3, 4), t(2, 4)],))
_add(_SEQUENCES + "pack_padded_sequence", lambda: (t(3, 2, 4), [3, 2]))
_add(_SEQUENCES + "pack_sequence", lambda: ([t(3, 4), t(2, 4)],))
_add(_SEQUENCES + "unpad_sequence", lambda: (t(3, 2, 4), torch.tensor([3, 2])))
_add("torch.nn.utils.parameters_to_vector", lambda: ([t(3, 4), t(2, 4)],))
_WINDOWS = "bartlett blackman cosine exponential gaussian general_hamming hamming hann kaiser nuttall"
for _name in _WINDOWS.split():
    _add("torch.signal.windows." + _name, lambda: (4,), **({"std": 1.0} if _name == "gaussian" else {}))

# ---- what is seldom called, as users write it
_add("@new_tensor", lambda: (t(3, 4), [1, 2]))
_add("@new_tensor", lambda: (t(3, 4), [0.5]))
_add("torch.range", lambda: (0, 4))
_add("torch.as_tensor", lambda: (t(3, 4),))
_add("torch.binomial", lambda: (t(4), t(4)))
_add("@float_power_", lambda: (t(4).double(), 2.0))
_add("torch.is_same_size @is_same_size @is_set_to", lambda: (t(4), t(4)))
_add("torch.is_nonzero @is_nonzero torch.is_tensor", lambda: (t(1),))
_add("torch.embedding_bag", lambda: (t(3, 4), _rows(), torch.tensor([0])))
_add("torch.convolution", lambda: (t(1, 2, 6), t(3, 2, 3), t(3), (1,), (0,), (1,), False, (0,), 1))
_add("torch.select_copy", lambda: (t(3, 4), 0, 1))
_add("torch.unsafe_split_with_sizes @unsafe_split_with_sizes", lambda: (t(4, 4), [1, 3]))
_add("torch.view_as_complex_copy", lambda: (t(3, 2),))
_add("torch.view_as_real_copy", lambda: (torch.randn(3, dtype=torch.complex64),))
_add("torch.segment_reduce", lambda: (t(4), "sum"), lengths=torch.tensor([1, 3]))
_add("@to_dense @data_ptr", lambda: (t(3, 4),))
_add("@as_subclass", lambda: (t(3, 4), torch.Tensor))
_add("@set_", lambda: (t(3, 4), t(2, 2)))
_add("@resize_as @resize_as_", lambda: (t(3, 4), t(4, 3)))
_add("torch.logdet @logdet", lambda: (_spd(),))
