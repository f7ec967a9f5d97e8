"""The lattice against torch: promotion, dimensions, and what joins may lose."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from amplint.infer.lattice.dtypes import (
    ALIASES,
    AUTOCASTABLE,
    BITS,
    BOUNDED_LANE,
    COMPLEX,
    NAMES,
    UNKNOWN_LANE,
    Bound,
    Lane,
    Symbol,
    bits_of,
    complex_of,
    join_lanes,
    names_of,
    promote_lanes,
    promote_types,
    real_of,
    result_type,
)
from amplint.infer.lattice.strength import Strength, strength

PAIRS = list(itertools.product(NAMES, NAMES))
masks = st.integers(min_value=1, max_value=(1 << len(NAMES)) - 1)
lanes = st.builds(Lane, masks, st.none(), st.booleans(), st.booleans()) | st.just(UNKNOWN_LANE)
dims = st.sampled_from([0, 1])


def dtype(name: str) -> torch.dtype:
    found = getattr(torch, name)
    assert isinstance(found, torch.dtype)
    return found


def bit(value: torch.dtype) -> int:
    return BITS[str(value).removeprefix("torch.")]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_promotion_is_torchs(a: str, b: str) -> None:
    assert promote_types(BITS[a], BITS[b]) == bit(torch.promote_types(dtype(a), dtype(b)))


@pytest.mark.parametrize(("a", "b"), PAIRS)
@pytest.mark.parametrize(("a_dim", "b_dim"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_result_type_is_torchs(a: str, b: str, a_dim: int, b_dim: int) -> None:
    x = torch.empty((1,) * a_dim, dtype=dtype(a))
    y = torch.empty((1,) * b_dim, dtype=dtype(b))
    assert result_type(BITS[a], a_dim, BITS[b], b_dim) == bit(torch.result_type(x, y))


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_aliases_are_torchs(alias: str, name: str) -> None:
    assert getattr(torch, alias) is dtype(name)


@pytest.mark.parametrize("name", [n for n in NAMES if not BITS[n] & COMPLEX and "float" in n])
def test_complex_and_real_are_torchs(name: str) -> None:
    made = (
        torch.empty(2, dtype=dtype(name)).to(torch.complex64).dtype if name == "bfloat16" else dtype(name).to_complex()
    )
    assert complex_of(BITS[name]) == bit(made)
    if name != "bfloat16":
        assert real_of(bit(made)) == BITS[name]


@given(lanes, lanes)
def test_join_keeps_every_possibility(a: Lane, b: Lane) -> None:
    joined = join_lanes(a, b)
    assert joined.mask & a.mask == a.mask
    assert joined.mask & b.mask == b.mask
    assert joined.open == (a.open or b.open)
    assert join_lanes(b, a).mask == joined.mask


@given(lanes, dims, lanes, dims)
def test_promotion_covers_every_pair(a: Lane, a_dim: int, b: Lane, b_dim: int) -> None:
    """What two operands can be promotes to something that the result allows."""
    result = promote_lanes(a, a_dim, b, b_dim)
    if not result.known or not a.known or not b.known:
        return
    for x in bits_of(a.mask):
        for y in bits_of(b.mask):
            assert result_type(x, a_dim, y, b_dim) & result.mask


def test_unknown_stays_unknown() -> None:
    float32 = Lane(BITS["float32"])
    assert not promote_lanes(UNKNOWN_LANE, 1, float32, 1).known
    assert not join_lanes(UNKNOWN_LANE, float32).known


@pytest.mark.parametrize("wide", ["float32", "float64", "complex64"])
@pytest.mark.parametrize(("dim", "other_dim"), [*itertools.product([0, 1, None], repeat=2)])
def test_float32_beside_something_unknown_is_float32_or_wider(
    wide: str, dim: int | None, other_dim: int | None
) -> None:
    """It is said to be where no dtype makes it narrower, unless it raises or is wider in the float32 control too."""
    given = Lane(BITS[wide] | BITS["float32"])
    result = promote_lanes(given, dim, UNKNOWN_LANE, other_dim)
    narrower = [
        name
        for name in NAMES
        for x_dim in ([0, 1] if dim is None else [dim])
        for y_dim in ([0, 1] if other_dim is None else [other_dim])
        if not Lane(
            bit(torch.result_type(torch.empty((1,) * x_dim), torch.empty((1,) * y_dim, dtype=dtype(name))))
            | BITS["float32"]
        ).wide
    ]
    assert bool(result.bounded) == (not narrower)
    assert promote_lanes(UNKNOWN_LANE, other_dim, given, dim).bounded == result.bounded
    assert join_lanes(result, given).bounded == result.bounded
    assert not join_lanes(result, Lane(BITS["float16"])).bounded
    assert not promote_lanes(given._replace(assumed=True), dim, UNKNOWN_LANE, other_dim).bounded


@pytest.mark.parametrize("bound", Bound)
def test_how_surely_a_dtype_is_bounded_is_kept(bound: Bound) -> None:
    """What is combined with it is bounded as surely, as surely as both where paths meet."""
    given, float32, half = BOUNDED_LANE._replace(bounded=bound), Lane(BITS["float32"]), Lane(BITS["float16"])
    assert promote_lanes(given, 1, half, 1).bounded is bound
    assert promote_lanes(given, 1, float32, 1).bounded is Bound.SURE
    assert join_lanes(given, float32).bounded is bound
    expected = {Bound.NONE: Strength.NONE, Bound.ASSUMED: Strength.ASSUMED, Bound.SURE: Strength.FORCED}
    assert strength(given, half) is expected[bound]


@pytest.mark.parametrize(
    ("of", "met"), [*itertools.product(["float16", "bfloat16", "float32", "float64"], [False, True])]
)
def test_what_is_float32_or_wider_surely_differs_from_16_bit_only(of: str, met: bool) -> None:
    other = Lane(BITS[of], assumed=met)
    assert strength(BOUNDED_LANE, other) == strength(other, BOUNDED_LANE)
    assert bool(strength(BOUNDED_LANE, other)) == (of in ("float16", "bfloat16") and not met)


def test_what_no_caller_can_change_is_no_longer_assumed() -> None:
    """A float32 table makes the product float32 whatever the caller passes."""
    passed = Lane(BITS["bfloat16"], Symbol("x"), assumed=True)
    table = Lane(BITS["float32"])
    assert promote_lanes(passed, 1, table, 1) == table
    assert promote_lanes(passed, 1, passed, 1) == passed
    assert promote_lanes(passed, 1, Lane(BITS["int64"]), 1) == passed


def test_a_dimension_that_is_not_known_makes_the_result_unknown_where_it_decides() -> None:
    low, wide = Lane(BITS["bfloat16"]), Lane(BITS["float32"])
    assert promote_lanes(low, 1, wide, None) == UNKNOWN_LANE
    assert promote_lanes(low, None, low, None) == low


@given(masks)
def test_names_and_bits_agree(mask: int) -> None:
    assert sum(BITS[name] for name in names_of(mask)) == mask
    assert sum(bits_of(mask)) == mask
    assert AUTOCASTABLE & mask == sum(b for b in bits_of(mask) if b & AUTOCASTABLE)
