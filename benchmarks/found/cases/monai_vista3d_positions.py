"""The coordinates are cast to float32, the buffer that they are multiplied with is not."""

from found.case import Case


def build():
    from monai.networks.nets.vista3d import PositionEmbeddingRandom

    return PositionEmbeddingRandom(4), ((2, 2, 2),), {}


CASE = Case(
    package="monai",
    release="1.6.1",
    path="monai/networks/nets/vista3d.py",
    line=884,
    code="AMP102",
    scenario="bf16",
    error="dtype",
    breaks="VISTA3D's point prompts cannot be used in half precision.",
    build=build,
    mode="eval-no-grad",
)
