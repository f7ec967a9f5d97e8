"""AMP601's rewrites behave as before when both are run: contexts, scalers, decorators, queries."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest
from amplint_rules.amp601_deprecated_amp_api import DeprecatedAmpApi
from rule_harness import fixed, rows

pytest.importorskip("torch")

import torch
from legacy_runs import autocast_state, run

RULE = DeprecatedAmpApi()


def attributes(context: Any) -> tuple[object, ...]:
    return (context.device, context.fast_dtype, context._enabled, context._cache_enabled)


PARAMETERS = {
    "enabled": ("True", "False", "flag"),
    "dtype": ("torch.bfloat16", "None", "dt"),
    "cache_enabled": ("False",),
}
POSITIONAL = [", ".join(values[:n]) for values in itertools.product(*PARAMETERS.values()) for n in range(4)]
KEYWORDS = [
    ", ".join(f"{name}={values[0]}" for name, values in chosen)
    for n in range(4)
    for chosen in itertools.permutations(PARAMETERS.items(), n)
]
MIXED = [
    "True, dtype=dt",
    "flag, cache_enabled=False",
    "(flag), (dt)",
    "( (flag) )",
    "flag,",
    "flag, dt,",
    "not flag, dt",
]
LAYOUTS = ["\n    enabled=flag,\n    dtype=dt,\n", "\n    flag,  # why (\n    dt\n", " ", "  # nothing\n", "\\\n flag"]


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("arguments", sorted({*POSITIONAL, *KEYWORDS, *MIXED, *LAYOUTS}))
def test_autocast_is_the_same_context(device: str, arguments: str) -> None:
    code = f"from torch.{device}.amp import autocast\nimport torch\nflag, dt = True, torch.float16\n"
    code += f"make = lambda: autocast({arguments})\n"
    after = fixed(RULE, code)
    assert rows(RULE, code) == [4]
    assert rows(RULE, after) == []
    assert "cuda.amp" not in after
    assert "cpu.amp" not in after
    for outer in (None, torch.bfloat16, torch.float16):
        for cache in (True, False) if "cache_enabled" in code else (True,):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                old, new = run(code)["make"], run(after)["make"]
                with (
                    torch.autocast("cpu", dtype=outer, enabled=outer is not None, cache_enabled=cache),
                    autocast_state(),
                ):
                    torch.set_autocast_dtype("cuda", outer or torch.float16)
                    assert attributes(old()) == attributes(new())
                    assert state_inside(old()) == state_inside(new())


def state_inside(context: Any) -> tuple[object, ...]:
    with context:
        dtypes = [(torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in ("cuda", "cpu")]
        return (dtypes, torch.is_autocast_cache_enabled(), torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype)


def test_cache_is_written_out_where_the_file_deals_with_it() -> None:
    code = "import torch\na = torch.cpu.amp.autocast()\nb = torch.autocast('cpu', cache_enabled=False)\n"
    assert 'torch.amp.autocast("cpu", dtype=torch.bfloat16, cache_enabled=True)' in fixed(RULE, code)


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "512.0",
        "512.0, 3.0, 0.25, 7, True",
        "growth_interval=9, init_scale=4.0",
        "8.0, enabled=False",
        "**options",
        "*factors",
        "*factors, enabled=True",
        "\n    8.0,\n    enabled=True,\n",
    ],
)
def test_scaler_has_the_same_state(device: str, arguments: str) -> None:
    code = (
        f"from torch.{device}.amp import GradScaler\noptions, factors = dict(init_scale=2.0), (2.0, 4.0)\n"
        f"make = lambda: GradScaler({arguments})\n"
    )
    after = fixed(RULE, code)
    assert "torch.amp.GradScaler(" in after
    assert ".amp import" not in after
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old, new = run(code)["make"](), run(after)["make"]()
    assert old.state_dict() == new.state_dict()
    assert old.is_enabled() == new.is_enabled()
    assert vars(old) == vars(new)


FUNCTION = """\
import torch
from torch.cuda.amp import custom_bwd, custom_fwd


class Scale(torch.autograd.Function):
    @staticmethod
    {forward}
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        ctx.seen = torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda"), x.dtype
        return x * w

    @staticmethod
    {backward}
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        now = torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda"), ctx._fwd_used_autocast
        seen.append((ctx.seen, now))
        return grad * w, grad * x


seen = []


def work():
    x = torch.ones(3, requires_grad=True)
    Scale.apply(x, torch.full((3,), 2.0)).sum().backward()
    return seen, x.grad
