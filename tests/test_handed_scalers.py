"""A scaler that other code gets may be used by it: it may unscale, step or update."""

from __future__ import annotations

import pytest
from test_training_steps import assert_found_where_marked

LOOP = """
        class Loop:
            def __init__(self, model, optimizer):
                self.model, self.optimizer = model, optimizer
                self.scaler = GradScaler()

            def train(self, x):
                self.optimizer.zero_grad()
                with autocast():
                    loss = self.model(x).sum()
                self.scaler.scale(loss).backward()
                {handed}
                clip_grad_norm_(self.model.parameters(), 1.0){mark}
                {step}
                self.scaler.update()
"""
STEP = "self.scaler.step(self.optimizer)"


@pytest.mark.parametrize(
    ("handed", "step", "mark"),
    [
        ("self.optimizer.unscale(scaler=self.scaler)", "self.optimizer.step(scaler=self.scaler)", ""),
        ("self.optimizer.prepare(self.scaler)", STEP, ""),
        ("print(self.scaler, isinstance(self.scaler, GradScaler))", STEP, "  # AMP401"),
        ("pass", STEP, "  # AMP401"),
    ],
)
def test_code_that_gets_a_scaler_may_use_it(handed: str, step: str, mark: str) -> None:
    assert_found_where_marked(LOOP.format(handed=handed, step=step, mark=mark))


CASES = {
    "a function of the file that gets the scaler": """
        def clip(model, scaler):
            clip_grad_norm_(model.parameters(), 1.0)  # AMP401
            print(scaler)

        def train(model, optimizer, x):
            scaler = GradScaler()
            optimizer.zero_grad()
            with autocast():
                loss = model(x).sum()
            scaler.scale(loss).backward()
            clip(model, scaler)
            scaler.step(optimizer)
            scaler.update()
    """,
    "an optimizer that is given a scaler": """
        def train(model, make, x):
            scaler = GradScaler()
            optimizer = torch.optim.SGD(model.parameters()) if make is None else make(model)
            optimizer.zero_grad()
            with autocast():
                loss = model(x).sum()
            scaler.scale(loss).backward()
            optimizer.step(scaler=scaler)
            scaler.update()
    """,
}


@pytest.mark.parametrize("name", CASES)
def test_functions_of_the_file_are_followed(name: str) -> None:
    assert_found_where_marked(CASES[name])
