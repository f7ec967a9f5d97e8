"""Recipes for autograd Functions, from the signature of their ``forward``, and for plain functions, from theirs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from amplint.verify.build import names
from amplint.verify.build.forward import Forward, call_arguments
from amplint.verify.build.inputs import choices_for, layouts, required
from amplint.verify.build.recipe import Parts, Recipe
from amplint.verify.build.signatures import VARIADIC, Parameter, parameters
from amplint.verify.build.spec import Const, Items, Spec, Tensor
from amplint.verify.build.synthesis import Failed
from amplint.verify.build.values import candidates
from amplint.verify.tensors import tensors

if TYPE_CHECKING:
    from amplint.verify.build.effort import Deadline

HOW = "made from the signature of its forward"
_W = names.FEATURES


CALLED = "called with arguments made from its signature"
_MODULES = re.compile(
    r"model$|module$|(^|_)net(work)?$|encoder$|decoder$|backbone$|layer$|linear$|^criterion$|loss_fn$"
)


class _Called(nn.Module):
    """A function as a module. One that returns no tensor works on what it is given, and is taken to return that."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        result = self.function(*args, **kwargs)
        return result if any(True for _ in tensors(result)) else (result, args, kwargs)


def synthesise_call(function: Any, seed: int, deadline: Deadline) -> Recipe | Failed:
    """A recipe that calls a plain function with what its parameters' names, annotations and uses suggest."""
    signature = parameters(function)
    needed = required(signature)
    if not needed:
        return Failed("it takes no argument that has to be given")
    blank = nn.Identity()
    shapes = layouts(blank)
    heads = all(re.fullmatch(r"q|k|v|query|key|value|queries|keys|values", name) for name in needed[:2])
    order = ["heads", "sequence", "vector"] if heads else ["sequence", "vector", "heads"]
    wanted = [shapes[name] for name in (*order, "image", "signal", "ids")]

    def choose(name: str, annotation: Any) -> list[Spec]:
        return _arguments(name, annotation, function, wanted[0])

    first = [
        {name: _arguments(name, signature[name].annotation, function, like)[0] for name in needed} for like in wanted
    ]
    search = Forward(_Called(function), seed, deadline, signature=signature, choose=choose)
    plan = search.find(most_tries=200, first=first)
    if plan is None:
        return Failed(search.reason or "no arguments were found")
    return Recipe(how=CALLED, seed=seed, parts=lambda: (function, *call_arguments(plan, signature, seed)), guessed=True)


def _arguments(name: str, annotation: Any, function: Any, like: Tensor) -> list[Spec]:
    """Values for a parameter of a plain function, best first."""
    by_use = choices_for(name, annotation, nn.Identity(), like)
    unknown = annotation in (Parameter.empty, Any)
    if "Tensor" in str(annotation):
        return by_use
    if unknown and not _MODULES.search(name.lower()):
        by_name = choices(name, annotation)
        plain = [spec for spec in by_name if isinstance(spec, Const) and spec.value is not None]
        return [*plain, *by_use] if plain and by_name[0] is plain[0] else by_use
    parameter = Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation)
    return [*candidates(parameter, function), *by_use]


class _Applied(nn.Module):
    """A Function as a module, so that its inputs are searched for in the same way."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function.apply(*args)


def synthesise_function(target: Any, seed: int, deadline: Deadline) -> Recipe | Failed:
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
