"""AMP602: queries that ask CUDA's autocast alone, when they are a hazard and how they are put right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from amplint_rules.amp601_deprecated_amp_api import DeprecatedAmpApi
from amplint_rules.amp602_cuda_only_query import CudaOnlyQuery
from conftest import amplint
from rule_examples import bad, good
from rule_harness import expected_rows, findings, fixed, rows

from amplint.finding import Applicability
from amplint.rule_base import HEADINGS, Example, documentation

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")

RULE = CudaOnlyQuery()
BOTH = [DeprecatedAmpApi(), RULE]


def run(code: str) -> None:
    namespace: dict[str, object] = {}
    exec(compile(code, "case", "exec"), namespace)
    namespace["reproduce"]()  # type: ignore[operator]


def test_documentation() -> None:
    text = documentation(RULE)
    assert [heading for heading in HEADINGS if f"\n{heading}\n" in text] == list(HEADINGS)


@pytest.mark.parametrize("example", [case.example for case in bad(RULE)])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_bad_examples(example: Example) -> None:
    found = findings(RULE, example.source)
    places = [row for f in found for row in (f.span.start.row, *(place.span.start.row for place in f.also))]
    assert sorted(places) == expected_rows(example.source)
    with pytest.raises(RuntimeError, match="dtype"):
        run(example.source)
    after = fixed(RULE, example.source, unsafe=True)
    assert rows(BOTH, after) == []
    run(after)
    assert fixed(RULE, example.source) == example.source


@pytest.mark.parametrize("example", [case.example for case in good(RULE)])
def test_good_examples(example: Example) -> None:
    assert rows(RULE, example.source) == []


def test_torch_asks_cuda_alone() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not torch.is_autocast_enabled()
        assert torch.is_autocast_enabled("cpu")
        assert torch.get_autocast_dtype("cuda") is torch.float16


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        ("torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else x.dtype", [(5, 79)]),
        ("torch.is_autocast_enabled() and torch.get_autocast_gpu_dtype() == d", [(5, 72)]),
        ("f(torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else d, 1)", [(7, 75)]),
        ("1 if torch.is_autocast_enabled() else 2", [(10, 37)]),
        ("torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()", [(5, 32), (34, 64)]),
    ],
)
def test_one_finding_where_both_stand_together(expression: str, columns: list[tuple[int, int]]) -> None:
    found = findings(RULE, f"import torch\ny = {expression}\n")
    assert [(f.span.start.column, f.span.end.column) for f in found] == columns


def test_fix_of_both_together() -> None:
    code = (
        "import torch\ndef f(_input: torch.Tensor, w):\n"
        "    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else _input.dtype\n"
    )
    (finding,) = findings(BOTH, code)
    assert finding.code == "AMP602"
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert fixed(BOTH, code, unsafe=True) == (
        "import torch\ndef f(_input: torch.Tensor, w):\n    return torch.get_autocast_dtype(_input.device.type) "
        "if torch.is_autocast_enabled(_input.device.type) else _input.dtype\n"
    )


@pytest.mark.parametrize(
    ("function", "tensor"),
    [
        ("def f(x: torch.Tensor):\n    return {}", "x"),
        ("def f(a: int, x: Tensor):\n    return {}", "x"),
        ("def f(x):\n    y = x.to({})\n    return y.dtype, x.dtype", "x"),
        ("def f(x, y):\n    z = x.size(0), x.device\n    return {} if z else y.dtype", "x"),
        ("def f(self, config, x):\n    return {} or config.dtype or self.dtype or x.dtype", None),
        ("def f(config):\n    return {} or config.dtype", None),
        ("def f(x: Config):\n    return {} or x.dtype", None),
        ("def f(x=None):\n    return {} or x.dtype", None),
        ("def f(x):\n    return {}", None),
        ("def f(x):\n    x.dtype\n    def g():\n        return {}", None),
        ("f = {}", None),
    ],
)
def test_which_tensor(function: str, tensor: str | None) -> None:
    code = "import torch\nfrom torch import Tensor\n" + function.format("torch.is_autocast_enabled()") + "\n"
    (finding,) = findings(RULE, code)
    assert finding.fix is not None
    assert finding.fix.applicability is (Applicability.UNSAFE if tensor else Applicability.DISPLAY)
    assert [edit.content for edit in finding.fix.edits] == [f"{tensor}.device.type" if tensor else "device_type"]


@pytest.mark.parametrize(
    "body",
    [
        "if x.is_cuda:\n        torch.is_autocast_enabled()",
        "if x.device.type == 'cuda' and torch.is_autocast_enabled(): pass",
        "return torch.get_autocast_gpu_dtype() if x.is_cuda else x.dtype",
        "if x.device.type != 'cuda':\n        return x\n    return torch.get_autocast_gpu_dtype()",
        "assert x.is_cuda\n    torch.is_autocast_enabled()",
        "return torch.is_autocast_enabled(), torch.is_autocast_cpu_enabled()",
        "return torch.is_autocast_enabled(), torch.is_autocast_enabled('cpu')",
        "return torch.is_autocast_enabled() or torch.is_autocast_enabled(x.device.type)",
        "return torch.cuda.amp.autocast(dtype=torch.get_autocast_gpu_dtype())",
        "return torch.autocast('cuda', dtype=torch.get_autocast_gpu_dtype())",
        "return torch.amp.autocast(device_type='cuda', enabled=torch.is_autocast_enabled())",
        "before = torch.is_autocast_enabled()\n    torch.set_autocast_enabled(False)",
        "try:\n        torch.is_autocast_enabled(d)\n    except TypeError:\n        torch.is_autocast_enabled()",
        "torch.is_autocast_enabled('cuda')",
        "torch.is_autocast_enabled",
    ],
)
def test_silent(body: str) -> None:
    assert rows(RULE, f"import torch\ndef f(x):\n    {body}\n") == []


@pytest.mark.parametrize(
    "body",
    [
        "if torch.cuda.is_available() and torch.is_autocast_enabled(): pass",
        "if torch.is_autocast_enabled(): torch.get_autocast_dtype('cuda')",
        "torch.autocast(x.device.type, enabled=torch.is_autocast_enabled())",
        "if hasattr(self.config, 'dtype'): torch.is_autocast_enabled()",
        "try:\n        torch.get_autocast_gpu_dtype()\n    except AttributeError:\n        pass",
    ],
)
def test_not_silent(body: str) -> None:
    assert len(rows(RULE, f"import torch\ndef f(x):\n    {body}\n")) == 1


def test_amp601_speaks_where_this_is_silent() -> None:
    code = "import torch\ndef f(x):\n    if x.is_cuda:\n        return torch.get_autocast_gpu_dtype()\n"
    assert [finding.code for finding in findings(BOTH, code)] == ["AMP601"]


def test_imported_by_name() -> None:
    code = (
        "from torch import Tensor, get_autocast_gpu_dtype, is_autocast_enabled\ndef f(x: Tensor):\n"
        "    return get_autocast_gpu_dtype() if is_autocast_enabled() else x.dtype\n"
    )
    after = fixed(RULE, code, unsafe=True)
    assert "torch.get_autocast_dtype(x.device.type) if is_autocast_enabled(x.device.type)" in after
    assert "import torch\n" in after


@pytest.mark.parametrize("quotes", ["'", "'''\n"])
def test_in_an_f_string(quotes: str) -> None:
    code = f"import torch\ndef f(x):\n    return x.dtype, f{quotes}é {{torch.is_autocast_enabled()}}{quotes.strip()}\n"
    assert fixed(RULE, code, unsafe=True) in (code, code.replace("enabled()", "enabled(x.device.type)"))


def test_older_torch_has_no_argument_to_offer() -> None:
    (finding,) = findings(
        RULE, "import torch\ndef f(x):\n    return torch.is_autocast_enabled() or x.dtype\n", torch_version=(2, 3)
    )
    assert finding.fix is None


def test_scenarios_are_those_with_autocast() -> None:
    (finding,) = findings(RULE, "import torch\non = torch.is_autocast_enabled()\n")
    assert finding.scenarios == ("autocast-fp16", "autocast-bf16")
    assert (finding.severity.value, finding.certainty.value) == ("warning", "likely")


STREAMS = """\
import torch


