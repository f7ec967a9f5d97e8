"""AMP302: epsilons that guard nothing, or nothing that is near zero, are possible only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from amplint.engine import Options, check_file
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP302")
OPTIONS = Options(RULES, DEFAULT_SCENARIOS, "cuda", (2, 13))
MODULE = """\
import torch
import torch.nn.functional as F
from torch import nn

ACTIVATIONS = {{"relu": nn.ReLU(), "softplus": nn.Softplus()}}


def scaled(y, by=2):
    return y * 2


class Snake(nn.Module):
    def __init__(self, dim, logscale=True):
        super().__init__()
        self.beta = nn.Parameter(torch.zeros(dim))
        self.scale = nn.Parameter(torch.ones(dim))
        self.register_buffer("window", torch.hann_window(dim))
        self.filter = nn.Buffer(torch.ones(dim))
        self.register_buffer("seen", torch.ones(dim))
        self.register_buffer("count", torch.zeros(dim))
        self.router = nn.Linear(dim, dim)
        self.logscale = logscale
        self.activation = ACTIVATIONS[dim]
        self.relu = ACTIVATIONS["relu"]

    def moments(self, x):
        self.seen.mul_(0.9)
        return x.mean(-1, keepdim=True), torch.sqrt(x.var(-1, keepdim=True))

    def forward(self, x: torch.Tensor):
        x = self.router(x)
{body}


def make():
    return Snake({arguments})
