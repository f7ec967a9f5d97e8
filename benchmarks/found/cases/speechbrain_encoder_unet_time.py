"""The embedding of the time step is float32, and enters a linear layer."""

from found.case import Case


def build():
    import torch
    from speechbrain.nnet.unet import EncoderUNetModel

    model = EncoderUNetModel(
        in_channels=1,
        model_channels=32,
        out_channels=2,
        num_res_blocks=1,
        attention_resolutions=[],
        channel_mult=(1,),
        num_heads=1,
        pool="adaptive",
    )
    return model, (torch.randn(1, 1, 8, 8), torch.tensor([1])), {}


CASE = Case(
    package="speechbrain",
    release="1.1.2",
    path="speechbrain/nnet/unet.py",
    line=1320,
    code="AMP102",
    scenario="bf16",
    error="same dtype",
    breaks="`EncoderUNetModel` with time steps cannot run in half precision.",
    build=build,
    mode="eval-no-grad",
)
