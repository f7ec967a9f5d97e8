"""Losses in the form that autocast forbids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutants.operators.operator import Operator
from mutants.operators.spelling import called, is_torch

if TYPE_CHECKING:
    from mutants.operators.operator import Edits
    from mutants.sources import File


def _sigmoid_bce(file: File) -> Edits:
    """``binary_cross_entropy_with_logits(x, y)`` becomes ``binary_cross_entropy(sigmoid(x), y)``."""
    if file.torch is None:
        return
    name = "binary_cross_entropy_with_logits"
    for call in file.calls():
        if is_torch(file, call.func, name) and call.args and not any(k.arg == "pos_weight" for k in call.keywords):
            plain = file.replace(call.func, f"{file.torch}.nn.functional.binary_cross_entropy")
            yield plain, file.replace(call.args[0], f"{file.torch}.sigmoid({file.text(call.args[0])})")


def _log_softmax_split(file: File) -> Edits:
    """``log_softmax(x)`` becomes ``log(softmax(x))``."""
    for call in file.calls():
        if called(call) == "log_softmax":
            text = file.text(call)
            head = file.text(call.func)
            plain = head.removesuffix("log_softmax") + "softmax"
            yield (file.replace(call, f"{plain}{text[len(head) :]}.log()"),)


def _log_sigmoid_split(file: File) -> Edits:
    """``logsigmoid(x)`` becomes ``log(sigmoid(x))``; ``softplus(x)`` becomes ``log(1 + exp(x))``."""
    if file.torch is None:
        return
    for call in file.calls():
        if len(call.args) != 1 or call.keywords:
            continue
        text = file.text(call.args[0])
        if is_torch(file, call.func, "logsigmoid"):
            yield (file.replace(call, f"{file.torch}.sigmoid({text}).log()"),)
        elif is_torch(file, call.func, "softplus"):
            yield (file.replace(call, f"(1 + {file.torch}.exp({text})).log()"),)


OPERATORS = (
    Operator("sigmoid-bce", _sigmoid_bce),
    Operator("log-softmax-split", _log_softmax_split, numeric=True),
    Operator("log-sigmoid-split", _log_sigmoid_split, numeric=True),
)
