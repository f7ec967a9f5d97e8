"""How ``custom_fwd`` and ``custom_bwd`` stand on an autograd Function: what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.claims.conflicts import conflicts
from amplint.claims.custom_autograd import BACKWARD, FORWARD, autocast_scenarios, customs, role_of
from amplint.claims.suspect import Suspect
from amplint.finding import Cause, Severity
from amplint.infer.state.facts import Kind
from amplint.judge.certainty import ASSUMED, FORCED, Standing

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts
    from amplint.infer.state.function_facts import AutogradFunction

_LOW = {"torch.float16": "float16", "torch.half": "float16", "torch.bfloat16": "bfloat16"}
_LOSS = {
    "float16": ("bfloat16", "overflows at 65504"),
    "bfloat16": ("float16", "drops 3 of 11 bits of precision"),
}
_NO_STATE = "raises AttributeError: '_fwd_used_autocast'"


class Wiring:
    """How the two decorators stand on one Function."""

    def __init__(self, facts: FileFacts, function: AutogradFunction) -> None:
        self.facts = facts
        self.function = function
        self.forward = customs(facts, function.forward_decorators)
        self.backward = customs(facts, function.backward_decorators)
        self._forward_roles = [custom.role for custom in self.forward]
        self._backward_roles = [custom.role for custom in self.backward]
        decorated = [r.decorates for r in facts.references if role_of(r.name) == FORWARD]
        self._noted = function.setup_context is not None and function.setup_context in decorated
        """``setup_context`` itself has ``custom_fwd``, and it does get a ctx to note the state on."""

    @property
    def device(self) -> str | None:
        """The source of the device type, where all decorators that are given one are given the same."""
        devices = {custom.device_type for custom in (*self.forward, *self.backward)} - {None}
        return devices.pop() if len(devices) == 1 else None

    def problems(self) -> Iterator[Suspect]:
        wiring = self._misplaced() or self._without_ctx() or self._half() or self._two_devices()
        if wiring is not None:
            yield wiring
        yield from self._fixed_dtype()

    def _misplaced(self) -> Suspect | None:
        """A decorator on the wrong one of the two methods."""
        name = self.function.node.name
        if BACKWARD in self._forward_roles and self.function.forward is not None:
            if FORWARD in self._forward_roles[: self._forward_roles.index(BACKWARD)]:
                message = f"{name}.forward has custom_bwd, which belongs on backward"
                return self._suspect(self.function.forward, message, ASSUMED, Severity.WARNING)
            both = " and custom_fwd on backward" if FORWARD in self._backward_roles else ", which belongs on backward"
            message = f"{name} has custom_bwd on forward{both}: it {_NO_STATE}"
            return self._suspect(self.function.forward, message, FORCED)
        if FORWARD in self._backward_roles and BACKWARD not in self._backward_roles:
            message = f"{name}.backward has custom_fwd in place of custom_bwd and runs without autocast"
            return self._weak(message)
        return None

    def _without_ctx(self) -> Suspect | None:
        """Decorators on a Function whose forward gets no ctx."""
        if self.function.setup_context is None or self._noted:
            return None
        name = self.function.node.name
        if BACKWARD in self._backward_roles and self.function.backward is not None:
            message = f"{name}.backward {_NO_STATE}: custom_fwd does nothing for setup_context"
            return self._suspect(self.function.backward, message, FORCED)
        if self.function.forward is None or any(custom.cast_inputs is not None for custom in self.forward):
            return None
        message = f"custom_fwd does nothing for {name}, which has setup_context"
        return self._suspect(self.function.forward, message, ASSUMED, Severity.WARNING)

    def _half(self) -> Suspect | None:
        """One of the pair without the other."""
        function = self.function
        noted, restored = self._noted or FORWARD in self._forward_roles, BACKWARD in self._backward_roles
        if restored and not noted and function.forward is not None:
            message = f"{function.node.name}.forward has no custom_fwd, so custom_bwd on backward {_NO_STATE}"
            return self._suspect(function.forward, message, FORCED)
        if noted and not restored:
            return self._weak(
                f"{function.node.name}.backward has no custom_bwd and runs without the autocast that custom_fwd saved"
            )
        return None

    def _two_devices(self) -> Suspect | None:
        """One device's state noted, another's restored."""
        noted = {custom.device for custom in self.forward}
        restored = {custom.device for custom in self.backward}
        if len(noted) != 1 or len(restored) != 1 or noted == restored or None in noted | restored:
            return None
        return self._weak(
            f"{self.function.node.name}: custom_fwd notes the autocast of {noted.pop()}, "
            f"custom_bwd restores that of {restored.pop()}"
        )

    def _fixed_dtype(self) -> Iterator[Suspect]:
        """``cast_inputs`` with a 16-bit dtype written out."""
        facts = self.facts
        names = {id(reference.node): reference.name for reference in facts.references}
        for custom in self.forward:
            dtype = _LOW.get(names.get(id(custom.cast_inputs), ""))
            scenarios = tuple(s.name for s in facts.scenarios if s.autocast not in (None, dtype))
            if dtype is None or not scenarios or self.function.forward is None:
                continue
            other, loss = _LOSS[dtype]
            name = self.function.node.name
            message = f"{name}.forward computes in {dtype} whatever autocast's dtype is: under {other} it {loss}"
            span = facts.source.header_span(self.function.forward)
            causes = (Cause(facts.path, facts.span(custom.node), f"cast_inputs fixes {dtype}"),)
            yield Suspect(span, span, message, scenarios, ASSUMED, causes, Severity.WARNING)

    def _weak(self, message: str) -> Suspect | None:
        """A finding at backward, which runs without autocast: an error where its operands are seen to disagree.

        None where nothing in backward depends on autocast, or forward casts its inputs to one dtype.
        """
        facts, backward = self.facts, self.function.backward
        if backward is None:
            return None
        body = facts.source.span(backward)
        fails = any(c.kind is Kind.BACKWARD and body.contains(facts.span(c.node)) for c in conflicts(facts))
        matters = self.function.sensitive_backward and not any(c.cast_inputs is not None for c in self.forward)
        if not fails and not matters:
            return None
        return self._suspect(backward, message, ASSUMED, Severity.ERROR if fails else Severity.WARNING)

    def _suspect(
        self, method: ast.FunctionDef, message: str, standing: Standing, severity: Severity = Severity.ERROR
    ) -> Suspect:
        facts = self.facts
        span = facts.source.header_span(method)
        causes = tuple(
            Cause(facts.path, facts.span(custom.node), f"{custom.role} on {where}")
            for where, found in (("forward", self.forward), ("backward", self.backward))
            for custom in found
        )
        raises = standing.forced
        scenarios = every_scenario(facts) if raises else autocast_scenarios(facts)
        return Suspect(span, span, message, scenarios, standing, causes, severity, data=self)


def every_scenario(facts: FileFacts) -> tuple[str, ...]:
    """For what raises under autocast or not: the scenarios with autocast, since nobody decorates for the others."""
    return autocast_scenarios(facts) or facts.all_scenarios()