"""


@pytest.mark.parametrize(
    ("forward", "after"),
    [
        ("@custom_fwd", '@torch.amp.custom_fwd(device_type="cuda")'),
        ("@custom_fwd()", '@torch.amp.custom_fwd(device_type="cuda")'),
        (
            "@custom_fwd(cast_inputs=torch.float32)",
            '@torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)',
        ),
        ("@custom_fwd(None, cast_inputs=None)", '@torch.amp.custom_fwd(None, device_type="cuda", cast_inputs=None)'),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_function_decorators(forward: str, after: str, dtype: Any) -> None:
    code = FUNCTION.format(forward=forward, backward="@custom_bwd")
    new = fixed(RULE, code)
    assert after in new
    assert '@torch.amp.custom_bwd(device_type="cuda")' in new
    assert "torch.cuda.amp" not in new
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with autocast_state():
            torch.set_autocast_enabled("cuda", True)
            torch.set_autocast_dtype("cuda", dtype)
            (seen, grad), (new_seen, new_grad) = run(code)["work"](), run(new)["work"]()
    assert seen == new_seen
    assert torch.equal(grad, new_grad)


@pytest.mark.parametrize(
    ("use", "after"),
    [
        ("f = custom_fwd(fwd)", 'f = torch.amp.custom_fwd(fwd, device_type="cuda")'),
        ("f = custom_fwd(fwd, )", 'f = torch.amp.custom_fwd(fwd,  device_type="cuda")'),
        ("f = custom_fwd((fwd))", 'f = torch.amp.custom_fwd((fwd), device_type="cuda")'),
        ("f = custom_fwd(fwd=fwd)", 'f = torch.amp.custom_fwd(device_type="cuda", fwd=fwd)'),
        ("f = custom_bwd(bwd=fwd)", 'f = torch.amp.custom_bwd(device_type="cuda", bwd=fwd)'),
        (
            "f = partial(custom_fwd, cast_inputs=d)",
            'f = partial(torch.amp.custom_fwd, device_type="cuda", cast_inputs=d)',
        ),
        (
            "c = functools.partial(autocast, enabled=False)",
            'c = functools.partial(torch.amp.autocast, "cuda", dtype=torch.float16, enabled=False)',
        ),
        (
            "c = partial(autocast, dtype=d, enabled=False)",
            'c = partial(torch.amp.autocast, "cuda", dtype=d, enabled=False)',
        ),
        ("s = partial(GradScaler, 2.0)", 's = partial(torch.amp.GradScaler, "cuda", 2.0)'),
        (
            "def f(s: GradScaler): return s or GradScaler()",
            'def f(s: torch.amp.GradScaler): return s or torch.amp.GradScaler("cuda")',
        ),
        (
            "def f() -> GradScaler | None: return GradScaler()",
            'def f() -> torch.amp.GradScaler | None: return torch.amp.GradScaler("cuda")',
        ),
    ],
)
def test_other_forms(use: str, after: str) -> None:
    head = "import functools\nimport torch\nfrom functools import partial\n"
    names = ["autocast", "GradScaler", "custom_fwd", "custom_bwd"]
    name = next(name for name in names if name in use)
    assert fixed(RULE, f"{head}from torch.cuda.amp import {name}\n{use}\n") == f"{head}{after}\n"


@pytest.mark.parametrize(
    ("use", "after"),
    [
        ("torch.is_autocast_cpu_enabled()", 'torch.is_autocast_enabled("cpu")'),
        ("torch.get_autocast_gpu_dtype()", 'torch.get_autocast_dtype("cuda")'),
        ("torch.get_autocast_cpu_dtype()", 'torch.get_autocast_dtype("cpu")'),
        ("torch.get_autocast_xla_dtype()", 'torch.get_autocast_dtype("xla")'),
        ("torch.set_autocast_gpu_dtype(d)", 'torch.set_autocast_dtype("cuda", d)'),
        ("torch.set_autocast_cpu_dtype((d))", 'torch.set_autocast_dtype("cpu", (d))'),
        ("torch.set_autocast_cpu_enabled(False)", 'torch.set_autocast_enabled("cpu", False)'),
    ],
)
def test_queries(use: str, after: str) -> None:
    code = f"import torch\nd = torch.bfloat16\nif torch.ones(1).is_cuda or True:\n    x = {use}\n"
    assert fixed(RULE, code) == code.replace(use, after)
    with autocast_state(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.set_autocast_dtype("cuda", torch.bfloat16)
        assert run(code)["x"] == run(code.replace(use, after))["x"]


# TorchFix's four wrong rewrites


@pytest.mark.parametrize(
    ("code", "after"),
    [
        (
            "from torch.cuda.amp import autocast\n\nc = autocast()\n",
            'import torch\n\nc = torch.amp.autocast("cuda", dtype=torch.float16)\n',
        ),
        (
            "import torch as t\nc = t.cuda.amp.autocast()\n",
            'import torch as t\nc = t.amp.autocast("cuda", dtype=t.float16)\n',
        ),
        (
            "import torch.cuda.amp as amp\nc = amp.autocast()\n",
            'import torch\nc = torch.amp.autocast("cuda", dtype=torch.float16)\n',
        ),
        (
            "import torch\nd = torch.bfloat16\nc = torch.cuda.amp.autocast(False, d)\n",
            'import torch\nd = torch.bfloat16\nc = torch.amp.autocast("cuda", enabled=False, dtype=d)\n',
        ),
    ],
)
def test_what_torchfix_breaks(code: str, after: str) -> None:
    assert fixed(RULE, code) == after
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert attributes(run(code)["c"]) == attributes(run(after)["c"])
