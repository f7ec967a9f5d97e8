"""The kernel is a plain attribute in float32."""

from found.case import Case


def build():
    import torch
    from speechbrain.processing.features import ContextWindow

    return ContextWindow(left_frames=1, right_frames=1), (torch.randn(1, 5, 3),), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/processing/features.py",
    line=979,
    code="AMP110",
    scenario="bf16",
    error="type",
    breaks="`ContextWindow` cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
