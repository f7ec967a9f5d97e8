"""Recipes from the ``>>>`` examples of a docstring that construct the class and call it."""

from __future__ import annotations

import contextlib
import copy
import doctest
import functools
import io
import re
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from amplint.verify.build.effort import OutOfTime, SizeGuard, TooLarge, within
from amplint.verify.build.recipe import Parts, Recipe

if TYPE_CHECKING:
    import types
    from collections.abc import Iterator

    from amplint.verify.build.effort import Deadline

HOW = "the example in its docstring"
SECONDS = 20.0

_REACHES_OUT = re.compile(
    r"from_pretrained|hub\.|download|https?://|requests|urllib|socket|subprocess|os\.|shutil|open\(|\.save|save_|"
    r"cuda|\.to\(device|mkdir|write|input\("
)
"""Examples that need a network, files, a GPU or a person are not run."""


class _Called(BaseException):
    """Thrown at the first call of the class, with what it was called with."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts


def from_docstring(target: type, namespace: types.ModuleType, seed: int, deadline: Deadline) -> Recipe | None:
    """A recipe from a docstring of ``target`` or of its ``forward``, if an example there calls an instance."""
    for text in (vars(target).get("__doc__"), getattr(vars(target).get("forward"), "__doc__", None)):
        sources = _sources(text) if isinstance(text, str) else []
        if not sources:
            continue
        recipe = Recipe(how=HOW, seed=seed, parts=functools.partial(_called, target, namespace, sources))
        try:
            with within(min(SECONDS, deadline.left())), SizeGuard():
                built = recipe.make()
                if isinstance(built.module, nn.Module):
                    built.module.eval()
                with torch.no_grad():
                    built.module(*built.args, **built.kwargs)
        except (Exception, OutOfTime, TooLarge, _Called):
            continue
        return recipe
    return None


def _sources(text: str) -> list[str]:
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return []
    sources = [example.source for example in examples]
    return [] if any(_REACHES_OUT.search(source) for source in sources) else sources


def _called(target: type, namespace: types.ModuleType, sources: list[str]) -> Parts:
    """Run the examples until ``target`` is called.

    Raises LookupError if none calls it; and what an example raises.
    """
    space = {**vars(namespace), "torch": torch, "nn": nn, target.__name__: target}
    with _watched(target), contextlib.redirect_stdout(io.StringIO()):
        try:
            for source in sources:
                exec(compile(source, "<docstring>", "single"), space)
        except _Called as call:
            return call.parts
    raise LookupError(f"no example calls {target.__name__}")


@contextlib.contextmanager
def _watched(target: type) -> Iterator[None]:
    own = vars(target).get("__call__")

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise _Called((self, copy.deepcopy(args), copy.deepcopy(kwargs)))

    setattr(target, "__call__", call)  # noqa: B010 - on a class, as a plain attribute
    try:
        yield
    finally:
        if own is None:
            delattr(target, "__call__")
        else:
            setattr(target, "__call__", own)  # noqa: B010
