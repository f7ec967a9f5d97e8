"""What only half weights show is certain where weights lead, possible elsewhere, and meant everywhere when named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import torch
from conftest import amplint

from amplint.engine import Options, check_file
from amplint.finding import Certainty
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS, find_scenario
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from amplint.finding import Finding

RULES = tuple(rule for rule in load_rules() if rule.code == "AMP103")
HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom functools import partial\n"
MIXED = "def mixed(x: torch.Tensor):\n    return x @ torch.ones(4, 4)\n"
"""In half weights this raises; autocast casts both operands."""
CORE = "class Core(nn.Module):\n    def forward(self, x: torch.Tensor):\n        return x @ torch.ones(4, 4)\n"


def owner(made: str, run: str = "mixed(x)", *, base: str = "nn.Module", more: str = "", handed: str = "") -> str:
    """A module that makes something and, in its ``forward``, runs something."""
    constructor = f"    def __init__(self{handed}):\n        super().__init__()\n        {made}\n"
    return f"class Net({base}):\n{constructor}{more}    def forward(self, x):\n        return {run}\n"


LED_TO = {
    "a layer": MIXED + owner("self.proj = nn.Linear(4, 4)"),
    "a parameter": MIXED + owner("self.scale = nn.Parameter(torch.ones(4))"),
    "a registered parameter": MIXED + owner('self.register_parameter("scale", nn.Parameter(torch.ones(4)))'),
    "a parameter registered as made elsewhere": MIXED + owner('self.register_parameter("s", s)', handed=", s"),
    "a buffer": MIXED + owner('self.register_buffer("mean", torch.zeros(4))', "mixed(x - self.mean)"),
    "layers in a list": MIXED + owner("self.stages = nn.ModuleList([nn.Conv1d(4, 4, 1) for _ in range(2)])"),
    "layers in a chain": MIXED + owner("self.chain = nn.Sequential(nn.ReLU(), nn.Linear(4, 4))"),
    "layers handed over in a list": MIXED + owner("self.stages = nn.ModuleList(stages)", handed=", stages"),
    "layers made by a method": MIXED
    + owner("self.build()", more="    def build(self):\n        self.proj = nn.Linear(4, 4)\n"),
    "layers made by a function": MIXED
    + "def block(width):\n    return nn.Sequential(nn.Linear(width, width), nn.ReLU())\n"
    + owner("self.block = block(4)"),
    "layers made by a partial": MIXED + "Norm = partial(nn.LayerNorm, eps=1e-6)\n" + owner("self.norm = Norm(4)"),
    "a module that owns": MIXED
    + "class Inner(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.w = nn.Linear(4, 4)\n"
    + owner("self.inner = Inner()"),
    "a layer class as base": MIXED + "class Net(nn.Linear):\n    def forward(self, x):\n        return mixed(x)\n",
    "an inherited constructor": MIXED
    + owner("self.proj = nn.Linear(4, 4)", "self.proj(x)")
    + "class Deeper(Net):\n    def forward(self, x):\n        return mixed(x)\n",
    "a subclass that owns": CORE.replace("Core", "Base")
    + "class Net(Base):\n    def __init__(self):\n        super().__init__()\n        self.proj = nn.Linear(4, 4)\n",
    "a layer handed in": MIXED + owner("self.inner = inner", "self.inner(mixed(x))", handed=", inner"),
    "a class of layers handed in": MIXED
    + owner("self.norm = norm(4)", "self.norm(mixed(x))", handed=", norm=nn.LayerNorm"),
    "a layer of a library": "from elsewhere import Encoder\n"
    + MIXED
    + owner("self.encoder = Encoder()", "self.encoder(mixed(x))"),
    "a base of a library": "import lightning\n"
    + MIXED
    + owner("self.proj = nn.Linear(4, 4)", base="lightning.LightningModule"),
    "a base of a library without forward": "from elsewhere import Model\n"
    + "class Net(Model):\n    def __init__(self):\n        super().__init__()\n        self.proj = nn.Linear(4, 4)\n"
    + "    def compute(self, x: torch.Tensor):\n        return x @ torch.ones(4, 4)\n",
    "a base of a library that made the layer": "from elsewhere import Model\n"
    + "class Net(Model):\n    def forward(self, x: torch.Tensor):\n        return self.proj(x @ torch.ones(4, 4))\n",
    "a layer added to a list": "class Net(nn.Module):\n    def __init__(self, *stages):\n        super().__init__()\n"
    "        self.stages = nn.ModuleList([])\n        for stage in stages:\n            self.stages.append(stage)\n"
    "    def forward(self, x: torch.Tensor):\n        return x @ torch.ones(4, 4)\n",
    "a method that others call, and that reads the weights": owner(
        "self.proj = nn.Linear(4, 4)",
        "self.proj(x)",
        more="    def decode(self, x: torch.Tensor):\n        return self.proj(x @ torch.ones(4, 4))\n",
    ),
    "a Function by itself": "class Mixed(torch.autograd.Function):\n    @staticmethod\n"
    "    def forward(ctx, x: torch.Tensor):\n        return x @ torch.ones(4, 4)\n"
    "    @staticmethod\n    def backward(ctx, g):\n        return g\n",
    "its own method": owner(
        "self.proj = nn.Linear(4, 4)",
        "self.norm(self.proj(x))",
        more="    def norm(self, x):\n        return x @ torch.ones(4, 4)\n",
    ),
    "a module without weights in it": CORE + owner("self.proj, self.core = nn.Linear(4, 4), Core()", "self.core(x)"),
    "a module without weights handed to it": CORE
    + owner("self.proj, self.core = nn.Linear(4, 4), core", "self.core(x)", handed=", core")
    + "net = Net(Core())\n",
    "a table of functions": MIXED
    + 'NORMS = {"l2": mixed}\n'
    + owner("self.proj = nn.Linear(4, 4)", 'NORMS["l2"](self.proj(x))'),
    "a Function": "class Mixed(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x: torch.Tensor):\n"
    "        return x @ torch.ones(4, 4)\n    @staticmethod\n    def backward(ctx, g):\n        return g\n"
    + owner("self.proj = nn.Linear(4, 4)", "Mixed.apply(self.proj(x))"),
    "a function in a function": "def outer(x):\n    def inner(y: torch.Tensor):\n        return y @ torch.ones(4, 4)\n"
    "    return inner(x)\n" + owner("self.proj = nn.Linear(4, 4)", "outer(self.proj(x))"),
    "a class in a function": "def build():\n    class Net(nn.Module):\n        def __init__(self):\n"
    "            super().__init__()\n            self.proj = nn.Linear(4, 4)\n        def forward(self, x):\n"
    "            return x @ torch.ones(4, 4)\n    return Net()\n",
}
NOT_LED_TO = {
    "a function": MIXED,
    "a loss": CORE,
    "a loss with a loss of torch": MIXED + owner("self.mse = nn.MSELoss()", "self.mse(mixed(x), x)"),
    "activations only": MIXED + owner("self.act = nn.Sequential(nn.ReLU(), nn.Dropout())", "self.act(mixed(x))"),
    "integers in a buffer": MIXED
    + owner('self.register_buffer("steps", torch.zeros(4, dtype=torch.long))', "mixed(x)[self.steps]"),
    "a number handed in": MIXED + owner("self.reduction = reduction", handed=", reduction='mean'"),
    "a function handed in by default": MIXED + owner("self.act = act", "self.act(mixed(x))", handed=", act=F.relu"),
    "a function handed in by annotation": "from typing import Callable\n"
    + MIXED
    + owner("self.distance = distance", "self.distance(mixed(x))", handed=", distance: Callable"),
    "no parameter after all": MIXED + owner('self.register_parameter("bias", None)'),
    "a module beside it": MIXED + owner("self.proj = nn.Linear(4, 4)", "self.proj(x)"),
    "a plain class that holds a module": owner("self.proj = nn.Linear(4, 4)", "self.proj(x)")
    + "class Metric:\n    def __init__(self):\n        self.net = Net()\n"
    "    def update(self, x):\n        return x @ torch.ones(4, 4)\n",
    "a step of a trainer that forward does not make": "import lightning\n"
    + owner(
        "self.proj = nn.Linear(4, 4)",
        "self.proj(x)",
        base="lightning.LightningModule",
        more="    def training_step(self, x):\n        return x @ torch.ones(4, 4)\n",
    ),
}


def found(tmp_path: Path, text: str, **options: object) -> list[Finding]:
    source = Source(tmp_path / "model.py", (HEAD + text).encode())
    result = check_file(source, Options(RULES, torch_version=(2, 13), **options))  # type: ignore[arg-type]
    assert not result.failures
    return list(result.findings)


@pytest.mark.parametrize("text", LED_TO.values(), ids=LED_TO)
def test_what_the_forward_of_an_owner_reaches_stands(text: str, tmp_path: Path) -> None:
    compile(text, "model.py", "exec")
    (finding,) = found(tmp_path, text)
    assert finding.scenarios == ("fp16", "bf16", "bf16-mixed-params")


@pytest.mark.parametrize("text", NOT_LED_TO.values(), ids=NOT_LED_TO)
def test_where_no_weights_lead_half_weights_are_possible_only(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, text) == []
    (finding,) = found(tmp_path, text, pedantic=True)
    assert finding.certainty is Certainty.POSSIBLE
    fp16 = find_scenario("fp16")
    assert fp16 is not None
    assert len(found(tmp_path, text, scenarios=(fp16,))) == 1


@pytest.mark.parametrize("folder", ["", "layers"])
@pytest.mark.parametrize("owns", [True, False])
def test_an_owner_in_another_file_is_read_from_disk(owns: bool, folder: str, tmp_path: Path) -> None:
    package = tmp_path / "package"
    (package / folder).mkdir(parents=True)
    for path in {package, package / folder}:
        (path / "__init__.py").write_text("")
    made = "self.proj = nn.Linear(4, 4)" if owns else "self.act = nn.ReLU()"
    (package / folder / "base.py").write_text(HEAD + owner(made, "self.norm(x)"))
    module = "package.layers.base" if folder else "package.base"
    text = f"from {module} import Net\nclass Deeper(Net):\n    def norm(self, x: torch.Tensor):\n"
    text += "        return x @ torch.ones(4, 4)\n"
    assert bool(found(package, text)) is owns


@pytest.mark.parametrize(
    ("code", "statement"), [("AMP109", "return x.half() + 1"), ("AMP112", "x.float()\n    return x")]
)
def test_a_dtype_that_the_source_fixes_is_no_matter_of_weights(code: str, statement: str, tmp_path: Path) -> None:
    rules = tuple(rule for rule in load_rules() if rule.code == code)
    source = Source(tmp_path / "model.py", (HEAD + f"def cast(x: torch.Tensor):\n    {statement}\n").encode())
    assert len(check_file(source, Options(rules, torch_version=(2, 13))).findings) == 1


@pytest.mark.parametrize(
    ("base", "leads"), [("torch.optim.Optimizer", True), ("torch.optim.SGD", True), ("list", False)]
)
def test_an_optimizer_works_on_weights(base: str, leads: bool, tmp_path: Path) -> None:
    text = HEAD + f"class Mine({base}):\n    def step(self):\n        for p in self.param_groups[0]['params']:\n"
    source = Source(tmp_path / "mine.py", (text + "            p.data.add_(p.grad)\n").encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    row = len(source.lines)
    assert facts.runs_on_weights(row) is leads
    assert facts.half_weights_only(["fp16"])
    assert not facts.half_weights_only(["fp16", "autocast-fp16"])


@pytest.mark.parametrize("static", [True, False])
def test_a_communication_hook_works_on_gradients_of_weights(static: bool, tmp_path: Path) -> None:
    text = HEAD + "import torch.distributed as dist\nclass Hook:\n" + ("    @staticmethod\n" if static else "")
    text += "    def run(state, bucket: dist.GradBucket):\n        return bucket.buffer().pow(2).sum()\n"
    source = Source(tmp_path / "hook.py", text.encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    assert facts.runs_on_weights(len(source.lines))


CALLED = """
class Net({base}):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x):
        return {forward}

    def encode(self, x):
        return self.proj(torch.ones(2, 4, device=x.device))
