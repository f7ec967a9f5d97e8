"""The identity of the covariance is made in float32."""

from found.case import Case


def build():
    from peft.tuners.lora.monteclora import MontecloraSampler

    return MontecloraSampler(4, 4, 3, buffer_size=2, device="cpu"), (), {}


CASE = Case(
    package="peft",
    release="0.21.2",
    path="peft/tuners/lora/monteclora.py",
    line=174,
    code="AMP103",
    scenario="bf16",
    error="dtype",
    breaks="A MonteCLoRA adapter in half precision cannot run.",
    build=build,
    mode="eval-no-grad",
)
