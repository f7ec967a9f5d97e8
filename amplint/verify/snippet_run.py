"""Runs an operation alone: in float32 to find small operands that it accepts, then with the dtypes of a scenario."""

from __future__ import annotations

import builtins
import importlib
import time
import types
from typing import TYPE_CHECKING, Any

import torch

from amplint.verify import judge
from amplint.verify.described import called_with
from amplint.verify.job import CLEAN, FAILED, OTHER, Outcome
from amplint.verify.loading import one_line
from amplint.verify.run import region
from amplint.verify.snippet_layers import construction
from amplint.verify.snippet_shapes import source_of, trials
from amplint.verify.tensors import dtype_named

if TYPE_CHECKING:
    from amplint.verify.run import Where
    from amplint.verify.scene import LayerPart, Place, Scene
    from amplint.verify.snippet import Snippet
    from amplint.verify.snippet_shapes import Trial

MODE = "eval"
_SECONDS = 1.0
"""How long operands are searched for."""
_LONGEST_QUOTE = 80


def run_snippet(snippet: Snippet, scenario: str, where: Where) -> Outcome:
    """Run a snippet in one of its scenarios, inside of ``where.policy()``. Never raises for what it does.

    ``failed`` confirms the finding; ``other`` says that no operands were found with which it runs in float32.
    """
    start = time.perf_counter()
    scene = snippet.scenes[scenario]
    verdict, inputs = _judged(snippet, scene, where)
    failed = verdict.kind == FAILED
    return Outcome(
        scenario,
        MODE,
        verdict.kind,
        round(time.perf_counter() - start, 3),
        error=verdict.error,
        location=None if verdict.kind == CLEAN else (snippet.filename, snippet.row),
        family=verdict.family,
        confirmed=(snippet.fingerprint,) if failed else (),
        reached=(snippet.fingerprint,),
        built=_quoted(source_of(scene)),
        inputs=inputs,
    )


def _judged(snippet: Snippet, scene: Scene, where: Where) -> tuple[judge.Verdict, str]:
    """The verdict, and what the names stood for in one line."""
    code = compile(source_of(scene), "<snippet>", "exec" if scene.statement else "eval")
    try:
        names = {name: _resolved(qualified) for name, qualified in scene.names.items()}
    except (ImportError, AttributeError) as error:
        return judge.Verdict(OTHER, f"this torch has no such name: {error}"), ""
    deadline = time.monotonic() + _SECONDS
    last: BaseException | None = None
    for trial in trials(snippet.op, scene):
        last = _execute(code, scene, names, trial, where, control=True)
        if last is None:
            values = {place.name: _made(place, trial, where, control=False) for place in scene.places}
            error_there = _execute(code, scene, names, trial, where, control=False)
            if error_there is None:
                return judge.Verdict(CLEAN), called_with((), values)
            return judge.judge_error(error_there, emulated=where.emulated), called_with((), values)
        if time.monotonic() > deadline:
            break
    reason = f"no small shapes found under which `{_quoted(snippet.source)}` runs in float32"
    return judge.Verdict(OTHER, reason if last is None else f"{reason}; last: {one_line(last)}"), ""


def _execute(
    code: types.CodeType, scene: Scene, names: dict[str, Any], trial: Trial, where: Where, *, control: bool
) -> BaseException | None:
    """What running it raises: with every tensor float32 and no autocast as ``control``, else as the scene has it."""
    try:
        torch.manual_seed(0)
        environment = {"__builtins__": builtins, **names}
        with torch.no_grad():
            for place in scene.places:
                environment[place.name] = _made(place, trial, where, control=control)
            with region(None if control else scene.autocast, where):
                exec(code, environment)
    except Exception as error:
        return error
    return None


def _made(place: Place, trial: Trial, where: Where, *, control: bool) -> Any:
    hardware = "cuda" if where.run_on == "cuda" else "cpu"
    if place.kind == "tensor":
        values = torch.rand(trial.shapes[place.name]) * 0.8 + 0.1
        made = values.to(_control_dtype(place.dtypes[0]) if control else dtype_named(place.dtypes[0])).to(hardware)
        return made.to_sparse() if place.sparse else made
    if place.kind == "index":
        return trial.indices[place.name].clone().to(hardware)
    if place.kind == "layer":
        assert place.layer is not None
        return _layer(place.layer, control=control).eval().to(hardware)
    if place.kind == "dtype":
        return _control_dtype(place.dtypes[0]) if control else dtype_named(place.dtypes[0])
    value = trial.values[place.name]
    return value.clone().to(hardware) if isinstance(value, torch.Tensor) else value


def _control_dtype(name: str) -> torch.dtype:
    """float32 for every real floating dtype, complex64 for every complex one; others stay."""
    dtype = dtype_named(name)
    if dtype.is_complex:
        return torch.complex64
    return torch.float32 if dtype.is_floating_point else dtype


def _layer(part: LayerPart, *, control: bool) -> torch.nn.Module:
    constructor = _resolved(part.name)
    children = [_layer(child, control=control) for child in part.children]
    args, kwargs = construction(part)
    layer: torch.nn.Module = constructor(*(children or args), **kwargs)
    for name, dtype in () if control else part.dtypes.items():
        tensor = getattr(layer, name, None)
        if isinstance(tensor, torch.Tensor):
            tensor.data = tensor.data.to(dtype_named(dtype))
        else:
            layer.to(dtype_named(dtype))
    return layer


def _resolved(qualified: str) -> Any:
    """The torch object of a qualified name. Raises ImportError or AttributeError."""
    first, *rest = qualified.split(".")
    value: Any = importlib.import_module(first)
    path = first
    for part in rest:
        path = f"{path}.{part}"
        if not hasattr(value, part) and isinstance(value, types.ModuleType):
            importlib.import_module(path)
        value = getattr(value, part)
    return value


def _quoted(text: str) -> str:
    one = " ".join(text.split())
    return one if len(one) <= _LONGEST_QUOTE else one[: _LONGEST_QUOTE - 1] + "…"