"""


def check(*lines: str, arguments: str = "4", module: str = MODULE) -> tuple[int, int]:
    """How many findings by default, and with what is possible."""
    body = "".join(f"        {line}\n" for line in lines).rstrip()
    source = Source(Path("/project/snake.py"), module.format(body=body, arguments=arguments).encode())
    results = [check_file(source, replace(OPTIONS, pedantic=pedantic)) for pedantic in (False, True)]
    assert not any(result.failures for result in results)
    return len(results[0].findings), len(results[1].findings)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("p = x.softmax(-1)[0].clamp_min(1e-8)", "y = x", "y *= p", "return y"), 0),
        (("p = x + 1e-8", "y = x * p * 2", "return y"), 0),
        (("p = x + 1e-8", "y = x * p", "return y / p"), 1),
        (("p = x + 1e-8", "return p"), 1),
        (("p = x + 1e-8", "return (x * p).log()"), 1),
        (("p = x + 1e-8", "y = x", "y /= p", "return y"), 1),
    ],
)
def test_a_factor_that_is_kept_in_a_variable(lines: tuple[str, ...], found: int) -> None:
    assert check(*lines) == (found, 1)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("p = x.relu() + 1e-8", "return x, torch.zeros_like(p), p.topk(2, dim=-1).indices"), 0),
        (("p = x.new_zeros(x.shape)", "p[:2] = x.relu() + 1e-8", "return p.shape, p.argmax(-1)"), 0),
        (("p = x.relu() + 1e-8", "return p.topk(2, dim=-1).values"), 1),
        (("p = x.relu() + 1e-8", "best, index = p.topk(2, dim=-1)", "return x / best"), 1),
        (("p = x.relu() + 1e-8", "return p.argmax(-1), x / p"), 1),
    ],
)
def test_what_only_decides_a_choice(lines: tuple[str, ...], found: int) -> None:
    assert check(*lines) == (found, 1)


ADDED = (
    "scores = x.sigmoid().to(x.dtype).transpose(0, 1)",
    "index = scores.topk(2, dim=-1).indices",
    "best = scores.gather(-1, index).reshape(-1)",
    "places = index.reshape(-1)",
    "sums = torch.zeros(len(x), device=x.device, dtype=best.dtype)",
    "sums.scatter_add_(0, places, best)",
)


@pytest.mark.parametrize(
    ("changed", "new", "found"),
    [
        (0, ADDED[0], 0),
        (5, "sums.index_add_(0, places, best)", 0),
        (0, "scores = x.relu().transpose(0, 1)", 1),
        (5, "sums.scatter_add_(0, index[0], best)", 1),
        (2, "best = x.relu().reshape(-1)", 1),
    ],
)
def test_picked_shares_that_are_added_up(changed: int, new: str, found: int) -> None:
    lines = [new if place == changed else line for place, line in enumerate(ADDED)]
    assert check(*lines, "return best / (sums[places] + 1e-9)") == (found, 1)


SMOOTHED = "p = F.conv1d((x.relu() + 1e-6) * 100, weights)"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("weights = x.exp()", SMOOTHED, "p = p.log()[0]"), 1),
        (("weights = x.exp()[None]", f"{SMOOTHED}[0]"), 0),
        (("weights = x.exp()", SMOOTHED.replace("* 100", "* 1e-6")), 1),
        (("weights = x.exp()", SMOOTHED.replace("1e-6", "1e-9")), 1),
        (("weights = x.exp()", SMOOTHED.replace("1e-6", "1")), 1),
        (("weights = x", SMOOTHED), 1),
    ],
)
def test_an_epsilon_that_was_added_before(lines: tuple[str, ...], found: int) -> None:
    assert check(*lines, "return x / (p + 1e-9)")[0] == found


@pytest.mark.parametrize(
    ("of", "found"),
    [
        ("torch.sum(x ** 2)", 0),
        ("x.abs().sum() + (x * x).sum()", 0),
        ("x.pow(2).sum() + x.sum()", 1),
        ("torch.sum(x ** 2, -1)", 1),
        ("x.square().sum(dim=-1)", 1),
        ("torch.sum(x.relu())", 1),
    ],
)
def test_the_sum_of_all_squares(of: str, found: int) -> None:
    assert check(f"return x / ({of} + 1e-9)") == (found, 1)


OF_AN_OPTION = "beta = self.beta if not self.logscale else torch.exp(self.beta)"
TURNED = "beta = torch.exp(self.beta) if not self.logscale else self.beta"


@pytest.mark.parametrize(
    ("line", "arguments", "found"),
    [
        (OF_AN_OPTION, "4", 0),
        (OF_AN_OPTION, "4, False", 1),
        (OF_AN_OPTION, "4, logscale=False", 1),
        (TURNED, "4", 1),
        ("beta = self.beta if not self.logscale else self.beta.abs()", "4", 1),
        ("beta = self.beta if not self.training else torch.exp(self.beta)", "4", 1),
    ],
)
def test_an_exponential_by_the_default_of_an_option(line: str, arguments: str, found: int) -> None:
    assert check(line, "return x / (beta + 1e-9)", arguments=arguments) == (found, 1)


SCORES = "scores = torch.sigmoid(x) if self.logscale else torch.softmax(x, -1)"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ((SCORES, "best = torch.gather(scores, -1, scores.topk(2).indices)"), 0),
        ((SCORES, "best = scores.gather(-1, scores.topk(2).indices)"), 0),
        ((SCORES, "best, index = torch.topk(scores, k=2, dim=-1)"), 0),
        ((SCORES, "best, index = torch.topk(x, k=2, dim=-1)"), 1),
        (("best = torch.gather(x, -1, x.topk(2).indices)",), 1),
        ((SCORES.replace("torch.sigmoid(x)", "x"), "best = torch.gather(scores, -1, scores.topk(2).indices)"), 1),
        (("scores = self.activation(x)", "best = scores.gather(-1, scores.topk(2).indices)"), 0),
        (("scores = self.relu(x)", "best = scores.gather(-1, scores.topk(2).indices)"), 1),
    ],
)
def test_a_sum_of_picked_shares(lines: tuple[str, ...], found: int) -> None:
    assert check(*lines, "return best / (best.sum(-1, keepdim=True) + 1e-9)") == (found, 1)


HELPER = """\
import torch
from torch import nn


def log(t, eps=1e-12):
    return torch.log(t.clamp(min=eps))


class Loss(nn.Module):
    def forward(self, batch):
        return {call}
