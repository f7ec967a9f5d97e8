"""The sampled input keeps its half dtype, the codebook is float32."""

from found.case import Case


def build():
    import torch
    from vector_quantize_pytorch import LFQ

    quantize = LFQ(codebook_size=4, dim=2, frac_per_sample_entropy=0.5, force_quantization_f32=False)
    return quantize, (torch.randn(1, 4, 2),), {}


CASE = Case(
    package="vector-quantize-pytorch",
    release="1.32.0",
    path="vector_quantize_pytorch/lookup_free_quantization.py",
    line=374,
    code="AMP102",
    scenario="bf16-mixed-params",
    error="scalar type",
    breaks="`LFQ` built in bfloat16 cannot be trained without `force_quantization_f32`.",
    build=build,
)
