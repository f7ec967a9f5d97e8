"""Which calls are events of a training step."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amplint.compiling import kept, ordinary
from amplint.infer.flow.training.roles import Role
from amplint.infer.flow.training.steps import Event, Gradients, Step

if TYPE_CHECKING:
    from amplint.infer.flow.training.program import Place, Program, Scope
    from amplint.infer.flow.training.roles import Roles

_CLIPPERS = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grads_with_norm_")
_MANAGED_CLIPPERS = (*_CLIPPERS, "clip_gradients", "unscale_gradients")
_BACKWARD_KEYWORDS = frozenset({"gradient", "retain_graph", "create_graph", "inputs"})
_GRADIENT_CLIPPERS = frozenset({"clamp_", "clip_"})
_READING = frozenset({"getattr", "hasattr", "id", "isinstance", "print", "repr", "str", "type"})
"""Functions of Python that leave an object as it is."""
_NORMS = ("torch.norm", "torch.linalg.norm", "torch.linalg.vector_norm")


@ordinary
class Events:
    """The events of one file, by call."""

    def __init__(self, program: Program, roles: Roles) -> None:
        self._program = program
        self._roles = roles
        self._known: dict[int, tuple[Event, ...]] = {}

    def of(self, call: ast.Call, scope: Scope) -> tuple[Event, ...]:
        """The event that a call is: none or one."""
        found = self._known.get(id(call))
        if found is None:
            event = self._event(call, scope)
            found = self._known[id(call)] = (event,) if event is not None else ()
        return found

    def _event(self, call: ast.Call, scope: Scope) -> Event | None:
        return self._step(call, scope) or self._handing(call, scope)

    def _step(self, call: ast.Call, scope: Scope) -> Event | None:
        name = self._program.name(call.func)
        if name is not None and name.startswith("torch."):
            return self._of_torch(name, call, scope)
        if not isinstance(call.func, ast.Attribute):
            return None
        attribute, receiver = call.func.attr, call.func.value
        if attribute == "backward":
            return self._backward(call, receiver, scope)
        scaler = self._roles.scaler(receiver, scope)
        if scaler is not None:
            steps = {"unscale_": Step.UNSCALE, "step": Step.SCALER_STEP, "update": Step.UPDATE}
            step = steps.get(attribute)
            return Event(step, call, scope, scaler, self._argument(call, scope)) if step is not None else None
        if self._roles.has(receiver, scope, Role.IDLE_SCALER):
            return None
        if attribute in _MANAGED_CLIPPERS and self._roles.has(receiver, scope, Role.MANAGER):
            return Event(Step.MANAGED_CLIP, call, scope)
        if attribute in ("clip_grad_norm_", "clip_grad_value_") and self._program.callee(call, scope) is None:
            return Event(Step.CLIP, call, scope)
        if attribute in _GRADIENT_CLIPPERS and of_gradient(receiver):
            return Event(Step.CLIP, call, scope)
        if attribute == "norm" and of_gradient(receiver):
            return Event(Step.NORM, call, scope)
        if attribute == "step" and self._roles.has(receiver, scope, Role.OPTIMIZER) and not self._handed(call, scope):
            return Event(Step.OPTIMIZER_STEP, call, scope, optimizer=self._program.place(receiver, scope))
        if attribute == "zero_grad":
            return Event(Step.ZERO_GRAD, call, scope, optimizer=self._program.place(receiver, scope))
        return None

    def _handing(self, call: ast.Call, scope: Scope) -> Event | None:
        """A call of what is not followed, which may do anything with a scaler that it gets."""
        scaler = self._handed(call, scope)
        if scaler is None or self._program.callee(call, scope) is not None or self._only_reads(call):
            return None
        return Event(Step.HANDED, call, scope, scaler)

    def _handed(self, call: ast.Call, scope: Scope) -> Place | None:
        given = (*call.args, *(keyword.value for keyword in call.keywords))
        names = (value for value in given if isinstance(value, ast.Name | ast.Attribute))
        return next((s for value in names if (s := self._roles.scaler(value, scope)) is not None), None)

    def _only_reads(self, call: ast.Call) -> bool:
        name = self._program.name(call.func)
        return (name or "").startswith("torch.") or (isinstance(call.func, ast.Name) and call.func.id in _READING)

    def _of_torch(self, name: str, call: ast.Call, scope: Scope) -> Event | None:
        last = name.rpartition(".")[2]
        if last in _CLIPPERS and name.startswith("torch.nn.utils"):
            return Event(Step.CLIP, call, scope)
        if name == "torch.autograd.backward":
            tensors = call.args[0] if call.args else None
            kinds = self._kinds(tensors, scope) if tensors is not None else (Gradients.PLAIN,)
            return Event(Step.BACKWARD, call, scope, gradients=kinds)
        if name in _NORMS and call.args and of_gradient(call.args[0]):
            return Event(Step.NORM, call, scope)
        if name == "torch.autograd.grad":
            return Event(Step.AUTOGRAD_GRAD, call, scope)
        return None

    def _backward(self, call: ast.Call, receiver: ast.expr, scope: Scope) -> Event | None:
        if self._roles.has(receiver, scope, Role.MANAGER):
            return Event(Step.BACKWARD, call, scope, gradients=(Gradients.MANAGED,))
        if self._program.callee(call, scope) is not None or _is_super(receiver):
            return None
        if isinstance(receiver, ast.Name) and receiver.id == scope.first:
            return None
        plain = len(call.args) <= 1 and all(k.arg in _BACKWARD_KEYWORDS for k in call.keywords)
        kinds = self._kinds(receiver, scope)
        if not plain or (
            call.args and kinds == (Gradients.PLAIN,) and not _is_gradient(call.args[0], scope, self._program)
        ):
            return None
        scaled = next((t.scaler for t in self._roles.of(receiver, scope) if t.role is Role.SCALED), None)
        return Event(Step.BACKWARD, call, scope, scaled, gradients=kinds)

    def _kinds(self, loss: ast.expr, scope: Scope) -> tuple[Gradients, ...]:
        if isinstance(loss, ast.Call) and self._roles.scaler(loss.func, scope) is not None:
            return (Gradients.SCALED,)  # refused: a scaler cannot be called
        roles = {thing.role for thing in self._roles.of(loss, scope)}
        if roles <= {Role.OTHER} and self._is_passed_unseen(loss, scope):
            return (Gradients.ENTRY,)
        if Role.SCALED not in roles:
            return (Gradients.PLAIN,)
        return (Gradients.SCALED,) if roles == {Role.SCALED} else (Gradients.SCALED, Gradients.PLAIN)

    def _is_passed_unseen(self, loss: ast.expr, scope: Scope) -> bool:
        """Whether a loss is what callers in other files pass, who may have scaled it: the function does not."""
        name = _root(loss)
        if name not in {parameter.arg for parameter in scope.parameters()} or id(scope) in self._called:
            return False
        given = (value for target, value in scope.assignments if isinstance(target, ast.Name) and target.id == name)
        if not all(_root(value.left if isinstance(value, ast.BinOp) else value) == name for value in given):
            return False
        scaled = (
            call.args for call in scope.calls if isinstance(call.func, ast.Attribute) and call.func.attr == "scale"
        )
        return not any(isinstance(value, ast.Name) and value.id == name for values in scaled for value in values)

    @kept
    def _called(self) -> set[int]:
        """The functions that the file itself calls, by ``id``."""
        scopes = self._program.scopes
        callees = (self._program.callee(call, scope) for scope in scopes for call in scope.calls)
        return {id(callee) for callee in callees if callee is not None}

    def _argument(self, call: ast.Call, scope: Scope) -> Place | None:
        given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "optimizer"), None)
        return self._program.place(given, scope) if given is not None else None


def _root(node: ast.expr) -> str | None:
    """The variable of which an expression is a part, or a method's result."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _is_gradient(node: ast.expr, scope: Scope, program: Program) -> bool:
    """Whether ``x.backward(node)`` is a tensor's: an engine's ``backward`` takes the loss.

    It is the gradient of something, or made of ones or of numbers; of a variable, what it is given.
    """
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and part.attr in ("grad", "new_ones"):
            return True
        if isinstance(part, ast.Name | ast.Attribute) and program.name(part) in ("torch.ones", "torch.ones_like"):
            return True
    if isinstance(node, ast.Name):
        given = [value for target, value in scope.assignments if isinstance(target, ast.Name) and target.id == node.id]
        return any(not isinstance(value, ast.Name) and _is_gradient(value, scope, program) for value in given)
    return isinstance(node, ast.Constant)


def of_gradient(node: ast.expr) -> bool:
    """``p.grad``, ``p.grad.data`` or ``p.grad.detach()``."""
    if isinstance(node, ast.Call) and not node.args and isinstance(node.func, ast.Attribute):
        node = node.func
    if isinstance(node, ast.Attribute) and node.attr in ("data", "detach", "float"):
        node = node.value
    return isinstance(node, ast.Attribute) and node.attr == "grad"