"""


@pytest.mark.parametrize(("call", "found"), [("log(batch['shares'])", 1), ("batch['shares']", 0)])
def test_a_helper_of_a_module_runs_in_its_scenario(call: str, found: int) -> None:
    result = check_file(Source(Path("/project/loss.py"), HELPER.format(call=call).encode()), OPTIONS)
    assert not result.failures
    assert [finding.span.start.row for finding in result.findings] == [6] * found


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("scale = self.scale.data", "return x / (scale + 1e-9)"), 0),
        (("scale = self.scale[None].expand(2, -1)", "return x / (scale * 2 + 1e-9)"), 0),
        (("return x / F.normalize(self.scale, eps=1e-9)",), 0),
        (("return x / (self.window.square().sum() + 1e-9)",), 0),
        (("return x / (self.filter.square().sum() + 1e-9)",), 0),
        (("window = torch.hann_window(8).to(x.dtype)", "return x / scaled(window, window).clamp(min=1e-9)"), 0),
        (("window = torch.hann_window(8).to(x.dtype)", "return x / scaled(window, x).clamp(min=1e-9)"), 1),
        (("return x / (self.seen + 1e-9)",), 1),
        (("return x / (self.count + 1e-9)",), 1),
        (("return x / (self.beta + 1e-9)",), 1),
        (("beta = self.beta.unsqueeze(0)", "beta = torch.exp(beta)", "return x / (beta + 1e-9)"), 0),
        (("return x / (self.scale - self.beta + 1e-9)",), 1),
        (("return x / (self.scale * x + 1e-9)",), 1),
    ],
)
def test_what_is_learned_or_kept_is_not_zero(lines: tuple[str, ...], found: int) -> None:
    assert check(*lines) == (found, 1)


@pytest.mark.parametrize(("line", "found"), [("return scaled(x, self.scale)", 0), ("return scaled(x, x)", 1)])
def test_what_is_learned_and_passed_to_a_function(line: str, found: int) -> None:
    assert check(line, module=MODULE.replace("return y * 2", "return y / (by + 1e-9)")) == (found, 1)


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("if size > 0.9:", 0),
        ("if x.numel() and size >= bound:", 0),
        ("if not size < bound:", 0),
        ("if size > 0:", 1),
        ("if size < 0.9:", 1),
        ("if self.training:", 1),
    ],
)
def test_a_number_that_a_test_lets_through(test: str, found: int) -> None:
    lines = ("size, bound = x.norm(), 0.9", "size = size * 1", test, "    x = x / (size + 1e-9)", "return x")
    assert check(*lines) == (found, 1)


UNLOWERED = MODULE.replace("x = self.router(x)\n", "x = x * 2\n")


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("return torch.sqrt(x + 1e-9)",), 0),
        (("std = x.var(-1).clamp(min=1e-9).sqrt()", "return torch.cat([x, std.unsqueeze(1)], dim=1)"), 0),
        (("std = torch.sqrt(x.var(-1, keepdim=True) + 1e-9).float()", "return x / std"), 1),
        (("std = torch.sqrt(x + 1e-9)", "return std.log()"), 1),
        (("std = torch.sqrt(x + 1e-9)", "return torch.log(std.clamp(min=1e-5))"), 0),
        (("std = torch.sqrt(x + 1e-9)", "return scaled(std)"), 1),
        (("return torch.atan2(x, x + 1e-9)",), 0),
        (("return x / (torch.sqrt(x[..., 0] ** 2 + x[..., 1] ** 2) + 1e-9)",), 0),
        (("return x / (torch.sqrt(x[..., 0] ** 2 + x[..., 2] ** 2) + 1e-9)",), 1),
    ],
)
def test_a_root_that_nothing_divides_by(lines: tuple[str, ...], found: int) -> None:
    assert check(*lines, module=UNLOWERED) == (found, 1)


@pytest.mark.parametrize(("line", "found"), [("return (x - mean) / 2, std", 0), ("return (x - mean) / std", 1)])
def test_a_root_that_a_method_returns(line: str, found: int) -> None:
    module = UNLOWERED.replace("keepdim=True))", "keepdim=True) + 1e-9)")
    assert check("mean, std = self.moments(x)", line, module=module) == (found, 1)


def test_under_autocast_the_gradient_of_a_root_counts() -> None:
    assert check("return torch.sqrt(x + 1e-9)") == (1, 1)


@pytest.mark.parametrize(
    ("signature", "given", "found"),
    [
        ("samples, device='cpu'", "device", 0),
        ("samples, device='cpu'", "device=device", 0),
        ("samples, device='cpu'", "samples.device", 1),
        ("samples, device='cuda'", "device", 1),
        ("samples, device", "device", 1),
    ],
)
def test_what_lies_on_the_host_unless_a_caller_names_a_device(signature: str, given: str, found: int) -> None:
    text = f"""\
import torch


class Features:
    def log_mel(self, {signature}):
        filters = torch.from_numpy(self.filters).to({given})
        mel = filters.T @ samples
        return mel.clamp(min=1e-10).log10()
"""
    source = Source(Path("/project/features.py"), text.encode())
    results = [check_file(source, replace(OPTIONS, pedantic=pedantic)) for pedantic in (False, True)]
    assert [len(result.findings) for result in results] == [found, 1]


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("torch.rand(8, 4)", 0),
        ("0.1 * torch.rand(8, 4).to(torch.float32)", 0),
        ("torch.rand(8, 4, device=samples.device)", 1),
        ("torch.rand(8, 4).to(samples)", 1),
        ("torch.rand(8, 4).type_as(samples)", 1),
        ("samples.new_ones(8, 4)", 1),
    ],
)
def test_what_is_made_on_no_device(made: str, found: int) -> None:
    text = f"""\
