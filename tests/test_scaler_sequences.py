"""Scalers that are stepped again and again: which call is told, and what is taken for a scaler by its use.

Each case is a file; ``# AMP402`` at the end of a line is what the rule must find there, and it may find nothing else.
"""

from __future__ import annotations

import textwrap

import pytest
from rule_harness import facts_of, source_of

from amplint.plugins import load_rules

(RULE,) = (rule for rule in load_rules() if rule.code == "AMP402")

HEADER = """\
from torch.cuda.amp import GradScaler, autocast
from torch.nn.utils import clip_grad_norm_


"""

CASES = {
    "never updated, where the next pass raises as it unscales": """
        def train(model, optimizer, loader):
            scaler = GradScaler()
            for x in loader:
                with autocast():
                    loss = model(x).mean()
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)  # AMP402
                clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
    """,
    "never updated, where nothing unscales": """
        def train(model, optimizer, loader):
            scaler = GradScaler()
            for x in loader:
                with autocast():
                    loss = model(x).mean()
                scaler.scale(loss).backward()
                scaler.step(optimizer)  # AMP402
    """,
    "a scaler made elsewhere, which two methods take from an attribute": """
        class Unit(Base):
            def train_step(self, batch, update):
                grad_scaler = self.grad_scaler
                loss = self.loss(batch)
                if grad_scaler:
                    scaled_loss = grad_scaler.scale(loss)
                    scaled_loss.backward()
                else:
                    loss.backward()
                if update:
                    self.update()

            def update(self):
                grad_scaler = self.grad_scaler
                if grad_scaler and self.clips:
                    grad_scaler.unscale_(self.optimizer)
                if grad_scaler:
                    grad_scaler.step(self.optimizer)
                    grad_scaler.update()
    """,
    "a scaler made elsewhere, which a method unpacks from attributes": """
        class Unit(Base):
            def backward(self, loss):
                if self.scaler is not None:
                    self.scaler.scale(loss / 2).backward()
                    return
                loss.backward()

            def advance(self, batch):
                self.backward(self.model(batch).mean())
                self.apply()

            def apply(self):
                model, optimizer, scaler = self.model, self.optimizer, self.scaler
                if scaler is not None:
                    scaler.unscale_(optimizer)
                clip_grad_norm_(model.parameters(), 1.0)
                if scaler is not None:
                    scaler.step(optimizer)
                    scaler.update()
                else:
                    optimizer.step()
    """,
    "a loss that may be scaled, handed to a method": """
        class Unit:
            def __init__(self, model, optimizer, amp):
                self.model, self.optimizer = model, optimizer
                self.scaler = GradScaler() if amp else None

            def advance(self, batch):
                loss = self.model(batch).mean()
                loss = self.scaler.scale(loss) if self.scaler else loss
                loss = loss / 2
                self.backward(loss)

            def backward(self, loss):
                self.optimizer.zero_grad()
                loss.sum().backward()
                if self.scaler:
                    self.scaler.step(self.optimizer)
                    self.scaler.update()
                else:
                    self.optimizer.step()
    """,
}


@pytest.mark.parametrize("name", CASES)
def test_the_rule_finds_what_is_marked(name: str) -> None:
    text = HEADER + textwrap.dedent(CASES[name])
    wanted = [row for row, line in enumerate(text.splitlines(), start=1) if line.endswith("# AMP402")]
    source = source_of(text)
    assert RULE.may_find(source.data)
    assert [suspect.span.start.row for suspect in RULE.suspects(facts_of(source))] == wanted
