"""Images become complex, which has no bfloat16."""

from found.case import Case


def build():
    import torch
    from monai.losses.sure_loss import complex_diff_abs_loss

    return complex_diff_abs_loss, (torch.randn(1, 2, 4, 4), torch.randn(1, 2, 4, 4)), {}


CASE = Case(
    package="monai",
    release="1.6.1",
    path="monai/losses/sure_loss.py",
    line=33,
    code=None,
    scenario="bf16",
    error="BFloat16",
    breaks="The loss on complex images (`SURELoss`) cannot be computed in bfloat16.",
    build=build,
    mode="eval-no-grad",
)
