"""The histograms are in the autocast dtype, the descriptors that they are written into are float32."""

from found.case import Case


def build():
    import torch
    from kornia.feature.sift.scale_space import _SIFTScaleSpaceDescriptor

    frames = torch.tensor([[[[4.0, 0.0, 8.0], [0.0, 4.0, 8.0]]]])
    level = torch.ones(1, 1, dtype=torch.long)
    return _SIFTScaleSpaceDescriptor(upright=True), ([torch.rand(1, 1, 3, 32, 32)], frames, 0 * level, level), {}


CASE = Case(
    package="kornia",
    release="0.9.0",
    path="kornia/feature/sift/scale_space.py",
    line=785,
    code="AMP105",
    scenario="autocast-fp16",
    error="Index put requires the source and destination dtypes match",
    breaks="Kornia's scale space SIFT cannot run under autocast in float16.",
    build=build,
    mode="eval-no-grad",
)
