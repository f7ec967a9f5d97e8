"""Recipes for autograd Functions, from the signature of their ``forward``."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import nn

from amplint.verify.build import names
from amplint.verify.build.forward import Forward, call_arguments
from amplint.verify.build.recipe import Parts, Recipe
from amplint.verify.build.signatures import VARIADIC, Parameter, parameters
from amplint.verify.build.spec import Const, Items, Spec, Tensor
from amplint.verify.build.synthesis import Failed

HOW = "made from the signature of its forward"
_W = names.FEATURES


class _Applied(nn.Module):
    """A Function as a module, so that its inputs are searched for in the same way."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function.apply(*args)


def synthesise_function(target: Any, seed: int, deadline: float) -> Recipe | Failed:
    """A recipe whose module is ``target.apply``: square float32 tensors first, then what the errors ask for."""
    signature = call_signature(target)
    search = Forward(_Applied(target), seed, deadline, signature=signature, choose=choices)
    first = {
        name: choices(name, parameter.annotation)[0]
        if parameter.default is Parameter.empty
        else Const(parameter.default)
        for name, parameter in signature.items()
    }
    plan = search.find(most_tries=200, first=[first])
    if plan is None:
        return Failed(search.reason or "its forward takes nothing")

    def parts() -> Parts:
        return target.apply, *call_arguments(plan, signature, seed)

    return Recipe(how=HOW, seed=seed, parts=parts, guessed=True)


def call_signature(target: Any) -> dict[str, Parameter]:
    """The parameters of ``target.apply``: those of ``forward`` without ``ctx``, which a Function with ``setup_context``
    does not have. All are positional."""
    separate = target.setup_context is not torch.autograd.Function.setup_context
    found = parameters(target.forward, skip=0 if separate else 1)
    return {
        name: parameter.replace(kind=Parameter.POSITIONAL_ONLY)
        for name, parameter in found.items()
        if parameter.kind not in VARIADIC
    }


def choices(name: str, annotation: Any) -> list[Spec]:
    """Values for a parameter of a Function's ``forward``, best first."""
    word, text = name.lower(), str(annotation)
    square, row = Tensor((_W, _W)), Tensor((_W,))
    if annotation is bool or re.search(
        r"^(is|use|has|return|inplace|training|causal|transpose|trans|bias_?grad)", word
    ):
        return [Const(False), Const(True)]
    if "Tensor" not in text:
        if annotation is float or re.search(
            r"eps|alpha|beta|gamma|lambda|momentum|smoothing|softcap|temperature|^p$|prob|thresh", word
        ):
            return [Const(0.1), square, row, Const(1.0)]
        if annotation is int or re.search(
            r"(^|_)(dim|axis|num|n|size|groups?|ignore_index|stride|padding|bits?|chunk\w*)$", word
        ):
            return [Const(-1 if re.search(r"dim|axis", word) else 1), Const(4), Const(0), Tensor((_W,), "long", 2)]
        if annotation is str or re.search(r"mode|reduction|kind", word):
            return [Const("mean"), *(Const(other) for other in names.words_for(word))]
        if re.search(r"shape|sizes$", word):
            return [Const((_W, _W)), Const([_W])]
        if re.search(r"dtype", word):
            return [Const(torch.float32)]
        if re.search(r"func|^fn$|^f$|callable|activation", word):
            return [Const(torch.nn.functional.gelu)]
        if re.search(r"state|config|options|settings|meta|group$", word):
            return [Const(None), Items(dict, ())]
    if "Optional" in text or "None" in text:
        return [Const(None), square, row]
    if re.search(r"target|label|^y$|ind(ex|ices)|^idx|ids$", word):
        return [Tensor((_W,), "long", _W), Tensor((_W, _W), "long", 2), square]
    if re.search(r"mask", word):
        return [Tensor((_W, _W), "bool"), square, Const(None)]
    if re.search(r"int8|quant|packed|q_?weight|^cb$", word):
        return [Tensor((_W, _W), "int8"), square]
    if re.search(r"bias|scale|^s$|absmax|zero_?points?|running", word):
        return [row, square, Const(None), Const(1.0)]
    return [square, row, Tensor((2, names.HEADS, names.LENGTH, _W)), Tensor((_W, _W), "int8"), Const(None), Const(1)]
