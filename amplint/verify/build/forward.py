"""Finding a forward's inputs: guess, run while watching, change what the failing operation asks for."""

from __future__ import annotations

import contextlib
import math
import time
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from amplint.verify.build import input_repair
from amplint.verify.build.effort import OutOfTime, TooLarge, within
from amplint.verify.build.inputs import choices_for, first_plans, main_layouts
from amplint.verify.build.queue import Waiting
from amplint.verify.build.recipe import seed_everything
from amplint.verify.build.searches import Probe
from amplint.verify.build.signatures import VARIADIC, Parameter, forward_parameters
from amplint.verify.build.spec import Plan, Spec, realise, tensors_of
from amplint.verify.build.trace import Trace
from amplint.verify.loading import one_line
from amplint.verify.tensors import tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplint.verify.build.effort import Deadline

SECONDS_A_TRY = 15.0
MOST_INPUT = 2_000_000
"""Elements of all inputs together beyond which a plan is not tried."""


class Forward:
    """The search for the inputs of one module. ``reason`` says why the try that came furthest failed, ``error`` is what
    it raised; ``progress`` the operations of the longest run; ``seconds`` what the run that succeeded took."""

    def __init__(
        self,
        module: nn.Module,
        seed: int,
        deadline: Deadline,
        *,
        signature: dict[str, Parameter] | None = None,
        choose: Callable[[str, Any], list[Spec]] | None = None,
        fresh: Callable[[], Any] | None = None,
    ) -> None:
        self.module = module
        self.seed = seed
        self.deadline = deadline
        self.parameters = forward_parameters(type(module)) if signature is None else signature
        self.choose = choose
        self.fresh = fresh
        self.reason = ""
        self.error: BaseException | None = None
        self.progress = -1
        self.seconds = 0.0
        self.gradients = False
        self.constants = [*module.parameters(), *module.buffers()]

    def choices(self, plan: Plan, name: str) -> list[Spec]:
        """What to try for a parameter, given the rest of the plan."""
        parameter = self.parameters.get(name)
        annotation: Any = parameter.annotation if parameter is not None else Any
        if self.choose is not None:
            return self.choose(name, annotation)
        main = next(iter(tensors_of(plan).values()), None) or main_layouts(self.module, "x")[0]
        return choices_for(name, annotation, self.module, main)

    def find(self, most_tries: int, first: list[Plan] | None = None) -> Plan | None:
        """A plan that runs in eval and in train mode, or None. ``first``: where to start from."""
        waiting = Waiting()
        furthest = (False, -1)
        for index, plan in enumerate(first_plans(self.module, self.parameters) if first is None else first):
            waiting.push(plan, 1.5 * index)
        for _, (cost, plan) in zip(range(most_tries), waiting.take(), strict=False):
            if self.deadline.left() <= 0:
                break
            training = False
            start = time.thread_time()
            probe = self.probe(plan, training=False)
            self.seconds = time.thread_time() - start
            if probe.error is None:
                training = True
                probe = self.probe(plan, training=True)
                if probe.error is None:
                    return plan
            gain = (probe.trace.steps > self.progress) - (probe.trace.steps < self.progress)
            if (training, probe.trace.steps) >= furthest:
                furthest = (training, probe.trace.steps)
                mode = "in train mode " if training else ""
                self.reason = f"its forward {mode}raised {one_line(probe.error)}"
                self.error = probe.error
            self.progress = max(self.progress, probe.trace.steps)
            if isinstance(probe.error, NotImplementedError) and not probe.trace.steps:
                break
            for extra, repaired in input_repair.repairs(self, plan, probe):
                sizes = [math.prod(tensor.shape) for tensor in tensors_of(repaired).values()]
                if sum(sizes) > MOST_INPUT or 0 in sizes:  # what is empty fits everything and shows nothing
                    continue
                waiting.push(repaired, cost + extra + _oblong(repaired) - 0.8 * gain)
        return None

    def probe(self, plan: Plan, *, training: bool) -> Probe:
        """Run the module once, watched, without gradients unless it asks for some itself.

        Where the run changed the module, as a cache does, the next run has a new one.
        """
        given: dict[str, torch.Tensor] = {}
        try:
            args, kwargs = call_arguments(plan, self.parameters, self.seed, given)
        except Exception as error:  # a class of the library refuses what it is made of
            return Probe(Trace({}, self.constants), error)
        trace = Trace(given, self.constants)
        self.module.train(training)
        before = _settings(self.module)
        seed_everything(self.seed)
        try:
            return self._run(trace, args, kwargs)
        finally:
            if self.fresh is not None and _settings(self.module) != before:
                with contextlib.suppress(Exception, OutOfTime, TooLarge):
                    self.module = self.fresh()
                    self.constants = [*self.module.parameters(), *self.module.buffers()]

    def _run(self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Probe:
        try:
            with within(min(SECONDS_A_TRY, self.deadline.left())), torch.set_grad_enabled(self.gradients), trace:
                result = self.module(*args, **kwargs)
        except (Exception, OutOfTime, TooLarge) as error:
            if not self.gradients and needs_gradients(error):
                self.gradients = True
                return self._run(trace, args, kwargs)
            return Probe(trace, error)
        results = list(tensors(result))
        depends = any(trace.origins(tensor) for tensor in results)
        if results and (depends or not trace.names):
            return Probe(trace, None)
        return Probe(trace, ValueError("its result does not depend on its inputs"))


def needs_gradients(error: BaseException) -> bool:
    """True for what a forward raises that differentiates, where gradients are off."""
    return isinstance(error, RuntimeError) and "does not require grad" in str(error)


def _settings(module: nn.Module) -> list[tuple[str, Any]]:
    """The plain values and the sizes of containers that the parts of ``module`` hold."""
    return [
        (name, len(value) if isinstance(value, (list, dict, tuple)) else value)
        for part in module.modules()
        for name, value in vars(part).items()
        if name != "training" and (value is None or type(value) in (int, bool, str, list, dict, tuple))
    ]


def _oblong(plan: Plan) -> float:
    """What images that are much wider than high, or higher than wide, cost extra."""
    sides = [spec.shape[-2:] for spec in tensors_of(plan).values() if len(spec.shape) >= 4]
    return 0.8 if any(max(pair) > 2 * min(pair) for pair in sides) else 0.0


def call_arguments(
    plan: Plan, signature: dict[str, Parameter], seed: int, noted: dict[str, torch.Tensor] | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The positional and keyword arguments that ``plan`` describes, made under ``seed``.

    A tuple for ``*args`` is several arguments. ``noted`` gets the tensors by their paths in ``plan``.
    """
    generator = torch.Generator().manual_seed(seed)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    skipped = False
    for name, parameter in signature.items():
        if name not in plan:
            skipped = skipped or parameter.kind not in VARIADIC
            continue
        value = realise(plan[name], generator, name, noted)
        if parameter.kind is Parameter.VAR_POSITIONAL:
            args += value if isinstance(value, tuple) else (value,)
        elif skipped or parameter.kind is Parameter.KEYWORD_ONLY:
            kwargs[name] = value
        else:
            args.append(value)
    for name, spec in plan.items():
        if name not in signature:
            kwargs[name] = realise(spec, generator, name, noted)
    return tuple(args), kwargs