"""


@pytest.mark.parametrize(
    ("base", "forward", "certainty"),
    [
        ("nn.Module", "self.encode(x)", "proven"),
        ("nn.Module", "getattr(self, 'proj')(x)", "likely"),
        ("base.Framework", "self.proj(x)", "proven"),
    ],
)
def test_what_only_users_of_a_module_call_is_likely(base: str, forward: str, certainty: str, tmp_path: Path) -> None:
    (tmp_path / "base.py").write_text("from framework import Framework\n")
    text = HEAD + "import base\n" + CALLED.format(base=base, forward=forward)
    (finding,) = found(tmp_path, text)
    assert finding.certainty.value == certainty
    assert ["for-users" in held.doubt.name for held in finding.doubts] == [True] * (certainty == "likely")


def test_in_torch_the_weights_decide() -> None:
    names: dict[str, Any] = {}
    exec(HEAD + MIXED + owner("self.proj = nn.Linear(4, 4)", "mixed(self.proj(x))"), names)
    exec(CORE, names)
    x = torch.ones(2, 4)
    assert names["Core"]().half()(x).dtype == torch.float32
    with pytest.raises(RuntimeError, match="dtype"):
        names["Net"]().half()(x.half())


@pytest.mark.parametrize(
    ("arguments", "configuration", "number"),
    [
        ((), "", 0),
        (("--pedantic",), "", 1),
        (("--scenario", "fp16"), "", 1),
        (("--scenario", "16-true,autocast-fp16"), "", 1),
        ((), 'scenarios = ["fp16"]\n', 1),
        ((), 'device = "cuda"\n', 0),
    ],
)
def test_naming_scenarios_means_them_everywhere(
    arguments: tuple[str, ...], configuration: str, number: int, project: Path
) -> None:
    (project / "losses.py").write_text(HEAD + CORE)
    (project / "amplint.toml").write_text(configuration)
    result = amplint("check", "--select", "AMP103", "--output-format", "json", *arguments)
    assert len(json.loads(result.stdout)) == number
    assert result.status == int(number > 0)