def moved(x, weight):
    {first}
    return weight.to({query})
"""


@pytest.mark.parametrize(
    ("first", "query", "messages"),
    [
        ("torch.cuda.current_stream().synchronize()", "x.dtype if torch.is_autocast_enabled() else None", []),
        ("torch.cuda.is_available()", "x.dtype if torch.is_autocast_enabled() else None", [""]),
        ("torch.cuda.synchronize()", "torch.get_autocast_gpu_dtype()", []),
        ("x.sum()", "torch.get_autocast_gpu_dtype()", ["deprecated since torch 2.4"]),
    ],
)
def test_a_function_that_steers_cuda_means_its_autocast(first: str, query: str, messages: list[str]) -> None:
    found = [finding.message for finding in findings(RULE, STREAMS.format(first=first, query=query))]
    assert len(found) == len(messages)
    assert all(text in message for text, message in zip(messages, found, strict=True))


@pytest.mark.parametrize(
    ("decorator", "silent"),
    [
        ("torch.amp.custom_fwd(device_type='cuda')", True),
        ("torch.cuda.amp.custom_fwd", True),
        ("torch.amp.custom_fwd(device_type='cpu')", False),
        ("torch.no_grad()", False),
    ],
)
def test_a_function_decorated_for_cuda_means_its_autocast(decorator: str, silent: bool) -> None:
    code = (
        "import torch\nclass F(torch.autograd.Function):\n    @staticmethod\n    @" + decorator + "\n"
        "    def forward(ctx, x):\n        return x.to(torch.get_autocast_gpu_dtype())\n"
    )
    assert [finding.code for finding in findings(BOTH, code)].count("AMP602") == (not silent)
    assert any("get_autocast_gpu_dtype" in finding.message for finding in findings(BOTH, code))


@pytest.mark.parametrize(
    ("body", "rows_"),
    [
        ("if torch.is_autocast_enabled():\n        d = torch.get_autocast_gpu_dtype()\n        x = x.to(d)", [3]),
        ("on = torch.is_autocast_enabled()\n    if on:\n        x = x.to(torch.get_autocast_gpu_dtype())", [3]),
        ("if not torch.is_autocast_enabled():\n        return x\n    x = x.to(torch.get_autocast_gpu_dtype())", [3]),
        ("if torch.is_autocast_enabled():\n        x = 2 * x\n    x = x.to(torch.get_autocast_gpu_dtype())", [3, 5]),
    ],
)
def test_a_dtype_asked_for_where_autocast_is_on_is_part_of_that_query(body: str, rows_: list[int]) -> None:
    found = findings(RULE, f"import torch\ndef f(x):\n    {body}\n    return x.dtype, x\n")
    assert [finding.span.start.row for finding in found] == rows_
    if len(found) == 1:
        ((place,), edits) = (found[0].also, found[0].fix.edits if found[0].fix else ())
        assert place.span.start.row > rows_[0]
        assert len(edits) == 3


def test_torch_deprecates_the_query_of_the_dtype() -> None:
    with pytest.warns(DeprecationWarning, match="get_autocast_gpu_dtype"):
        torch.get_autocast_gpu_dtype()


TESTED = """\
import contextlib
import torch


