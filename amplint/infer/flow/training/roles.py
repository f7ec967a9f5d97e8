"""What the objects of a training step are: made as a GradScaler, annotated as one, or used as only one can be.

Assignments are read without their order: a place has every role that some assignment gives it.
"""

from __future__ import annotations

import ast
from enum import Enum
from itertools import takewhile
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.infer.syntax.bindings import paired

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.flow.training.program import Place, Program, Scope


class Role(str, Enum):
    """What an object is to the training step."""

    SCALER = "a gradient scaler"
    SHARDED_SCALER = "the gradient scaler of FSDP, which casts by itself"
    IDLE_SCALER = "a gradient scaler made with enabled=False"
    OPTIMIZER = "an optimizer"
    MANAGER = "an object of Accelerate or Lightning Fabric that scales by itself"
    AUTOCAST = "an autocast context manager"
    AUTOCAST_MAKER = "a callable that makes one"
    SCALED = "a loss multiplied by the scale"
    OTHER = "something else"


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing that an expression may be: its role, the call that made it, and the scaler that scaled it."""

    role: Role
    node: ast.expr | None = None
    scaler: Place | None = None


OTHER = Thing(Role.OTHER)

_AUTOCASTS = frozenset(
    {"torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast", "torch.autocast_mode.autocast"}
    | {f"torch.{device}.amp.autocast" for device in ("cuda", "cpu")}
    | {f"torch.{device}.amp.autocast_mode.autocast" for device in ("cuda", "cpu")}
)
_MANAGERS = frozenset(
    {"accelerate.Accelerator", "accelerate.accelerator.Accelerator"}
    | {f"{package}.Fabric" for package in ("lightning", "lightning.fabric", "lightning_fabric")}
)
_PREPARES = frozenset({"prepare", "setup", "prepare_model", "prepare_optimizer", "setup_optimizers"})
_PASSES = 4
_DEEPEST = 12


def is_autocast(name: str | None) -> bool:
    """Whether a qualified name is one of torch's autocast classes."""
    return name in _AUTOCASTS


def is_scaler(name: str | None) -> bool:
    """Whether a qualified name is one of torch's GradScaler classes."""
    return name is not None and name.startswith("torch.") and name.endswith(("GradScaler", ".ShardedGradScaler"))


def _scaled(things: frozenset[Thing]) -> frozenset[Thing]:
    """The scaled losses among what an expression may be."""
    return frozenset(thing for thing in things if thing.role is Role.SCALED)


