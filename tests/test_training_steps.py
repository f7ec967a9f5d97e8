"""What a training step has done to its gradients: states at each event, and what the rules 401 to 405 make of it.

Each case is a file; ``# AMP401`` (or several codes) at the end of a line is what the rules must find there, and they
may find nothing else.
"""

from __future__ import annotations

import re
import textwrap

import pytest
from rule_harness import facts_of, source_of

from amplint.plugins import load_rules

RULES = [rule for rule in load_rules() if rule.code in ("AMP401", "AMP402", "AMP403", "AMP404", "AMP405")]
_MARK = re.compile(r"#\s*(AMP\d{3}(?:,\s*AMP\d{3})*)\s*$")

HEADER = """\
import contextlib
import torch
from torch import nn
from torch.cuda.amp import GradScaler, autocast
from torch.nn.utils import clip_grad_norm_


"""

CASES = {
    "another object of that name": """
        def train(model, optimizer, scaler, loss):
            loss = scaler.transform(loss)
            loss.backward()
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    """,
    "a loss that has the scaler, and scales itself": """
        class ScaledLoss:
            def __init__(self, scaler, loss):
                self.scaler, self.loss = scaler, loss

            def __call__(self, output):
                return self.scaler.scale(self.loss(output)).reshape(())

        class Loop:
            def __init__(self, loss, hooks):
                self.scaler = GradScaler()
                self.loss = ScaledLoss(self.scaler, loss)

            def train(self, model, optimizer, x):
                with autocast():
                    loss = self.loss(model(x))
                loss.backward()
                self.scaler.step(optimizer)
                self.scaler.update()
    """,
    "hooks that have the scaler": """
        def train(model, optimizer, hooks, x):
            scaler = GradScaler()
            for hook in hooks:
                hook.scaler = scaler
            loss = hooks.loss(model(x))
            loss.backward()
            scaler.step(optimizer)
            scaler.update()
    """,
    "a scaler that only a checkpoint gets": """
        def train(model, optimizer, checkpoints, x):
            scaler = GradScaler()
            with autocast():
                loss = model(x).mean()
            loss.backward()
            checkpoints.save(model, scaler)
            scaler.step(optimizer)  # AMP402
            scaler.update()
    """,
    "a scaler of its own": """
        class Scaler:
            def __init__(self, scale):
                self._scale = scale

            def scale(self, loss):
                return loss * self._scale

            def unscale_(self, optimizer):
                for p in optimizer.params:
                    p.grad = p.grad / self._scale

            def step(self, optimizer):
                self.unscale_(optimizer)
                optimizer.step()

            def update(self):
                self._scale /= 2
    """,
    "a scaler known by its use": """
        def train(model, optimizer, gs, loss):
            gs.scale(loss).backward()
            clip_grad_norm_(model.parameters(), 1.0)  # AMP401
            gs.step(optimizer)
            gs.update()
    """,
    "a helper that returns what it is passed": """
        class Trainer:
            def __init__(self, model, optimizer):
                self.model, self.optimizer, self.scaler = model, optimizer, GradScaler()

            def restore(self, states):
                def loaded(state, thing):
                    thing.load_state_dict(state)
                    return thing

                self.optimizer = loaded(states["optimizer"], self.optimizer)
                self.scaler = loaded(states["scaler"], self.scaler)

            def step(self, loss):
                if self.scaler is None:
                    loss.backward()
                    self.optimizer.step()
                else:
                    self.scaler.scale(loss).backward()
                    self.scaler.step(self.optimizer)
                    self.scaler.update()

            def stepping_too_early(self, loss):
                self.scaler.scale(loss).backward()
                self.optimizer.step()  # AMP402
    """,
    "a helper that returns another thing under the name of its parameter": """
        class Trainer:
            def __init__(self, model, optimizer):
                self.model, self.optimizer = model, optimizer
                self.scaler = self.made(optimizer)

            def made(self, thing):
                thing = GradScaler()
                return thing

            def step(self, loss):
                loss.backward()
                self.scaler.step(self.optimizer)  # AMP402
    """,
    "unscaled in a helper": """
        class Trainer:
            def __init__(self, model, optimizer):
                self.model, self.optimizer, self.scaler = model, optimizer, GradScaler()

            def unscale(self):
                if self.scaler is not None:
                    self.scaler.unscale_(self.optimizer)

            def step(self, loss):
                self.scaler.scale(loss).backward()
                self.unscale()
                clip_grad_norm_(self.model.parameters(), 1.0)
                self.scaler.step(self.optimizer)
                self.scaler.update()
    """,
    "a test that a helper gets by another name": """
        def finish(model, optimizer, scaler: GradScaler, amp):
            if amp:
                scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), 1.0)
            if amp:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()

        def train(model, optimizer, scaler: GradScaler, loss, use_amp):
            if use_amp:
                scaler.scale(loss).backward()
            else:
                loss.backward()
            finish(model, optimizer, scaler, use_amp)
    """,
    "the loss itself where the scaler is off": """
        def train(model, optimizer, loss, use_amp):
            scaler = GradScaler() if use_amp else None
            if scaler is not None:
                scaler.scale(loss).backward()
            else:
                loss.backward()
            if scaler is None:
                clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            else:
                scaler.step(optimizer)
                scaler.update()
    """,
    "two matches of the same subject": """
        def train(model, optimizer, scaler: GradScaler, loss, precision):
            match precision:
                case "fp16":
                    scaler.scale(loss).backward()
                case _:
                    loss.backward()
            match precision:
                case "fp16":
                    clip_grad_norm_(model.parameters(), 1.0)  # AMP401
                    scaler.step(optimizer)
                    scaler.update()
                case _:
                    clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
    """,
    "what is raised where it is suppressed": """
        def train(model, optimizer, scaler: GradScaler, loss):
            with contextlib.suppress(RuntimeError):
                raise RuntimeError
            scaler.scale(loss).backward()
            clip_grad_norm_(model.parameters(), 1.0)  # AMP401
            scaler.step(optimizer)
            scaler.update()
    """,
    "a loop that only a break leaves": """
        def train(model, optimizer, scaler: GradScaler, loss, done):
            while True:
                scaler.scale(loss()).backward()
                if done():
                    break
                scaler.step(optimizer)
                scaler.update()
            clip_grad_norm_(model.parameters(), 1.0)  # AMP401
            scaler.step(optimizer)
            scaler.update()
    """,
    "stepped past the scaler on one branch": """
        def train(model, optimizer, scaler: GradScaler, loss, clip):
            scaler.scale(loss).backward()
            if clip:
                scaler.unscale_(optimizer)
                clip_grad_norm_(model.parameters(), clip)
                scaler.step(optimizer)
            else:
                optimizer.step()  # AMP402
            scaler.update()
    """,
    "a batch that is skipped between unscaling and update": """
        def train(model, optimizer, loader):
            scaler = GradScaler()
            for x in loader:
                optimizer.zero_grad()
                scaler.scale(model(x).mean()).backward()
                scaler.unscale_(optimizer)  # AMP402
                if not clip_grad_norm_(model.parameters(), 1.0).isfinite():
                    continue
                scaler.step(optimizer)
                scaler.update()

        region = autocast
    """,
    "optimizers in a list are several": """
        def train(model, optimizers, loader):
            scaler = GradScaler()
            for x in loader:
                with autocast():
                    loss = model(x).mean()
                scaler.scale(loss).backward()
                for optimizer in optimizers:
                    scaler.unscale_(optimizer)
                clip_grad_norm_(model.parameters(), 1.0)
                for index in range(len(optimizers)):
                    scaler.step(optimizers[index])
                scaler.update()
    """,
    "updated twice": """
        def train(model, optimizer, scaler: GradScaler, loss):
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scaler.update()  # AMP402
    """,
    "backward under a region that may be none": """
        def train(model, optimizer: torch.optim.Optimizer, x, amp):
            region = autocast() if amp else contextlib.nullcontext()
            with region:
                loss = model(x).mean()
                loss.backward()  # AMP404
            optimizer.step()

        def train_off(model, optimizer: torch.optim.Optimizer, x):
            with autocast():
                with autocast(enabled=False):
                    model(x).mean().backward()
            optimizer.step()
    """,
    "a method called inside and outside": """
        class Trainer:
            def __init__(self, model):
                self.model, self.optimizer = model, torch.optim.SGD(model.parameters(), lr=0.1)

            def finish(self, loss):
                loss.backward()
                self.optimizer.step()

            def warm(self, x):
                self.finish(self.model(x).mean())

            def train(self, x):
                with autocast():
                    self.finish(self.model(x).mean())
    """,
    "converted back before it is trained": """
        def train(model, loader):
            model = model.half()
            model.float()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            scaler = GradScaler()
            for x in loader:
                with autocast():
                    loss = model(x).mean()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
    """,
    "updated in finally, behind a return": """
        def train(model, optimizer, scaler: GradScaler, loss):
            scaler.scale(loss).backward()
            try:
                clip_grad_norm_(model.parameters(), 1.0)  # AMP401
                return scaler.step(optimizer)
            finally:
                scaler.update()
    """,
    "unscaled in finally, behind a break": """
        def train(model, optimizer, scaler: GradScaler, losses):
            for loss in losses:
                scaler.scale(loss).backward()
                try:
                    break
                finally:
                    scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
    """,
    "unscaled before what is raised and caught": """
        def train(model, optimizer, scaler: GradScaler, loss):
            try:
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)
                raise StopIteration
            except StopIteration:
                clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
    """,
    "unscaled in every case": """
        def train(model, optimizer, scaler: GradScaler, loss, mode):
            scaler.scale(loss).backward()
            match mode:
                case "sharded":
                    scaler.unscale_(optimizer)
                case _:
                    scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
    """,
    "unscaled in the subject": """
        def train(model, optimizer, scaler: GradScaler, loss):
            scaler.scale(loss).backward()
            match scaler.unscale_(optimizer):
                case None:
                    clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
    """,
    "stepped with the optimizer in one case": """
        def train(model, scaler: GradScaler, loss, mode):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            scaler.scale(loss).backward()
            match mode:
                case "plain":
                    optimizer.step()  # AMP402
                case _:
                    scaler.step(optimizer)
                    scaler.update()
    """,
    "stepped by a hook within the backward pass": """
        def train(model, settings, make_optimizer, losses):
            scaler = GradScaler()

            def hook(parameter):
                scaler.step(optimizers[parameter])

            make_optimizer(settings, model, hook)
            for loss in losses:
                scaler.scale(loss).backward()
                if not settings.fused:
                    scaler.step(settings.optimizer)
                scaler.update()
    """,
    "stepped by a method that is a hook": """
        class Trainer:
            def __init__(self, parameters):
                self.scaler = GradScaler()
                for parameter in parameters:
                    parameter.register_post_accumulate_grad_hook(self.hook)

            def hook(self, parameter):
                self.scaler.step(optimizers[parameter])

            def train(self, settings, losses):
                for loss in losses:
                    self.scaler.scale(loss).backward()
                    if not settings.fused:
                        self.scaler.step(settings.optimizer)
                    self.scaler.update()
    """,
    "stepped by a function that nobody else gets": """
        def train(model, settings, losses):
            scaler = GradScaler()

            def step(parameter):
                scaler.step(optimizers[parameter])

            for loss in losses:
                scaler.scale(loss).backward()
                if not settings.fused:
                    scaler.step(settings.optimizer)
                scaler.update()  # AMP402
    """,
    "a training of its own in each pass": """
        def compare(classes, x):
            for cls in classes:
                model = cls()
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                scaler = GradScaler()
                scaler.scale(model(x)).backward()
                scaler.step(optimizer)
                scaler.update()
    """,
    "a scaler that nothing uses": """
        def train(model, optimizer: torch.optim.Optimizer, loader):
            scaler = GradScaler()
            for x in loader:
                with torch.autocast("cuda", dtype=torch.float16):
                    loss = model(x).mean()
                loss.backward()  # AMP402
                optimizer.step()
    """,
    "a scaler that something else may use": """
        class Trainer:
            def __init__(self, optimizer: torch.optim.Optimizer):
                self.scaler = GradScaler()
                self.optimizer = optimizer

            def train(self, model, loader):
                for x in loader:
                    with torch.autocast("cuda", dtype=torch.float16):
                        loss = model(x).mean()
                    loss.backward()
                    self.optimizer.step()
    """,
    "an optimizer that steps with the scaler it is given": """
        def train(model, optimizer, loader, every):
            scaler = GradScaler()
            for n, x in enumerate(loader):
                scaler.scale(model(x).mean()).backward()
                if n % every == 0:
                    scaler.unscale_(optimizer.inner)
                    clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step_with(scaler)
                scaler.update()
    """,
    "the same where nothing steps": """
        def train(model, optimizer: torch.optim.Optimizer, loader, every):
            scaler = GradScaler()
            for n, x in enumerate(loader):
                scaler.scale(model(x).mean()).backward()
                if n % every == 0:
                    scaler.step(optimizer)
                scaler.update()  # AMP402
    """,
    "entered by and": """
        def train(model, x):
            with torch.no_grad() and torch.autocast(torch.float16):  # AMP405, AMP405
                return model(x)
    """,
}


def assert_found_where_marked(case: str) -> None:
    """That the rules find in a file what it marks, and nothing else."""
    text = HEADER + textwrap.dedent(case)
    wanted = [
        (row, code)
        for row, line in enumerate(text.splitlines(), start=1)
        if (mark := _MARK.search(line))
        for code in mark[1].replace(" ", "").split(",")
    ]
    source = source_of(text)
    facts = facts_of(source)
    found = [
        (s.span.start.row, rule.code) for rule in RULES if rule.may_find(source.data) for s in rule.suspects(facts)
    ]
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("name", CASES)
def test_rules_find_what_is_marked(name: str) -> None:
    assert_found_where_marked(CASES[name])
