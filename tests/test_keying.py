"""Keys of values: what they tell apart, also when an object is gone and another lies in its place."""

from __future__ import annotations

from amplint.infer.lattice.keying import forget_identities, identity
from amplint.infer.lattice.values import Value


def test_no_object_gets_the_key_of_one_that_is_gone() -> None:
    keys = [Value().key for _ in range(1000)]
    assert len({*keys}) == 1000


def test_what_is_told_apart_lasts_until_it_is_forgotten() -> None:
    first = identity([])
    assert first not in [identity([]) for _ in range(100)]
    forget_identities()
