"""The floor under probabilities is zero in float16, so that a probability of zero gives its logarithm."""

import torch
from found.case import Case


def build():
    from trl.experimental.gold.gold_trainer import GOLDTrainer

    def loss(student, teacher):
        return GOLDTrainer.generalized_jsd_loss(student, teacher, logits_are_probs=True)

    sure, unsure = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[0.5, 0.5]]])
    return loss, (unsure, sure), {}


CASE = Case(
    package="trl",
    release="1.16.0",
    path="trl/experimental/gold/gold_trainer.py",
    line=2284,
    code="AMP302",
    scenario="fp16",
    error="inf or nan",
    breaks="GOLD's distillation loss over float16 probabilities is NaN once the teacher rules a token out.",
    build=build,
    mode="eval-no-grad",
)