class Roles:
    """The roles of all places of one file."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.things: dict[Place, set[Thing]] = {}
        for scope in program.scopes:
            for target, annotation in scope.annotations:
                self._annotate(program.place(target, scope), annotation)
        for cls in program.classes:
            for name, annotation in cls.fields:
                self._annotate(("self", id(cls.root), f".{name}"), annotation)
        self._settle()
        self._by_use()
        self._settle()

    def _settle(self) -> None:
        """Assign, in passes, until what is assigned from what is assigned later is known too."""
        for _ in range(_PASSES):
            before = sum(map(len, self.things.values()))
            self._assign_all()
            if sum(map(len, self.things.values())) == before:
                break

    def of(self, node: ast.expr, scope: Scope, depth: int = 0) -> frozenset[Thing]:
        """What an expression may be; empty where nothing is known of it."""
        if depth > _DEEPEST:
            return frozenset()
        if isinstance(node, ast.IfExp):
            return self.of(node.body, scope, depth + 1) | self.of(node.orelse, scope, depth + 1)
        if isinstance(node, ast.BoolOp):
            return frozenset().union(*(self.of(value, scope, depth + 1) for value in node.values))
        if isinstance(node, ast.NamedExpr | ast.Await):
            return self.of(node.value, scope, depth + 1)
        if isinstance(node, ast.Constant):
            return frozenset({OTHER})
        if isinstance(node, ast.Call):
            found = self._made(node, scope, depth)
            if found:
                return found
        elif isinstance(node, ast.BinOp):
            sides = [self.of(side, scope, depth + 1) for side in (node.left, node.right)]
            scaled = frozenset().union(*map(_scaled, sides))
            return scaled if any(side and side == _scaled(side) for side in sides) else scaled | {OTHER}
        if is_autocast(self.program.name(node)):
            return frozenset({Thing(Role.AUTOCAST_MAKER, node)})
        place = self.program.place(node, scope)
        return frozenset(self.things.get(place, ())) if place is not None else frozenset()

    def scaler(self, node: ast.expr, scope: Scope) -> Place | None:
        """The place of an expression that may be a working gradient scaler."""
        roles = {thing.role for thing in self.of(node, scope)}
        if not roles & {Role.SCALER, Role.SHARDED_SCALER}:
            return None
        return self.program.place(node, scope) or ("new", id(node))

    def has(self, node: ast.expr, scope: Scope, *roles: Role) -> bool:
        return any(thing.role in roles for thing in self.of(node, scope))

    # ---- how places get their roles -----------------------------------------------------------------------------

    def _assign_all(self) -> None:
        for scope in self.program.scopes:
            for target, value in scope.assignments:
                self._assign(target, value, scope)
            for call in scope.calls:
                if isinstance(call.func, ast.Name) and call.func.id == "setattr" and len(call.args) == 3:
                    self._add(self.program.attribute_place(call, scope), self.of(call.args[2], scope))
                else:
                    self._pass_arguments(call, scope)

    def _assign(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            self._unpack(target.elts, value, scope)
            return
        things = self.of(value, scope)
        self._add(self.program.place(target, scope), things or frozenset({OTHER}))

    def _unpack(self, targets: list[ast.expr], value: ast.expr, scope: Scope) -> None:
        values: list[list[ast.expr]] = []
        inner = scope
        if isinstance(value, ast.Tuple | ast.List):
            values = [value.elts]
        elif isinstance(value, ast.Call):
            callee = self.program.callee(value, scope)
            if callee is not None:
                inner = callee
                values = [r.elts for r in callee.returned if isinstance(r, ast.Tuple | ast.List)]
            elif isinstance(value.func, ast.Attribute) and value.func.attr in _PREPARES:
                values = [value.args]
        known = [elements for elements in values if len(elements) == len(targets)]
        for elements in known:
            for target, element in zip(targets, elements, strict=True):
                self._add(self.program.place(target, scope), self.of(element, inner) or frozenset({OTHER}))
        if not known:
            for target in targets:
                self._add(self.program.place(target, scope), frozenset({OTHER}))

    def _pass_arguments(self, call: ast.Call, scope: Scope) -> None:
        callee = self.program.callee(call, scope)
        if callee is None and isinstance(call.func, ast.Name):
            owner = scope.binding(call.func.id)
            cls = owner.classes.get(call.func.id) if owner is not None else None
            callee = cls.method("__init__") if cls is not None else None
        if callee is None or isinstance(callee.node, ast.Module):
            return
        for name, value in _given(call, callee):
            things = self.of(value, scope)
            if name in callee.names:
                self._add((id(callee), name), things if _scaled(things) else things - {OTHER})

    def _add(self, place: Place | None, things: frozenset[Thing]) -> None:
        if place is not None and things:
            self.things.setdefault(place, set()).update(things)

    def _annotate(self, place: Place | None, annotation: ast.expr) -> None:
        """``x: GradScaler``, ``Optional[GradScaler]``, ``"GradScaler | None"``."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except (SyntaxError, ValueError):
                return
        for node in ast.walk(annotation):
            name = self.program.name(node) if isinstance(node, ast.Name | ast.Attribute) else None
            role = self._class_role(name)
            if role is not None and role is not Role.AUTOCAST:
                self._add(place, frozenset({Thing(role)}))

    def _class_role(self, name: str | None) -> Role | None:
        """What instances of a class are."""
        if name is None:
            return None
        if is_scaler(name):
            return Role.SHARDED_SCALER if name.endswith("ShardedGradScaler") else Role.SCALER
        if is_autocast(name):
            return Role.AUTOCAST
        if name.startswith("torch.optim.") and name.rpartition(".")[2][:1].isupper():
            return None if "lr_scheduler" in name or "swa_utils" in name else Role.OPTIMIZER
        return Role.MANAGER if name in _MANAGERS else None

    def _made(self, call: ast.Call, scope: Scope, depth: int) -> frozenset[Thing]:
        """What a call gives: a new object, what a function of the file returns, or a scaled loss."""
        name = self.program.name(call.func)
        role = self._class_role(name) or self._own_class_role(call, scope)
        if role is not None:
            if role in (Role.SCALER, Role.SHARDED_SCALER) and _switched_off(call):
                role = Role.IDLE_SCALER
            return frozenset({Thing(role, call)})
        if name in ("functools.partial", "partial") and call.args and is_autocast(self.program.name(call.args[0])):
            return frozenset({Thing(Role.AUTOCAST_MAKER, call)})
        func = call.func
        if isinstance(func, ast.Attribute):
            receivers = self.of(func.value, scope, depth + 1)
            roles = {thing.role for thing in receivers}
            if func.attr == "scale" and roles & {Role.SCALER, Role.SHARDED_SCALER}:
                return frozenset({Thing(Role.SCALED, call, self.program.place(func.value, scope))})
            if func.attr == "autocast" and Role.MANAGER in roles:
                return frozenset({Thing(Role.AUTOCAST, call)})
            if func.attr in _PREPARES and Role.MANAGER in roles and len(call.args) == 1:
                return self.of(call.args[0], scope, depth + 1)
            if Role.SCALED in roles:
                return _scaled(receivers) | receivers & {OTHER}
        if any(thing.role is Role.AUTOCAST_MAKER for thing in self.of(func, scope, depth + 1)):
            return frozenset({Thing(Role.AUTOCAST, call)}) | self.of(func, scope, depth + 1) & {OTHER}
        callee = self.program.callee(call, scope)
        if callee is not None:
            return frozenset().union(*(self._returned(value, callee, call, scope, depth) for value in callee.returned))
        return frozenset()

    def _returned(self, value: ast.expr, callee: Scope, call: ast.Call, scope: Scope, depth: int) -> frozenset[Thing]:
        """What a call gives that returns an expression: of a parameter that nothing rebinds, what this call passes."""
        if isinstance(value, ast.Name) and not any(_binds(target, value.id) for target, _ in callee.assignments):
            passed = dict(_given(call, callee)).get(value.id)
            if passed is not None:
                return self.of(passed, scope, depth + 1)
        return self.of(value, callee, depth + 1)

    def _own_class_role(self, call: ast.Call, scope: Scope) -> Role | None:
        """A class of this file that is a GradScaler by inheritance."""
        if not isinstance(call.func, ast.Name):
            return None
        owner = scope.binding(call.func.id)
        cls = owner.classes.get(call.func.id) if owner is not None else None
        if cls is None or not any(map(is_scaler, cls.base_names)):
            return None
        return Role.SCALER

    def _by_use(self) -> None:
        """What was made elsewhere shows by use: only a scaler has ``scale(x).backward()`` beside ``step(optimizer)`` or
        ``update()``, or unscales, or steps an optimizer and updates; only an optimizer is handed to it. What a variable
        is used for, the attribute is that it was taken from."""
        used: dict[Place, set[str]] = {}
        for scope in self.program.scopes:
            for call in scope.calls:
                if not isinstance(call.func, ast.Attribute):
                    continue
                place = self.program.place(call.func.value, scope)
                if place is not None:
                    arity = len(call.args) + len(call.keywords)
                    used.setdefault(place, set()).add(f"{call.func.attr}/{arity}")
                scaler = self.scales(call, scope)
                if scaler is not None:
                    used.setdefault(scaler, set()).add("scaled backward")
        for scope in self.program.scopes:
            for target, value in (pair for assigned in scope.assignments for pair in paired(*assigned)):
                name, held = self.program.place(target, scope), self.program.place(value, scope)
                if name in used and held is not None and isinstance(target, ast.Name):
                    used.setdefault(held, set()).update(used[name])
        own = {("self", id(cls.root)) for cls in self.program.classes if cls.method("unscale_") or cls.method("scale")}
        for place, uses in used.items():
            if place in own:
                continue
            scaled = "scaled backward" in uses and uses & {"step/1", "update/0"}
            if (scaled or "unscale_/1" in uses) and not self._known(place):
                self._add(place, frozenset({Thing(Role.SCALER)}))
        self._optimizers_by_use(used)
        for scope, receiver, optimizer in self._handed():
            place = self.program.place(receiver, scope)
            if place is None or "update/0" not in used.get(place, ()) or self._known(place):
                continue
            if self.has(optimizer, scope, Role.OPTIMIZER):
                self._add(place, frozenset({Thing(Role.SCALER)}))
        self._optimizers_by_use({})

    def _optimizers_by_use(self, used: dict[Place, set[str]]) -> None:
        """What a scaler is handed, and what has ``zero_grad()`` beside ``step()``."""
        for scope, receiver, optimizer in self._handed():
            if self.has(receiver, scope, Role.SCALER, Role.SHARDED_SCALER, Role.IDLE_SCALER):
                self._add(self.program.place(optimizer, scope), frozenset({Thing(Role.OPTIMIZER)}))
        for place, uses in used.items():
            if uses & {"zero_grad/0", "zero_grad/1"} and "step/0" in uses and not self._known(place):
                self._add(place, frozenset({Thing(Role.OPTIMIZER)}))

    def _handed(self) -> Iterator[tuple[Scope, ast.expr, ast.expr]]:
        """The ``x`` and ``y`` of every ``x.step(y)`` and ``x.unscale_(y)``, with their scope."""
        for scope in self.program.scopes:
            for call in scope.calls:
                func = call.func
                if isinstance(func, ast.Attribute) and func.attr in ("step", "unscale_") and call.args:
                    yield scope, func.value, call.args[0]

    def scales(self, call: ast.Call, scope: Scope) -> Place | None:
        """The place of ``s`` in ``s.scale(loss).backward()``."""
        inner = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "backward" else None
        if not isinstance(inner, ast.Call) or not isinstance(inner.func, ast.Attribute):
            return None
        return (
            self.program.place(inner.func.value, scope) if inner.func.attr == "scale" and len(inner.args) == 1 else None
        )

    def _known(self, place: Place) -> bool:
        return any(thing.role is not Role.OTHER for thing in self.things.get(place, ()))


def _given(call: ast.Call, callee: Scope) -> Iterator[tuple[str, ast.expr]]:
    """What a call passes to which parameter of a function, up to what ``*`` spreads."""
    parameters = [argument.arg for argument in callee.parameters()]
    given = list(zip(parameters, call.args, strict=False))
    given += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg is not None]
    return takewhile(lambda passed: not isinstance(passed[1], ast.Starred), given)


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target))


def _switched_off(call: ast.Call) -> bool:
    return any(k.arg == "enabled" and isinstance(k.value, ast.Constant) and not k.value.value for k in call.keywords)
