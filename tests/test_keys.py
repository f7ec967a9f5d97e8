"""Values of different kinds never have one key, so that keys are made for values of one kind alone."""

from __future__ import annotations

from amplint.infer.lattice.contexts import AutocastFlag
from amplint.infer.lattice.joining import kind_of, unite
from amplint.infer.lattice.templated import Template
from amplint.infer.lattice.values import (
    NEVER,
    NONE,
    UNKNOWN,
    Builtin,
    Const,
    Device,
    External,
    FloatLimits,
    Layer,
    Mapping,
    Number,
    Partial,
    Sequence,
    Tensor,
    TensorMethod,
    Text,
    TorchName,
    Union,
    Value,
)
from amplint.infer.torch_model.parts import Parts

TENSOR = Tensor(())
VALUES: list[Value] = [
    *(UNKNOWN, NEVER, NONE, Const("x"), Text("x"), Number("x"), FloatLimits(()), TENSOR, Device("x")),
    *(Sequence(()), Parts((), fields=("x",)), Sequence(None), Mapping({}), TorchName("x"), External("x"), Layer("x")),
    *(Partial(UNKNOWN, (), {}), TensorMethod(TENSOR, "x"), Builtin("x"), Template("x"), Union(()), AutocastFlag(0, 0)),
]


def test_values_of_different_kinds_have_different_keys() -> None:
    alike = [(a, b) for a in VALUES for b in VALUES if a.key == b.key and a is not b]
    assert [(type(a), type(b)) for a, b in alike] == [(Sequence, Parts), (Parts, Sequence)]
    assert all(kind_of(a) is kind_of(b) for a, b in alike)


def test_of_values_with_one_key_the_first_is_kept() -> None:
    first, again, other = Const(1), Const(1), Text("1")
    united = unite(first, other, again, other)
    assert isinstance(united, Union)
    assert [id(option) for option in united.options] == [id(first), id(other)]
    assert unite(first, again) is first


def test_parts_with_names_are_the_sequence_of_them() -> None:
    parts = Parts((NONE,), fields=("x",))
    assert unite(parts, Sequence((NONE,))) is parts


def test_keys_that_hold_others_end_somewhere() -> None:
    mapping = Mapping({})
    mapping.items["self"] = mapping
    nested: Value = NONE
    for _ in range(100):
        nested = Sequence((nested, nested))
    assert mapping.key == mapping.key
    assert nested.key == nested.key
    assert Sequence((NONE,)).key == Sequence((NONE,)).key
