"""The states in which an event of a training step is reached: told apart by tests, and bounded in number."""

from __future__ import annotations

import textwrap

import pytest
from rule_harness import source_of

from amplint.infer.flow.training.steps import Gradients, Step
from amplint.infer.flow.training.training import Training
from amplint.infer.syntax.references import references

HEADER = "import torch\nfrom torch.cuda.amp import GradScaler\n\n\n"


def training_of(text: str) -> Training:
    source = source_of(HEADER + textwrap.dedent(text))
    return Training(source.tree, references(source.tree))


def test_paths_that_exclude_each_other_are_told_apart() -> None:
    training = training_of("""
        def train(optimizer, scaler: GradScaler, loss, amp):
            if amp and loss is not None:
                scaler.scale(loss).backward()
            elif not amp:
                loss.backward()
            if not amp:
                optimizer.step()
    """)
    (step,) = training.moments_of(Step.OPTIMIZER_STEP) or (None,)
    assert step is None, "nothing shows that this is an optimizer"
    training = training_of("""
        def train(optimizer: torch.optim.Optimizer, scaler: GradScaler, loss, amp):
            if amp:
                scaler.scale(loss).backward()
            if not amp:
                loss.backward()
            if not amp:
                optimizer.step()
    """)
    (step,) = training.moments_of(Step.OPTIMIZER_STEP)
    assert step.gradients == {Gradients.PLAIN}


OPTIONS = """
    class Trainer:
        def __init__(self, args):
            self.args = args
            self.scaler = GradScaler()
            self.optimizer = torch.optim.SGD([], 1.0)

        def train(self, loss):
            if self.args.amp:
                self.scaler.scale(loss).backward()
            else:
                loss.backward()
            {between}
            if not self.args.amp:
                self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ("args = self.args", {Gradients.PLAIN}),
        ("amp = loss", {Gradients.PLAIN}),
        ("self.args = loss", {Gradients.PLAIN, Gradients.SCALED}),
        ("self.args.amp = loss", {Gradients.PLAIN, Gradients.SCALED}),
    ],
)
def test_a_variable_is_no_attribute_of_its_name(between: str, expected: set[Gradients]) -> None:
    training = training_of(OPTIONS.format(between=between))
    (step,) = training.moments_of(Step.OPTIMIZER_STEP)
    assert step.gradients == expected


STEP = """
    class Trainer:
        def __init__(self):
            self.scaler = GradScaler()
            self.optimizer = torch.optim.SGD([], 1.0)

        def backward(self, loss):
            BACKWARD
            self.scaler.step(self.optimizer)
"""


@pytest.mark.parametrize(
    ("backward", "more", "expected"),
    [
        ("loss.backward()", "", Gradients.ENTRY),
        ("loss = loss / 2\n            loss.backward()", "", Gradients.ENTRY),
        ("loss.mean().backward()", "", Gradients.ENTRY),
        ("loss = self.model(loss)\n            loss.backward()", "", Gradients.PLAIN),
        ("loss.backward()", "        def train(self, x):\n            self.backward(x.mean())\n", Gradients.PLAIN),
        ("print(self.scaler.scale(loss))\n            loss.backward()", "", Gradients.PLAIN),
    ],
)
def test_who_passes_a_loss_may_have_scaled_it(backward: str, more: str, expected: Gradients) -> None:
    training = training_of(STEP.replace("BACKWARD", backward) + more)
    (step,) = training.moments_of(Step.SCALER_STEP)
    assert step.gradients == {expected}


def test_work_is_bounded() -> None:
    """Forty tests that double the paths, in helpers that call each other, end at once."""
    tests = "".join(f"    if flags[{i}]:\n        scaler.scale(loss).backward()\n" for i in range(40))
    text = f"def f(scaler: GradScaler, loss, flags, o):\n{tests}    scaler.step(o)\n    g(scaler, loss, flags, o)\n"
    text += "def g(scaler, loss, flags, o):\n    f(scaler, loss, flags, o)\n"
    text += "def h(scaler: GradScaler, loss, flags, o):\n    for x in flags:\n        f(scaler, loss, flags, o)\n"
    (step,) = training_of(text).moments_of(Step.SCALER_STEP)
    assert step.blurred


def test_what_a_base_calls_of_its_object_is_that_of_the_objects_class() -> None:
    text = """
import torch

class Trainer:
    def step(self, loss):
        loss.backward()
        self.finish()

    def finish(self):
        self.clip()

    def clip(self):
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)

class Mixed(Trainer):
    def __init__(self):
        self.scaler = torch.amp.GradScaler("cuda")

    def step(self, loss):
        self.scaler.scale(loss).backward()
        self.finish()

    def clip(self):
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_value_(self.parameters, 1.0)
"""
    of_base, own = training_of(text).moments_of(Step.CLIP)
    assert of_base.gradients == {Gradients.ENTRY}
    assert own.gradients == {Gradients.UNSCALED}


@pytest.mark.parametrize("finish", ["self.clip()\n        self.optimizer.step()", "self.optimizer.step(self.clip())"])
def test_nor_is_what_only_the_objects_class_does_passed_over(finish: str) -> None:
    text = f"""
import torch

class Trainer:
    def __init__(self, model):
        self.optimizer = torch.optim.SGD(model.parameters())

    def step(self, loss):
        loss.backward()
        self.finish()

    def finish(self):
        {finish}

    def clip(self):
        return None

class Mixed(Trainer):
    def __init__(self, model):
        super().__init__(model)
        self.scaler = torch.amp.GradScaler("cuda")

    def step(self, loss):
        self.scaler.scale(loss).backward()
        self.finish()

    def clip(self):
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
"""
    (clip,) = training_of(text).moments_of(Step.CLIP)
    assert Gradients.SCALED in clip.gradients


def test_classes_that_derive_from_each_other_end() -> None:
    text = "class A(B):\n    def f(self):\n        self.g()\n\nclass B(A):\n    def g(self):\n        loss.backward()\n"
    assert len(training_of(text).moments_of(Step.BACKWARD)) == 1
