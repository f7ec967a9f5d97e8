"""Programs in the shape of model code, one for each family of operations, and what torch gives in them.

Each family is the body of a ``forward(self, x)`` on ``x`` of shape (2, 4, 8), with a layer ``self.proj`` of the model.
``python tests/op_families.py`` runs all of them under CUDA's policy (emulated, so in a process of its own) and prints
the dtype of every variable as JSON.
"""

from __future__ import annotations

import ast
import json
import textwrap
from typing import Any

CONSTRUCTOR = """
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)
        self.scale = nn.Parameter(torch.zeros(8))
        self.register_buffer("table", torch.arange(8, dtype=torch.float32))
"""

FAMILIES = {
    "norms": """
        variance = x.pow(2).mean(-1, keepdim=True)
        normed = x * torch.rsqrt(variance + 1e-6)
        wide = x.float().pow(2).mean(-1, keepdim=True)
        back = (x.float() * torch.rsqrt(wide)).type_as(x)
        weighted = self.scale * back
        layer = F.layer_norm(x, (8,), self.scale, self.scale)
        group = F.group_norm(x.transpose(1, 2), 2)
        unit = F.normalize(x, dim=-1)
        rms = F.rms_norm(x, (8,), self.scale)
        length = x.norm(dim=-1)
        spread = x.std(dim=-1)
        var, mean = torch.var_mean(x, dim=-1)
    """,
    "softmax": """
        scores = torch.matmul(x, x.transpose(1, 2)) / 8 ** 0.5
        wide = F.softmax(scores, dim=-1, dtype=torch.float32)
        weights = wide.to(x.dtype)
        own = scores.softmax(dim=-1)
        logs = F.log_softmax(x, dim=-1)
        plain = torch.softmax(x, -1)
        smooth = torch.logsumexp(x, dim=-1)
        soft = F.softplus(x)
        gate = torch.sigmoid(x)
        most = F.gumbel_softmax(x, dim=-1)
    """,
    "rotary": """
        inv_freq = 1.0 / (10000 ** (torch.arange(0, 8, 2, dtype=torch.int64, device=x.device).float() / 8))
        positions = torch.arange(x.shape[1], device=x.device)
        freqs = torch.outer(positions.float(), inv_freq)
        grid = torch.einsum("i,j->ij", positions.float(), inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        cos, sin = emb.cos(), emb.sin()
        half = torch.cat((-x[..., 4:], x[..., :4]), dim=-1)
        rotated = x * cos + half * sin
        kept = (x * cos + half * sin).to(x.dtype)
        cis = torch.polar(torch.ones_like(freqs), freqs)
        pairs = torch.view_as_complex(x.float().reshape(2, 4, 4, 2))
        turned = torch.view_as_real(pairs * cis).flatten(2)
        real = pairs.real
        table = self.table * 2
    """,
    "masks": """
        lowest = torch.finfo(x.dtype).min
        mask = torch.full((4, 4), lowest, dtype=x.dtype)
        causal = torch.triu(mask, diagonal=1)
        allowed = torch.ones(4, 4, dtype=torch.bool).tril()
        filled = x.new_zeros(4, 4).masked_fill(allowed.logical_not(), float("-inf"))
        chosen = torch.where(allowed, x[:, :, :4], 0.0)
        among = torch.where(allowed, x[:, :, :4], x.new_zeros(()))
        wide = torch.where(allowed, x[:, :, :4], torch.zeros(4, 4))
        inverted = 1.0 - allowed.to(x.dtype)
        any_left = allowed.any(dim=-1)
        below = x < 0.5
        same = x == x
        close = torch.isclose(x, x)
        nonzero = x.ne(0)
        both = allowed & nonzero[0, :, :4]
        count = allowed.sum(-1)
        ids = (torch.cumsum(allowed.long(), dim=1) - 1).clamp(min=0)
        bias = torch.zeros_like(x[:, :, :4]).masked_fill_(allowed, lowest)
    """,
    "constructors": """
        zeros = torch.zeros(2, 8)
        like = torch.zeros_like(x)
        wide = torch.zeros_like(x, dtype=torch.float32)
        ones = x.new_ones(3)
        full = x.new_full((3,), 0.5)
        noise = torch.randn(2, 8, dtype=x.dtype)
        drawn = torch.randn_like(x)
        scalar = torch.tensor(3.0)
        scaled = x * scalar
        whole = torch.tensor([1, 2, 3])
        flags = torch.tensor([True, False])
        steps = torch.linspace(0, 1, 4)
        places = torch.arange(4)
        fractions = torch.arange(0, 1, 0.25)
        filled = torch.full((2,), 1.0)
        counted = torch.full((2,), 1)
        drawn_ids = torch.randint(0, 4, (2, 3))
        order = torch.randperm(4)
        identity = torch.eye(4, dtype=x.dtype)
        single = torch.scalar_tensor(2)
        mixed = torch.as_tensor([1, 2.5])
        copied = x.new_tensor([1.0, 2.0])
        window = torch.hann_window(4)
    """,
    "selection": """
        values, indices = torch.topk(x, 2, dim=-1)
        most, place = x.max(dim=-1)
        least = x.min()
        highest = x.amax(dim=-1)
        best = x.argmax(dim=-1)
        ordered, order = torch.sort(x, dim=-1)
        ranked = torch.argsort(x, dim=-1)
        picked = torch.gather(x, -1, indices)
        rows = x.index_select(1, torch.arange(2))
        taken = x[:, torch.arange(2)]
        middle = x.median(dim=-1)[0]
        unique = torch.unique(indices)
        once, back = torch.unique(indices, return_inverse=True)
        where = (x > 0).nonzero()
        rows_at, columns_at, depth_at = torch.where(x > 0)
        mode_value, mode_place = torch.mode(x, dim=-1)
        first = torch.max(x, x.new_zeros(()))
        second = torch.maximum(x, x)
    """,
    "shapes": """
        q, k, v = x.repeat(1, 1, 3).split(8, dim=-1)
        left, right = x.chunk(2, dim=-1)
        parts = x.unbind(1)[0]
        flat = x.flatten(1).unsqueeze(0).squeeze(0)
        moved = x.permute(0, 2, 1).contiguous().view(2, 8, 4).reshape(2, -1)
        wide = x[:, None].expand(2, 3, 4, 8)
        padded = F.pad(x, (1, 1), value=0.0)
        rolled = torch.roll(x, 1, dims=1)
        flipped = x.flip(-1)
        stacked = torch.stack((x, x), dim=0)
        joined = torch.cat([x, x.float()], dim=-1)
        repeated = x.repeat_interleave(2, dim=0)
        tiled = torch.tile(x, (1, 2))
        upper = torch.tril(x)
        diagonal = x.diagonal(dim1=1, dim2=2)
        turned = x.mT @ x
        windows = x.unfold(1, 2, 1)
        grid_y, grid_x = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
    """,
    "casts": """
        moved = x.to("cpu")
        device = x.device
        there = x.to(device)
        both = x.to(device, torch.float16)
        like = x.to(self.scale)
        named = x.to(dtype=torch.float64)
        typed = x.type(torch.float32)
        same = x.type_as(self.scale)
        half = x.half()
        whole = x.long()
        known = torch.as_tensor(x, dtype=torch.float32)
        cloned = x.detach().clone()
        viewed = x.float().view(torch.int32)
        back = whole.to(x.dtype)
        asked = x.to(torch.get_default_dtype())
    """,
    "reductions": """
        total = x.sum()
        rows = x.sum(dim=-1)
        average = x.mean()
        wide = x.sum(dtype=torch.float32)
        running = x.cumsum(dim=-1)
        product = x.prod(dim=-1)
        counted = (x > 0).sum()
        share = (x > 0).float().mean()
        distance = torch.cdist(x.float(), x.float())
        together = (total + x).sum(-1)
        weighted = x.mean() * x
        edges = torch.bucketize(x.float(), torch.linspace(0, 1, 4))
        histogram = torch.histc(x.float(), bins=4)
        tally = torch.bincount(torch.arange(4))
        spread = x.float().var(unbiased=False)
        truth = (x > 0).all()
        largest = torch.clamp(x, min=0.0, max=1.0)
        powers = x ** 2
        roots = torch.sqrt(x.abs())
        logs = torch.log(x.abs() + 1e-6)
        e = x.exp()
    """,
    "arithmetic": """
        steps = torch.arange(4)
        halves = steps / 2
        floored = steps // 2
        products = x * 0.5 + 1
        powers = 2 ** steps
        scaled = x * torch.tensor(0.5)
        promoted = x + torch.zeros(8)
        narrow = x.half() + x.bfloat16()
        remainder = steps % 2
        truncated = torch.div(steps, 2, rounding_mode="floor")
        negative = -x
        absolute = abs(x)
        mixed = steps * 0.5
        fused = torch.addcmul(x, x, x, value=0.5)
        blended = torch.lerp(x, x, 0.5)
        root = steps.sqrt()
        angle = torch.atan2(x, x)
        signs = torch.sign(x)
        whole = x.round()
        inverse = torch.reciprocal(x)
    """,
    "products": """
        linear = F.linear(x, self.proj.weight, self.proj.bias)
        projected = self.proj(x)
        squares = torch.bmm(x, x.transpose(1, 2))
        summed = torch.einsum("bij,bkj->bik", x, x)
        operator = x @ self.proj.weight
        attended = F.scaled_dot_product_attention(x, x, x)
        inner = (x[0, 0] * x[0, 1]).sum()
        outer = torch.outer(x[0, 0], x[0, 1])
        added = torch.baddbmm(squares, x, x.transpose(1, 2))
        convolved = F.conv1d(x.transpose(1, 2), self.proj.weight[:, :, None])
        chained = torch.linalg.multi_dot([x[0], self.proj.weight, self.proj.weight])
        residual = x + self.proj(x)
        activated = F.gelu(self.proj(x))
        gated = F.silu(self.proj(x)) * x
        product = torch.mul(x, self.scale)
    """,
    "images": """
        image = x.reshape(1, 1, 8, 8)
        bigger = F.interpolate(image, scale_factor=2.0, mode="bilinear")
        nearest = F.interpolate(image, size=(4, 4), mode="nearest")
        pooled = F.adaptive_avg_pool2d(image, 1)
        most = F.max_pool2d(image, 2)
        averaged = F.avg_pool2d(image, 2)
        grid = F.affine_grid(torch.eye(2, 3, device=x.device)[None], (1, 1, 4, 4), align_corners=False)
        sampled = F.grid_sample(image.float(), grid, align_corners=False)
        unfolded = F.unfold(image, 2)
        shuffled = F.pixel_unshuffle(image, 2)
        dropped = F.dropout(image, 0.1, self.training)
        rectified = F.relu(image)
        mirrored = F.pad(image, (1, 1, 1, 1), mode="constant")
    """,
    "losses": """
        targets = torch.zeros(2, 4, dtype=torch.long)
        entropy = F.cross_entropy(x.transpose(1, 2), targets)
        squared = F.mse_loss(x, torch.zeros_like(x))
        with_logits = F.binary_cross_entropy_with_logits(x, torch.rand_like(x))
        divergence = F.kl_div(F.log_softmax(x, -1), F.softmax(x, -1), reduction="batchmean")
        absolute = F.l1_loss(x, torch.zeros_like(x), reduction="none")
        smooth = F.smooth_l1_loss(x, torch.zeros_like(x))
        likeness = F.cosine_similarity(x, x, dim=-1)
        nll = F.nll_loss(F.log_softmax(x, -1).transpose(1, 2), targets)
        total = entropy + 0.1 * squared
    """,
    "sampling": """
        probabilities = F.softmax(x[:, 0].float(), dim=-1)
        drawn = torch.multinomial(probabilities, 1)
        coin = torch.bernoulli(probabilities)
        hot = F.one_hot(drawn, 8)
        hot_wide = F.one_hot(drawn, 8).to(x.dtype)
        embedded = F.embedding(drawn, self.proj.weight)
        jitter = torch.empty_like(x).uniform_(0.9, 1.1)
        normal = torch.empty(2, 8).normal_()
        uniform = torch.rand(2, 1, 1, dtype=x.dtype)
        kept = x.new_empty(2, 1, 1).bernoulli_(0.5)
        bins = torch.searchsorted(torch.linspace(0, 1, 4), torch.rand(3))
    """,
    "writes": """
        cache = torch.zeros(2, 4, 8, dtype=x.dtype)
        cache[:, :2] = x[:, :2]
        copied = torch.empty_like(x).copy_(x.float())
        filled = torch.empty(3).fill_(1)
        zeroed = x.clone().zero_()
        added = torch.zeros_like(x).add_(x)
        scattered = torch.zeros(2, 8).scatter_(1, torch.zeros(2, 8, dtype=torch.long), 1.0)
        indexed = torch.zeros(4, 8, dtype=x.dtype).index_add_(0, torch.arange(4), x[0])
        summed = torch.zeros(4, 8, dtype=x.dtype).index_add(0, torch.arange(4), x[0])
        shuffled = x.clone().masked_fill_(x > 0, 0.0)
        clamped = x.clone().clamp_(0, 1)
        scaled = x.clone().mul_(2.0)
        divided = x.clone().div_(2)
    """,
    "linear_algebra": """
        square = x.float()[0] @ x.float()[0].T + torch.eye(4) * 10
        with torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False):
            steady = x.float()[0] @ x.float()[0].T + torch.eye(4) * 10
            inverse = torch.linalg.inv(steady)
            lengths = torch.linalg.norm(x, dim=-1)
            whole = torch.linalg.vector_norm(x)
            u, s, vh = torch.linalg.svd(steady)
            values, vectors = torch.linalg.eigh(steady)
            solved = torch.linalg.solve(steady, steady)
            factor = torch.linalg.cholesky(steady)
            determinant = torch.linalg.det(steady)
            q, r = torch.linalg.qr(steady)
            spectrum = torch.fft.rfft(x.float(), dim=-1)
            signal = torch.fft.irfft(spectrum, dim=-1)
            shifted = torch.fft.fftshift(spectrum)
            magnitudes = spectrum.abs()
            phases = torch.angle(spectrum)
            both = torch.fft.fft2(x.float())
            frequencies = torch.fft.fftfreq(4)
            complex_ = torch.complex(x.float(), x.float())
    """,
    "modules": """
        started = nn.init.xavier_uniform_(torch.empty(4, 4))
        constant = nn.init.constant_(torch.empty(4, dtype=x.dtype), 0.5)
        padded = nn.utils.rnn.pad_sequence([x[0], x[1]], batch_first=True)
        vector = nn.utils.parameters_to_vector([self.scale])
        parameter = nn.Parameter(torch.zeros(3))
        activated = nn.GELU()(x)
        dropped = nn.Dropout(0.1)(x)
        kept = nn.Identity()(x)
        normed = nn.LayerNorm(8, dtype=x.dtype, device=x.device)(x)
        flat = nn.Flatten()(x)
        pooled = nn.AvgPool1d(2)(x)
        loss = nn.MSELoss()(x, x)
        entropy = nn.CrossEntropyLoss()(x.transpose(1, 2), torch.zeros(2, 4, dtype=torch.long))
    """,
    "python": """
        number = x.size(0) * 2
        scale = x.size(-1) ** -0.5
        scaled = x * scale
        value = x.sum().item()
        times = x * value
        dims = x.dim()
        counted = torch.tensor(x.shape[0])
        biggest = torch.finfo(x.dtype).max
        clamped = x.clamp(max=biggest)
        floating = torch.is_floating_point(x)
        ratio = torch.tensor(value)
        epsilon = torch.finfo(torch.float32).eps
        shifted = x + epsilon
        listed = torch.tensor([number, 3])
        promoted = torch.zeros(2, dtype=torch.promote_types(x.dtype, torch.float32))
    """,
}

