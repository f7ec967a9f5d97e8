"""The loss is a sigmoid and BCELoss, which autocast refuses."""

from found.case import Case


def build():
    import torch
    from monai.losses import PatchAdversarialLoss

    loss = PatchAdversarialLoss(criterion="bce")
    return loss, (torch.randn(1, 1, 4, 4),), {"target_is_real": True, "for_discriminator": True}


CASE = Case(
    package="monai",
    release="1.6.1",
    path="monai/losses/adversarial_loss.py",
    line=169,
    code="AMP304",
    scenario="autocast-bf16",
    error="unsafe to autocast",
    breaks='`PatchAdversarialLoss(criterion="bce")` cannot be used under autocast.',
    build=build,
)
