"""AMP601: what torch itself deprecates, what becomes of imports, and where there is no rewrite or no finding."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from amplint_rules.amp601_deprecated_amp_api import DeprecatedAmpApi
from amplint_rules.amp602_cuda_only_query import CudaOnlyQuery
from rule_examples import bad, good
from rule_harness import expected_rows, findings, fixed, rows

from amplint.claims.legacy_names import LEGACY
from amplint.engine import Options, check_file
from amplint.finding import Applicability, Certainty
from amplint.rule_base import HEADINGS, Example, documentation
from amplint.source import Source

pytest.importorskip("torch")

import torch
from legacy_runs import autocast_state, run

RULE = DeprecatedAmpApi()


def resolve(name: str) -> Any:
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


# What torch says


@pytest.mark.parametrize("name", LEGACY)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_torch_deprecates_it(name: str) -> None:
    legacy, function = LEGACY[name], resolve(name)
    argument: Any = True if "set" in name and "enabled" in name else torch.bfloat16
    arguments = [lambda ctx: None] if legacy.is_decorator else [argument] * legacy.positional[0]
    with autocast_state(), pytest.warns((FutureWarning, DeprecationWarning), match="is deprecated"):
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
            with warnings.catch_warnings(record=True) as caught, autocast_state():
                warnings.simplefilter("always")
                try:
                    resolve(name)(*arguments)
                except Exception:
                    continue
                if any(issubclass(w.category, (FutureWarning, DeprecationWarning)) for w in caught):
                    found.add(name)
    assert found == {name for name in LEGACY if "_mode." not in name and "grad_scaler." not in name}


# Documentation and examples


def test_documentation() -> None:
    text = documentation(RULE)
    assert [heading for heading in HEADINGS if f"\n{heading}\n" in text] == list(HEADINGS)


DEPRECATED = [case.example for case in bad(RULE) if fixed(RULE, case.example.source) != case.example.source]


@pytest.mark.parametrize("example", DEPRECATED)
def test_bad_examples(example: Example) -> None:
    assert rows(RULE, example.source) == expected_rows(example.source)
    with pytest.raises((FutureWarning, DeprecationWarning)):
        run(example.source)["reproduce"]()
    after = fixed(RULE, example.source)
    assert rows(RULE, after) == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        run(after)["reproduce"]()


@pytest.mark.parametrize("example", [case.example for case in good(RULE)])
def test_good_examples(example: Example) -> None:
    major, minor = (example.torch_version or "2.13").split(".")
    found = findings(RULE, example.source, torch_version=(int(major), int(minor)))
    assert {finding.certainty for finding in found} <= {Certainty.POSSIBLE}


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
        "f(c=autocast)",
    ],
)
def test_import_stays_for_what_has_no_fix(use: str) -> None:
    code = f"import torch\nfrom torch.cuda.amp import autocast\nz = {use}\nwith autocast(): pass\n"
    assert rows(RULE, code) == [3, 4]
    assert fixed(RULE, code) == code.replace("with autocast()", f"with {NEW}")


def test_import_stays_for_a_silenced_use() -> None:
    code = (
        "import torch\nfrom torch.cuda.amp import autocast\n"
        "z = autocast()  # amplint: ignore[AMP601]\nwith autocast(): pass\n"
    )
    options = Options((RULE,), torch_version=(2, 13), fix=Applicability.SAFE)
    result = check_file(Source(Path("/project/module.py"), code.encode()), options)
    assert result.after is not None
    assert result.after.decode() == code.replace("with autocast()", f"with {NEW}")


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
    (finding,) = findings(RULE, code, path=path)
    assert (finding.span.start.row, finding.certainty) == (2, Certainty.LIKELY)
    assert fixed(RULE, code, path=path) == code
    used = f"{code}with autocast(): pass\n"
    assert rows(RULE, used, path=path) == [2, used.count("\n")]
    assert fixed(RULE, used, path=path) == f"{code}with {NEW}: pass\n"


def test_what_nothing_uses_is_possible_where_it_is_imported() -> None:
    unused, used = findings(RULE, "from torch.cuda.amp import GradScaler, autocast as ac\nGradScaler()\n")
    assert (unused.span.start.column, unused.span.end.column) == (40, 54)
    assert unused.fix is None
    assert (unused.certainty, used.certainty) == (Certainty.POSSIBLE, Certainty.LIKELY)


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
        "try:\n    from torch.amp import autocast as a\nexcept E:\n    from torch.cuda.amp import autocast as a\na(*b)",
        "try:\n    s = torch.amp.GradScaler('cuda')\nexcept AttributeError:\n    s = torch.cuda.amp.GradScaler()",
        "VERSION = torch.__version__\ns = torch.cuda.amp.GradScaler() if VERSION < (2, 4) else torch.amp.GradScaler()",
        "def f():\n    if version.parse(torch.__version__) >= V:\n        return 1\n    torch.cuda.amp.custom_fwd",
        "def f():\n    if compare_version('torch', operator.ge, V):\n        return 1\n    torch.cuda.amp.custom_fwd",
        "if hasattr(torch.amp, 'custom_fwd'):\n    pass\nelse:\n    f = torch.cuda.amp.custom_fwd(g)",
        "m = getattr(torch, 'amp', None)\nif m is None:\n    torch.cuda.amp.autocast()",
        "def f():\n    m = getattr(torch, 'amp', None)\n    if m is not None and hasattr(m, 'autocast'):\n"
        "        try:\n            return m.autocast('cuda')\n        except TypeError:\n            return None\n"
        "    return torch.cuda.amp.autocast()",
        "from .a import new\nif new:\n    pass\nelse:\n    from torch.cuda.amp import custom_fwd\n    custom_fwd(g)",
        "torch.cuda.amp.autocast = None",
        "def f(s: torch.cuda.amp.GradScaler):\n    s.update()\n    self.s: torch.cuda.amp.GradScaler = None",
        "from torch.amp import autocast\nautocast('cuda')",
        "torch.is_autocast_enabled('cpu')",
    ],
)
def test_silent(code: str) -> None:
    assert rows(RULE, f"import torch\n{code}\n") == []


@pytest.mark.parametrize(
    "code",
    [
        *("torch.cuda.is_available()", "conversion", "config.use_amp", "hasattr(self, 'x')"),
        *("getattr(torch, 'float16')", "getattr(self, 'amp', None)"),
    ],
)
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


OF_TYPING = """\
import typing
from typing import NewType, Optional, cast

from torch.cuda.amp import GradScaler

scaler = NewType("scaler", GradScaler)
Maybe = Optional[GradScaler]
Other = typing.Union[GradScaler, None]


def made(make):
    return cast(GradScaler, make())
"""


def test_what_typing_is_told_makes_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(OF_TYPING, {})
    assert rows(RULE, OF_TYPING) == []
    assert rows(RULE, OF_TYPING + "\n\nkept = made(GradScaler)\n") == [15]