import torch


def separate(samples, weights):
    shares = {made}
    for _ in range(100):
        ratio = samples / (torch.matmul(weights, shares) + 1e-20)
        shares = shares * torch.matmul(weights.t(), ratio)
    return shares
"""
    source = Source(Path("/project/nmf.py"), text.encode())
    results = [check_file(source, replace(OPTIONS, pedantic=pedantic)) for pedantic in (False, True)]
    assert [len(result.findings) for result in results] == [found, 1]


FILLED = "y = x.masked_fill(mask, 1e30)"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ((FILLED, "return x / (x.amax(1) + 1e-8)"), 0),
        ((FILLED, "if len(x) > 1:", "    return x / (x.amax(1) + 1e-8)"), 0),
        (("return x / (x.amax(1) + 1e-8), x.masked_fill(mask, 1e30)",), 1),
        (("y = x / (x.amax(1) + 1e-8)", f"return {FILLED[4:]}"), 1),
        (("if len(x) > 1:", f"    {FILLED}", "return x / (x.amax(1) + 1e-8)"), 1),
        ((FILLED.replace("1e30", "1e4"), "return x / (x.amax(1) + 1e-8)"), 1),
        ((FILLED.replace("1e30", "torch.inf"), "return x / (x.amax(1) + 1e-8)"), 1),
        ((FILLED.replace("x.", "x.float()."), "return x / (x.amax(1) + 1e-8)"), 1),
    ],
)
def test_behind_a_constant_that_raises(lines: tuple[str, ...], found: int) -> None:
    body = "".join(f"        {line}\n" for line in lines)
    text = "import torch\nfrom torch import nn\n\n\nclass Range(nn.Module):\n"
    text += f"    def forward(self, x: torch.Tensor, mask: torch.BoolTensor):\n{body}"
    source = Source(Path("/project/range.py"), text.encode())
    results = [check_file(source, replace(OPTIONS, pedantic=pedantic)) for pedantic in (False, True)]
    assert [len(result.findings) for result in results] == [found, 1]


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("F.normalize(x, eps=1e-12)", 0),
        ("F.normalize(x, eps=1e-8)", 1),
        ("F.cosine_similarity(x, x, eps=1e-8)", 0),
        ("F.cosine_similarity(x, x, eps=1e-12)", 1),
    ],
)
def test_the_epsilon_that_torch_takes_by_default(call: str, found: int) -> None:
    body = f"    def forward(self, x: torch.Tensor):\n        return {call}\n"
    text = f"import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\nclass Norm(nn.Module):\n{body}"
    source = Source(Path("/project/norm.py"), text.encode())
    results = [check_file(source, replace(OPTIONS, pedantic=pedantic)) for pedantic in (False, True)]
    assert [len(result.findings) for result in results] == [found, 1]


TRAINER = """\
import torch
from loops import Trainer


class Distiller(Trainer):
    def {method}(self, model, p: torch.Tensor):
        return self.entropy(p)

    def entropy(self, p: torch.Tensor):
        return (p.half() + 1e-9).log()
"""


@pytest.mark.parametrize(("method", "found"), [("compute_loss", 0), ("training_step", 0), ("forward", 1)])
def test_trainers_do_not_run_in_half(method: str, found: int) -> None:
    source = Source(Path("/project/trainer.py"), TRAINER.format(method=method).encode())
    options = replace(OPTIONS, scenarios=tuple(s for s in DEFAULT_SCENARIOS if s.name == "fp16"))
    results = [check_file(source, replace(options, pedantic=pedantic)) for pedantic in (False, True)]
    assert [len(result.findings) for result in results] == [found, 1]


RENAMED = """\
import torch as name
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x):
        p = self.proj(x)
        return p / (name.sum({summed}) + 1e-12)
"""


@pytest.mark.parametrize(("summed", "found"), [("p ** 2", 0), ("p.softmax(-1), -1", 0), ("p, -1", 1)])
def test_torch_under_another_name_is_torch(summed: str, found: int) -> None:
    code = RENAMED.format(summed=summed)
    result = check_file(Source(Path("/project/scaled.py"), code.encode()), OPTIONS)
    assert not result.failures
    assert len(result.findings) == found
