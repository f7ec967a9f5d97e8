"""AMP601: what torch itself deprecates, and rewrites that behave as before when both are run."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest
from amplint_rules._legacy_amp import LEGACY
from amplint_rules.amp601_deprecated_amp_api import DeprecatedAmpApi
from amplint_rules.amp602_cuda_only_query import CudaOnlyQuery
from rule_harness import expected_rows, findings, fixed, rows

from amplint.finding import Applicability
from amplint.rule import HEADINGS, Example, documentation

torch = pytest.importorskip("torch")

RULE = DeprecatedAmpApi()


def resolve(name: str) -> Any:
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def run(code: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "case"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        exec(compile(code, "case", "exec"), namespace)
    return namespace


# What torch says


@pytest.mark.parametrize("name", LEGACY)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_torch_deprecates_it(name: str) -> None:
    legacy, function = LEGACY[name], resolve(name)
    argument: Any = True if "set" in name and "enabled" in name else torch.bfloat16
    arguments = [lambda ctx: None] if legacy.is_decorator else [argument] * legacy.positional[0]
    with _autocast_state(), pytest.warns((FutureWarning, DeprecationWarning), match="is deprecated"):
        function(*arguments)


def test_torch_deprecates_nothing_else() -> None:
    """Every public name of the old modules, and every autocast query of torch, that warns is in the table."""
    found = set()
    candidates = {
        *(f"torch.{name}" for name in dir(torch) if "autocast" in name),
        *(
            f"torch.{d}.amp.{name}"
            for d in ("cuda", "cpu")
            for name in dir(resolve(f"torch.{d}.amp"))
            if name[0] != "_"
        ),
    }
    for name in candidates:
        for arguments in ((), (False,), (torch.bfloat16,), (lambda ctx: None,)):
            with warnings.catch_warnings(record=True) as caught, _autocast_state():
                warnings.simplefilter("always")
                try:
                    resolve(name)(*arguments)
                except Exception:
                    continue
                if any(issubclass(w.category, (FutureWarning, DeprecationWarning)) for w in caught):
                    found.add(name)
    assert found == {name for name in LEGACY if "_mode." not in name and "grad_scaler." not in name}


class _autocast_state:
    def __enter__(self) -> None:
        self.before = [
            (d, torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in ("cuda", "cpu", "xla", "ipu")
        ]
        self.cache = torch.is_autocast_cache_enabled()
        self.depth = torch.autocast_increment_nesting()
        torch.autocast_decrement_nesting()

    def __exit__(self, *_: object) -> None:
        for device, enabled, dtype in self.before:
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, dtype)
        torch.set_autocast_cache_enabled(self.cache)
        while torch.autocast_decrement_nesting() >= self.depth:
            pass
        while torch.autocast_increment_nesting() < self.depth:
            pass
        torch.autocast_decrement_nesting()


# Documentation and examples


def test_documentation() -> None:
    text = documentation(RULE)
    assert [heading for heading in HEADINGS if f"\n{heading}\n" in text] == list(HEADINGS)


@pytest.mark.parametrize("example", RULE.bad)
def test_bad_examples(example: Example) -> None:
    assert rows(RULE, example.source) == expected_rows(example.source)
    with pytest.raises((FutureWarning, DeprecationWarning)):
        run(example.source)["reproduce"]()
    after = fixed(RULE, example.source)
    assert rows(RULE, after) == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        run(after)["reproduce"]()


@pytest.mark.parametrize("example", RULE.good)
def test_good_examples(example: Example) -> None:
    major, minor = (example.torch_version or "2.13").split(".")
    assert rows(RULE, example.source, torch_version=(int(major), int(minor))) == []


# Rewrites, run


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
                    _autocast_state(),
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
        with _autocast_state():
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
        ("def f(s: GradScaler): s", "def f(s: torch.amp.GradScaler): s"),
        ("def f() -> GradScaler | None: ...", "def f() -> torch.amp.GradScaler | None: ..."),
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
    with _autocast_state(), warnings.catch_warnings():
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


# Imports


NEW = 'torch.amp.autocast("cuda", dtype=torch.float16)'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from torch.cuda.amp import autocast, GradScaler", "from torch.cuda.amp import GradScaler"),
        ("from torch.cuda.amp import GradScaler, autocast", "from torch.cuda.amp import GradScaler"),
        (
            "from torch.cuda.amp import (\n    autocast,\n    GradScaler,\n)",
            "from torch.cuda.amp import (\n    GradScaler,\n)",
        ),
        (
            "from torch.cuda.amp import (\n    GradScaler,\n    autocast,\n)",
            "from torch.cuda.amp import (\n    GradScaler,\n)",
        ),
        ("import os; from torch.cuda.amp import autocast", "import os; pass"),
        ("from torch.cuda.amp import autocast  # noqa: F401", ""),
        ("if os:\n    from torch.cuda.amp import autocast", "if os:\n    pass"),
        ("from torch.cuda.amp import autocast\nfrom torch.cuda.amp import autocast", ""),
        ("from torch.cuda import amp\nautocast = 1", None),
    ],
)
def test_import_is_cleaned_up(before: str, after: str | None) -> None:
    code = f"import torch\n{before}\n\nwith autocast(): pass\nwith autocast(): pass\n"
    if after is None:
        assert fixed(RULE, code) == code
        return
    kept = f"{after}\n" if after else ""
    assert (
        fixed(RULE, code).replace("x = GradScaler\n", "")
        == f"import torch\n{kept}\nwith {NEW}: pass\nwith {NEW}: pass\n"
    )


def test_several_names_of_one_import() -> None:
    code = "import torch\nfrom torch.cuda.amp import autocast, GradScaler\ns = GradScaler()\nwith autocast(): pass\n"
    assert fixed(RULE, code) == f'import torch\ns = torch.amp.GradScaler("cuda")\nwith {NEW}: pass\n'


def test_module_alias() -> None:
    code = "import torch\nfrom torch.cuda import amp\ns = amp.GradScaler()\nwith amp.autocast(): pass\n"
    assert fixed(RULE, code) == f'import torch\ns = torch.amp.GradScaler("cuda")\nwith {NEW}: pass\n'


def test_module_alias_with_other_uses_stays() -> None:
    code = "import torch\nfrom torch.cuda import amp\nprint(amp.common)\nwith amp.autocast(): pass\n"
    assert fixed(RULE, code) == f"import torch\nfrom torch.cuda import amp\nprint(amp.common)\nwith {NEW}: pass\n"


@pytest.mark.parametrize(
    "use",
    [
        "autocast(*a)",
        "autocast(**k)",
        "f(autocast)",
        "autocast if x else y",
        "autocast(nonsense=1)",
        "autocast(1, 2, 3, 4)",
        "autocast(True, enabled=True)",
        "autocast(x for x in y)",
        "autocast()  # amplint: ignore[AMP601]",
        "f(c=autocast)",
    ],
)
def test_import_stays_for_what_has_no_fix(use: str) -> None:
    code = f"import torch\nfrom torch.cuda.amp import autocast\nz = {use}\nwith autocast(): pass\n"
    assert rows(RULE, code) == [3, 4]
    expected = code.replace("with autocast()", f"with {NEW}")
    assert fixed(RULE, code).replace(f"z = {NEW}  # amp", "z = autocast()  # amp") == expected


@pytest.mark.parametrize("use", ["@autocast\ndef f(): pass", "with autocast: pass", "class A(autocast): pass"])
def test_no_fix(use: str) -> None:
    found = findings(RULE, f"from torch.cuda.amp import autocast\n{use}\n")
    assert [(f.span.start.row, f.fix) for f in found] == [(2, None)]


def test_every_fix_stands_alone() -> None:
    """An editor applies one fix: the file must still run."""
    code = "from torch.cuda.amp import autocast\na = autocast()\nb = autocast(False)\n"
    first, second = findings(RULE, code)
    assert first.fix is not None
    assert second.fix is not None
    assert first.fix.edits == second.fix.edits


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ('import torch\nfrom torch.cuda.amp import autocast\n__all__ = ["autocast"]\n', "/project/module.py"),
        ("import torch\nfrom torch.cuda.amp import autocast\n", "/project/__init__.py"),
        ('import torch\nfrom torch.cuda.amp import autocast\ndef f(c: "list[autocast]"): ...\n', "/project/module.py"),
    ],
)
def test_reexport(code: str, path: str) -> None:
    assert rows(RULE, code, path=path) == [2]
    assert fixed(RULE, code, path=path) == code
    used = f"{code}with autocast(): pass\n"
    assert rows(RULE, used, path=path) == [2, used.count("\n")]
    assert fixed(RULE, used, path=path) == f"{code}with {NEW}: pass\n"


def test_unused_import_is_reported_where_it_stands() -> None:
    (finding,) = findings(RULE, "from torch.cuda.amp import GradScaler, autocast as ac\nGradScaler()\n")[:1]
    assert (finding.span.start.column, finding.span.end.column) == (40, 54)
    assert finding.fix is None


def test_torch_of_a_function() -> None:
    code = "def f():\n    import torch\n    return torch.cuda.amp.autocast()\n"
    assert fixed(RULE, code) == f"def f():\n    import torch\n    return {NEW}\n"


def test_docstring_future_and_crlf() -> None:
    code = '"""Doc."""\r\nfrom __future__ import annotations\r\nfrom torch.cuda.amp import autocast\r\nautocast()\r\n'
    after = f'"""Doc."""\r\nfrom __future__ import annotations\r\nimport torch\r\n{NEW}\r\n'
    assert fixed(RULE, code) == after


def test_nested_uses() -> None:
    code = (
        "import torch\nif x.is_cuda:\n    torch.cuda.amp.autocast(torch.is_autocast_cpu_enabled(), "
        "torch.get_autocast_gpu_dtype())\n"
    )
    assert fixed(RULE, code) == (
        'import torch\nif x.is_cuda:\n    torch.amp.autocast("cuda", enabled=torch.is_autocast_enabled("cpu"), '
        'dtype=torch.get_autocast_dtype("cuda"))\n'
    )


# Silence and safety


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    from torch.amp import autocast as a\nexcept E:\n    from torch.cuda.amp import autocast as a\na()",
        "try:\n    s = torch.amp.GradScaler('cuda')\nexcept AttributeError:\n    s = torch.cuda.amp.GradScaler()",
        "s = torch.cuda.amp.GradScaler() if TORCH_VERSION < (2, 4) else torch.amp.GradScaler()",
        "def f():\n    if version.parse(torch.__version__) >= V:\n        return 1\n    torch.cuda.amp.custom_fwd",
        "def f():\n    if compare_version('torch', operator.ge, V):\n        return 1\n    torch.cuda.amp.custom_fwd",
        "if hasattr(torch.amp, 'custom_fwd'):\n    pass\nelse:\n    f = torch.cuda.amp.custom_fwd(g)",
        "if torch_ge_24:\n    pass\nelse:\n    from torch.cuda.amp import custom_fwd\n    f = custom_fwd(g)",
        "torch.cuda.amp.autocast = None",
        "from torch.amp import autocast\nautocast('cuda')",
        "torch.is_autocast_enabled('cpu')",
    ],
)
def test_silent(code: str) -> None:
    assert rows(RULE, f"import torch\n{code}\n") == []


@pytest.mark.parametrize("code", ["torch.cuda.is_available()", "conversion", "config.use_amp", "hasattr(self, 'x')"])
def test_not_a_version_guard(code: str) -> None:
    assert rows(RULE, f"import torch\nif {code}:\n    torch.cuda.amp.autocast()\n") == [3]


def test_older_torch() -> None:
    assert rows(RULE, "import torch\ntorch.cuda.amp.autocast()\n", torch_version=(2, 3)) == []


@pytest.mark.parametrize(
    ("code", "row"),
    [
        ("s = torch.cuda.amp.GradScaler()\nassert isinstance(s, torch.cuda.amp.GradScaler)\n", 2),
        ("c = functools.partial(torch.cuda.amp.autocast, dtype=d)\n", 2),
        ("x = torch.is_autocast_cpu_enabled()\n@torch.jit.script\ndef f(x): return x\n", 2),
    ],
)
def test_unsafe(code: str, row: int) -> None:
    found = [finding for finding in findings(RULE, f"import torch\n{code}") if finding.span.start.row == row]
    assert [finding.fix and finding.fix.applicability for finding in found] == [Applicability.UNSAFE]


def test_amp602_speaks_for_the_cuda_only_query() -> None:
    code = "import torch\ndef f(x):\n    return x.to(torch.get_autocast_gpu_dtype())\n"
    assert rows(RULE, code) == []
    assert rows(CudaOnlyQuery(), code) == [3]


@pytest.mark.parametrize("quotes", ['"', '"""\n'])
def test_no_fix_in_an_f_string(quotes: str) -> None:
    """Before Python 3.12 its quotes would end there."""
    code = f"import torch\nx = f{quotes}é {{torch.get_autocast_cpu_dtype()}}{quotes.strip()}\n"
    assert [finding.fix for finding in findings(RULE, code)] == [None]


def test_one_finding_a_use() -> None:
    code = "import torch.cuda.amp as amp\n@amp.autocast()\ndef f(): amp.GradScaler(); amp.GradScaler()\n"
    assert rows(RULE, code) == [2, 3, 3]
    assert {finding.severity.value for finding in findings(RULE, code)} == {"warning"}