def quiet():
    return contextlib.nullcontext()


def f(self, x: torch.Tensor):
    {body}
    return x
"""


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("if torch.is_autocast_enabled(): x = x.to(torch.float16)", False),
        ("if torch.is_autocast_enabled(): x = x.float()", False),
        ("x = x.half() if torch.is_autocast_enabled() else x", False),
        ("if x.dtype is not self.dtype and not torch.is_autocast_enabled(): raise ValueError", False),
        ("assert not torch.is_autocast_enabled()", False),
        ("why = 'grad' if x.requires_grad else 'amp' if torch.is_autocast_enabled() else ''", False),
        ("on = torch.is_autocast_enabled()\n    if not on:\n        x = self.fused(x)", False),
        ("if torch.is_autocast_enabled():\n        with torch.no_grad(): x = self.fused(x)", False),
        ("if torch.is_autocast_enabled(): pass\n    with torch.autocast('cpu'): x = self.fused(x)", False),
        ("if torch.is_autocast_enabled(): return x\n    with torch.autocast('cpu'): x = self.fused(x)", True),
        ("if torch.is_autocast_enabled():\n        with torch.autocast('cpu', enabled=False): x = self.fused(x)", True),
        ("if torch.is_autocast_enabled():\n        with quiet(): x = self.fused(x)", True),
        ("on = torch.is_autocast_enabled()\n    with torch.autocast('cpu', enabled=on): x = self.fused(x)", True),
        ("if torch.is_autocast_enabled(): x = x.to(torch.get_autocast_dtype('cpu'))", True),
        ("self.on = torch.is_autocast_enabled()", True),
        ("x = self.fused(x, torch.is_autocast_enabled())", True),
        ("return torch.is_autocast_enabled()", True),
    ],
)
def test_an_answer_is_a_hazard_where_it_may_decide_over_autocast(body: str, told: bool) -> None:
    found = [f for f in findings(RULE, TESTED.format(body=body)) if "is_autocast_enabled" in f.message]
    expected = [] if "get_autocast_dtype" in body and not found else ["likely" if told else "possible"]
    assert [finding.certainty.value for finding in found] == expected


RETURNED = """\
import torch


class Cell:
    def _fits(self, x):
        return {returned}

    def forward(self, x):
        {body}
        return self.eager(x)
