"""The weights of the classes are float32, the logits are half."""

import torch
from found.case import Case


def build():
    from transformers.loss.loss_for_object_detection import ImageLoss

    def loss(logits):
        criterion = ImageLoss(None, num_classes=2, eos_coef=0.1, losses=["labels"])
        first = torch.tensor([0])
        return criterion.loss_labels({"logits": logits}, [{"class_labels": first}], [(first, first)], 1)["loss_ce"]

    return loss, (torch.randn(1, 2, 3),), {}


CASE = Case(
    package="transformers",
    release="5.23.0",
    path="transformers/loss/loss_for_object_detection.py",
    line=140,
    code="AMP110",
    scenario="bf16",
    error="scalar type",
    breaks="DETR's classification loss cannot be computed in half precision.",
    build=build,
)
