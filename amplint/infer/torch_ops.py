"""The table of torch operations: which operands must agree, what autocast casts, which dtype comes out.

Read from ``amplint/data/ops.json``, which ``amplint.data.generate_ops`` makes by running torch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from amplint.infer.values import Const, Tensor, Value

LOWER, FP32, PROMOTE, BANNED = "lower", "fp32", "promote", "banned"


@dataclass(frozen=True, slots=True)
class Op:
    """One torch function or method, by the name that Python calls it.

    ``params``: positional parameters in order. ``tensors``: those whose dtype matters; a trailing ``*`` marks a list of
    tensors. ``result``: the dtype of the result without autocast, as a function of the operands' (see the generator).
    ``strict``: groups of parameters whose floating dtypes must be equal, else torch raises. ``policy``: what autocast
    does with the operands, by device.
    """

    name: str
    params: tuple[str, ...]
    tensors: tuple[str, ...]
    result: str | tuple[str, ...]
    strict: tuple[tuple[str, ...], ...]
    policy: dict[str, str]
    dtype_arg: str | None
    since: dict[str, str] = field(default_factory=dict)
    cases: tuple[tuple[tuple[str, ...], str | tuple[str, ...]], ...] = ()
    strict_without: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = ()

    @property
    def in_place(self) -> bool:
        return self.name.endswith("_") and not self.name.endswith("__")

    def for_call(self, bound: dict[str, Value], device: str, torch_version: tuple[int, int]) -> Op:
        """The operation as these arguments and this release have it: another result, or no cast policy yet."""
        op = self
        for needs, result in self.cases:
            if all(_given(bound, need) for need in needs):
                op = replace(op, result=result)
                break
        since = self.since.get(device)
        if since is not None and torch_version < _version(since) and device in op.policy:
            op = replace(op, policy={k: v for k, v in op.policy.items() if k != device})
        return op


def _given(bound: dict[str, Value], need: str) -> bool:
    name, _, wanted = need.partition("=")
    value = bound.get(name)
    if value is None:
        return False
    if wanted:
        return isinstance(value, Const) and str(value.value) == wanted
    return not isinstance(value, Tensor)


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, Any]]:
    text = files("amplint.data").joinpath("ops.json").read_text(encoding="utf-8")
    table: dict[str, dict[str, Any]] = json.loads(text)["ops"]
    return table


@cache
def find_op(name: str) -> Op | None:
    """The operation of a qualified name such as ``torch.nn.functional.linear`` or ``torch.Tensor.index_add_``."""
    row = _table().get(name)
    if row is None:
        return None
    return Op(
        name=name,
        params=tuple(row["params"]),
        tensors=tuple(row["tensors"]),
        result=_result(row["result"]),
        strict=tuple(tuple(group) for group in row.get("strict", ())),
        policy=row.get("policy", {}),
        dtype_arg=row.get("dtype_arg"),
        since=row.get("since", {}),
        cases=tuple((tuple(case["needs"]), _result(case["result"])) for case in row.get("cases", ())),
        strict_without=tuple(
            (param, tuple(tuple(group) for group in groups)) for param, groups in row.get("strict_without", {}).items()
        ),
    )


def _result(value: str | list[str]) -> str | tuple[str, ...]:
    return tuple(value) if isinstance(value, list) else value


def table_torch_version() -> str:
    """The torch release that the table was measured on."""
    text = files("amplint.data").joinpath("ops.json").read_text(encoding="utf-8")
    return str(json.loads(text)["torch"])