SCENARIOS = ("fp32", "autocast-bf16", "bf16")
HEADER = (
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\nclass Model(nn.Module):" + CONSTRUCTOR
)


def program(family: str) -> tuple[str, list[str]]:
    """The source of a family, whose last line names every variable, and these names."""
    body = textwrap.dedent(FAMILIES[family]).strip()
    names = assigned(body)
    lines = textwrap.indent(body, " " * 8)
    collected = ", ".join(f"{name}={name}" for name in names)
    return f"{HEADER}\n    def forward(self, x: torch.Tensor):\n{lines}\n        return dict({collected})\n", names


def assigned(body: str) -> list[str]:
    """The names that a body assigns to, in order."""
    names: dict[str, None] = {}
    for node in ast.walk(ast.parse(body)):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name in ast.walk(target) if isinstance(target, (ast.Name, ast.Tuple)) else ():
                    if isinstance(name, ast.Name):
                        names.setdefault(name.id)
    return list(names)


def observed(family: str, scenario: str, device: str) -> dict[str, str]:
    """The dtypes of the variables that are tensors, as torch gives them."""
    import torch

    source, _ = program(family)
    found: dict[str, Any] = {}
    exec(compile(source, family, "exec"), found)
    torch.manual_seed(0)
    model, x = found["Model"](), torch.rand(2, 4, 8)
    if scenario == "bf16":
        model, x = model.to(torch.bfloat16), x.to(torch.bfloat16)
    with torch.autocast(device, dtype=torch.bfloat16, enabled=scenario == "autocast-bf16"):
        out = model(x)
    return {name: str(value.dtype)[6:] for name, value in out.items() if isinstance(value, torch.Tensor)}


def main() -> None:
    """Print what torch gives under CUDA's policy, by family and scenario."""
    from amplint.emulation import emulated

    with emulated("cuda"):
        print(json.dumps({f: {s: observed(f, s, "cuda") for s in SCENARIOS} for f in FAMILIES}))


if __name__ == "__main__":
    main()
