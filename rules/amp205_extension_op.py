"""AMP205: an autograd Function hands a compiled extension whatever dtype autocast leaves it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, ClassVar

from amplint.finding import Cause, Certainty, Severity
from amplint.rule import Evidence, Example, Rule, Suspect

from ._custom_autograd import autocast_scenarios, readable, role_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amplint.infer.facts import AutogradFunction, FileFacts

_COMPILED = re.compile(r"(^|_)(C|cuda|cpp|ext|extension)$")
"""How extension modules are named, as far as their last part goes; asked only of what has no Python file."""
_LOADERS = ("torch.utils.cpp_extension.load", "torch.utils.cpp_extension.load_inline")
_CASTS = frozenset({"to", "float", "half", "double", "bfloat16", "type", "type_as"})
_DISPATCHES = ("dtype", "autocast")


class ExtensionOp(Rule):
    """A compiled extension is called in a Function's forward with the tensors as autocast left them.

    What it does
    ------------
    Reports subclasses of `torch.autograd.Function` whose forward has no `custom_fwd` and passes its own arguments to a
    function of a compiled extension: one loaded with `torch.utils.cpp_extension.load`, an operator below `torch.ops`,
    or a module that is imported and has no Python file. Silent where forward casts, or asks for a dtype or for
    autocast, and where a caller in the same file casts. Off until selected: what a kernel takes, and what its callers
    in other files give it, is not known here.

    Why it is bad
    -------------
    Autocast knows nothing of the extension, so one argument may arrive in float16, from a convolution, and the next in
    float32, from a norm. Most kernels take one dtype, and many only float32: they raise, or read the bytes of one as
    the other.

    How it shows
    ------------
    ```text
    RuntimeError: expected scalar type Float but found Half
    ```

    Example
    -------
    ```python
    class RoiPool(torch.autograd.Function):
        @staticmethod
        def forward(ctx, features, boxes):
            return _C.roi_pool(features, boxes)
    ```
    Use instead:
    ```python
    class RoiPool(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
        def forward(ctx, features, boxes):
            return _C.roi_pool(features, boxes)
    ```

    Fix safety
    ----------
    There is no fix: which dtypes the kernel takes is not in this file. `cast_inputs=torch.float32` is right for one
    that takes float32 alone; one that takes 16 bit needs its arguments cast to one dtype. Backward needs `custom_bwd`
    then."""

    code: ClassVar[str] = "AMP205"
    name: ClassVar[str] = "extension-op"
    severity: ClassVar[Severity] = Severity.WARNING
    evidence: ClassVar[Evidence] = Evidence.CITED
    default: ClassVar[bool] = False
    tokens: ClassVar[tuple[str, ...]] = ("autograd.Function", "autograd import Function", "autograd.function")
    context: ClassVar[tuple[str, ...]] = ("_C", "cuda", "_ext", "torch.ops", "cpp_extension")

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch.utils.cpp_extension import load

kernels = load(name="kernels", sources=["kernels.cpp", "kernels.cu"])


class Sample(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, offsets):  # expect
        ctx.save_for_backward(features, offsets)
        return kernels.sample(features.contiguous(), offsets)

    @staticmethod
    def backward(ctx, grad):
        return kernels.sample_backward(grad, *ctx.saved_tensors)
""",
            scenario="autocast-fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch.utils.cpp_extension import load

kernels = load(name="kernels", sources=["kernels.cpp", "kernels.cu"])


class Sample(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, features, offsets):
        return kernels.sample(features, offsets)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        return grad, None


class SampleAsOne(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, offsets):
        return kernels.sample(features, offsets.to(features.dtype))

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Version(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.version = kernels.version()
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        scenarios = autocast_scenarios(facts)
        if not scenarios:
            return
        extensions: dict[str, ast.AST] | None = None
        for function in facts.autograd_functions:
            forward = function.forward
            if forward is None or not readable(function) or function.sensitive_forward:
                continue
            if any(role_of(decorator.name) for decorator in function.forward_decorators):
                continue
            if extensions is None:
                extensions = dict(_extensions(facts))
            call = _extension_call(facts, function, extensions)
            if call is None or _cast_by_callers(facts, function):
                continue
            name = ast.unparse(call.func)
            span = facts.source.header_span(forward)
            message = f"{function.node.name}.forward gives {name} whatever autocast left, which casts nothing for it"
            cause = Cause(facts.path, facts.span(call), "a compiled extension: autocast does not cast its arguments")
            yield Suspect(span, span, message, scenarios, Certainty.LIKELY, (cause,))


def _extensions(facts: FileFacts) -> Iterator[tuple[str, ast.AST]]:
    """The names of this file that are compiled extensions, or functions of one."""
    loaders = {id(r.call) for r in facts.references if r.call is not None and r.name in _LOADERS}
    for node in ast.walk(facts.source.tree):
        if isinstance(node, ast.Assign) and id(node.value) in loaders:
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _COMPILED.search(alias.name.rpartition(".")[2]) and not _has_python(facts, alias.name, 0):
                    yield alias.asname or alias.name.partition(".")[0], node
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                module = f"{node.module}.{alias.name}" if node.module else alias.name
                of_extension = node.module and _COMPILED.search(node.module.rpartition(".")[2])
                inside = node.module if of_extension else module
                named = of_extension or _COMPILED.search(alias.name)
                if named and inside and not _has_python(facts, inside, node.level):
                    yield alias.asname or alias.name, node


def _has_python(facts: FileFacts, module: str, level: int) -> bool:
    """Whether a module of the project is Python; one that is outside the project counts as compiled."""
    folder = facts.path.parent
    for _ in range(level - 1):
        folder = folder.parent
    relative = module.replace(".", "/")
    folders = [folder] if level else [folder, *folder.parents][:6]
    return any((base / f"{relative}.py").exists() or (base / relative).is_dir() for base in folders)


def _extension_call(facts: FileFacts, function: AutogradFunction, extensions: dict[str, ast.AST]) -> ast.Call | None:
    """The first call of an extension in forward that gets two of forward's own arguments, where forward casts none."""
    forward = function.forward
    assert forward is not None
    parameters = {argument.arg for argument in (*forward.args.posonlyargs, *forward.args.args)[1:]}
    found: ast.Call | None = None
    for node in ast.walk(forward):
        if isinstance(node, ast.Attribute) and (node.attr in _CASTS or any(mark in node.attr for mark in _DISPATCHES)):
            return None
        if isinstance(node, ast.keyword) and node.arg == "dtype":
            return None
        if found is None and isinstance(node, ast.Call) and _is_extension(facts, node.func, extensions):
            passed = {
                n.id for argument in node.args for n in ast.walk(argument) if isinstance(n, ast.Name)
            } & parameters
            found = node if len(passed) > 1 else None
    return found


def _cast_by_callers(facts: FileFacts, function: AutogradFunction) -> bool:
    """Whether a call of the Function in this file casts what it passes."""
    applied = f"{function.node.name}.apply"
    return any(
        isinstance(inner, ast.Attribute) and inner.attr in _CASTS
        for node in ast.walk(facts.source.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == applied
        for argument in (*node.args, *node.keywords)
        for inner in ast.walk(argument)
    )


def _is_extension(facts: FileFacts, callee: ast.expr, extensions: dict[str, ast.AST]) -> bool:
    base = callee
    while isinstance(base, ast.Attribute):
        base = base.value
    if isinstance(base, ast.Name) and base.id in extensions:
        return True
    return any(
        r.node is callee and r.name.startswith("torch.ops.") and ".aten." not in r.name for r in facts.references
    )