"""


@pytest.mark.parametrize(
    ("returned", "body", "told"),
    [
        ("x.ndim == 3 and not torch.is_autocast_enabled()", "if self._fits(x): return self.fused(x)", False),
        ("torch.is_autocast_enabled()", "if not self._fits(x): return self.fused(x)", False),
        ("torch.is_autocast_enabled()", "on = self._fits(x)", True),
        ("torch.is_autocast_enabled()", "x = self.fused(x, self._fits(x))", True),
        ("torch.is_autocast_enabled()", "x = map(self._fits, x)", True),
        ("torch.is_autocast_enabled()", "pass", True),
        (
            "torch.is_autocast_enabled()",
            "if self._fits(x):\n            with torch.autocast('cpu', enabled=False): return self.fused(x)",
            True,
        ),
    ],
)
def test_an_answer_that_a_private_function_returns_is_one_where_that_is_called(
    returned: str, body: str, told: bool
) -> None:
    found = findings(RULE, RETURNED.format(returned=returned, body=body))
    assert [finding.certainty.value for finding in found] == ["likely" if told else "possible"]


class _Both(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, on: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """The output where a cast stands under the answer, and where a region does."""
        cast = self.layer(x.float() if on else x)
        with torch.autocast("cpu", enabled=False) if on else torch.no_grad():
            return cast, self.layer(x.float())


def test_a_cast_that_autocast_undoes_needs_no_answer_and_a_region_does() -> None:
    both, x = _Both(), torch.randn(2, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (right, full), (wrong, low) = both(x, on=True), both(x, on=torch.is_autocast_enabled())
    assert torch.equal(right, wrong)
    assert (full.dtype, low.dtype) == (torch.float32, torch.bfloat16)


@pytest.mark.parametrize(
    ("steers", "told"),
    [
        ("torch.cuda.set_rng_state(states)", 0),
        ("return torch.cuda.current_device()", 0),
        ("if torch.cuda.is_available(): torch.cuda.empty_cache()", 1),
        ("torch.set_rng_state(states)", 1),
    ],
)
def test_a_function_that_calls_what_steers_cuda_means_its_autocast(steers: str, told: int) -> None:
    code = f"import torch\n\ndef restore(states):\n    {steers}\n\n"
    code += "def again(ctx, states):\n    restore(states)\n    ctx.on = torch.is_autocast_enabled()\n"
    assert len(rows(RULE, code)) == told


KERNELS = """\
import torch
IMPORTED

class Attention(torch.nn.Module):
    def forward(self, q, k, v):
        if torch.is_autocast_enabled():
            q, k, v = q.half(), k.half(), v.half()
        return self._flash_attention_forward(q, k, v)

    def _flash_attention_forward(self, q, k, v):
        return kernel(q, k, v)
"""


@pytest.mark.parametrize(
    ("imported", "told"),
    [
        ("from flash_attn import flash_attn_func as kernel", 0),
        ("from .attention import _flash_attention_forward as kernel", 0),
        ("from torch.nn.functional import scaled_dot_product_attention as kernel", 1),
    ],
)
def test_a_kernel_of_cuda_says_so_and_a_method_named_like_one_does_not(imported: str, told: int) -> None:
    assert len(rows(RULE, KERNELS.replace("IMPORTED", imported))) == told


QUERY = """import torch
from regions import region


def saved(x: torch.Tensor):
    on = torch.is_autocast_enabled()
    with region(on):
        return x @ x
"""


@pytest.mark.parametrize(
    ("region", "told"),
    [
        ('torch.autocast("cuda", enabled=on)', False),
        ('torch.autocast(device_type="cuda", enabled=on)', False),
        ("torch.cuda.amp.autocast(enabled=on)", False),
        ("torch.autocast(device, enabled=on)", True),
        ('torch.autocast("xpu", enabled=on)', True),
        ("torch.cpu.amp.autocast(enabled=on)", True),
        ("accelerator.autocast()", True),
        ("other(on)", True),
    ],
)
def test_it_is_possible_where_all_regions_of_the_project_are_of_cuda(tmp_path: Path, region: str, told: bool) -> None:
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "regions.py").write_text(f"import torch\n\ndef region(on):\n    return {region}\n")
    (tmp_path / "saved.py").write_text(QUERY)
    assert ("AMP602" in amplint("check", str(tmp_path / "saved.py")).stdout) is told


RECOMPUTED = """
import torch


class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, x):
        ctx.run, ctx.x = run, x
        ctx.state = {"enabled": torch.is_autocast_enabled(), "dtype": torch.get_autocast_gpu_dtype()}
        with torch.no_grad():
            return run(x)

    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad(), REGION:
            out = ctx.run(ctx.x)
        return None, torch.autograd.grad(out, ctx.x, grad)[0]
"""


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        ("torch.cuda.amp.autocast(**ctx.state)", []),
        ('torch.autocast("cuda", **ctx.state)', []),
        ('torch.autocast("cpu", **ctx.state)', [9]),
        ("torch.autocast(ctx.x.device.type, **ctx.state)", [9]),
        ('torch.autocast("cuda", **ctx.state), torch.autocast("cpu", **ctx.state)', [9]),
        ("contextlib.nullcontext()", [9]),
    ],
)
def test_what_is_kept_for_cudas_region_asks_for_that(region: str, expected: list[int]) -> None:
    assert sorted({*rows(RULE, RECOMPUTED.replace("REGION", region))}) == expected
