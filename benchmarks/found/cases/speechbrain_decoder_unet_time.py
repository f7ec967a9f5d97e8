"""The embedding of the time step is float32, and enters a linear layer."""

from found.case import Case


def build():
    import torch
    from speechbrain.nnet.unet import DecoderUNetModel

    model = DecoderUNetModel(
        in_channels=1,
        out_channels=1,
        model_channels=8,
        num_res_blocks=1,
        attention_resolutions=[],
        channel_mult=(1,),
        norm_num_groups=2,
        num_heads=1,
    )
    return model, (torch.randn(1, 1, 8, 8), torch.tensor([1])), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/nnet/unet.py",
    line=1612,
    code="AMP102",
    scenario="bf16",
    error="same dtype",
    breaks="`DecoderUNetModel` with time steps cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
