"""The image is resized in float32, whatever the model's weights are."""

from found.case import Case


def build():
    import torch
    from kornia.feature import XFeat

    class Dense(torch.nn.Module):
        """Calls detectAndComputeDense where a module is called."""

        def __init__(self):
            super().__init__()
            self.model = XFeat(top_k=4)

        def forward(self, image):
            return self.model.detectAndComputeDense(image, multiscale=False)["descriptors"]

    return Dense(), (torch.rand(1, 1, 32, 32),), {}


CASE = Case(
    package="kornia",
    release="0.9.0",
    path="kornia/feature/xfeat.py",
    line=86,
    code="AMP102",
    scenario="bf16",
    error="type",
    breaks="`XFeat` in half precision cannot detect anything.",
    build=build,
    mode="eval-no-grad",
)
