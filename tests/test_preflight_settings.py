"""Precision settings in scripts and configurations: what is found where, and what is left alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from preflight_machine import Answer, Machine, write

from amplint.preflight.document import Mapping, Node
from amplint.preflight.json_document import read_json
from amplint.preflight.yaml_document import read_yaml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Place = tuple[str, int, int]


@pytest.fixture
def check(machine: Machine, project: Path) -> Callable[..., Answer]:
    """Write files and run preflight on all of them together, for one GPU."""

    def run(*, gpu: str = "T4", **files: str) -> Answer:
        write(project, **files)
        names = sorted(path.name for path in project.iterdir())
        answer = machine.preflight(*names, "--gpu", gpu)
        assert answer.status == (1 if answer.ids else 0), answer.stderr
        return answer

    return run


SCRIPTS: list[tuple[str, list[Place]]] = [
    (
        'from transformers import TrainingArguments\nTrainingArguments("o", bf16=True, tf32=True)\n',
        [("bf16-emulated", 2, 29), ("tf32-unsupported", 2, 40)],
    ),
    (
        'import transformers as t\nBF16 = True\nt.Seq2SeqTrainingArguments("o", bf16=BF16, fp16=True)\n',
        [("bf16-emulated", 3, 38), ("fp16-and-bf16", 3, 49)],
    ),
    ('from trl import SFTConfig\nSFTConfig("o", bf16_full_eval=True)\n', [("bf16-emulated", 2, 31)]),
    ('from transformers import TrainingArguments as A\nA(**{"tf32": True})\n', [("tf32-unsupported", 2, 14)]),
    (
        'from transformers import TrainingArguments\nTrainingArguments("o", fp16=True, use_cpu=True)\n',
        [("fp16-on-cpu", 2, 29)],
    ),
    ('from accelerate import Accelerator\nAccelerator(mixed_precision="bf16")\n', [("bf16-emulated", 2, 29)]),
    ('import accelerate\naccelerate.Accelerator(mixed_precision="fp8")\n', [("fp8-unsupported", 2, 40)]),
    ('from accelerate import Accelerator\nAccelerator(mixed_precision="float16")\n', [("invalid-precision", 2, 29)]),
    ('from accelerate import Accelerator\nAccelerator(cpu=True, mixed_precision="fp16")\n', [("fp16-on-cpu", 2, 39)]),
    ('import lightning as L\nL.Trainer(precision="bf16-mixed")\n', [("bf16-emulated", 2, 21)]),
    (
        'from pytorch_lightning import Trainer\nTrainer(precision="bf16", accelerator="gpu")\n',
        [("bf16-emulated", 2, 19)],
    ),
    ('from lightning.fabric import Fabric\nFabric(precision="bf16-true")\n', [("bf16-emulated", 2, 18)]),
    ('import lightning as L\nL.Trainer(precision="mixed-16")\n', [("invalid-precision", 2, 21)]),
    ('import lightning as L\nL.Trainer(precision="transformer-engine")\n', [("fp8-unsupported", 2, 21)]),
    ('import lightning as L\nL.Trainer(accelerator="cpu", precision=16)\n', [("fp16-on-cpu", 2, 40)]),
    ('import torch\nwith torch.autocast("cuda", torch.bfloat16):\n    pass\n', [("bf16-emulated", 2, 29)]),
    ('import torch\n@torch.amp.autocast("cuda", dtype=torch.bfloat16)\ndef f(): ...\n', [("bf16-emulated", 2, 35)]),
    (
        "import torch\nfrom torch.cuda.amp import autocast, GradScaler\nscaler = GradScaler()\n"
        "with autocast(dtype=torch.bfloat16):\n    pass\n",
        [("scaler-with-bf16", 3, 10), ("bf16-emulated", 4, 21)],
    ),
    (
        "import torch\nfrom transformers import BitsAndBytesConfig\n"
        "BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16)\n",
        [("bf16-emulated", 3, 62)],
    ),
    (
        'from transformers import AutoModel\nAutoModel.from_pretrained("m", attn_implementation="flash_attention_2")\n',
        [("flash-attention-unsupported", 2, 52)],
    ),
    (
        'from transformers import AutoModel\nAutoModel.from_pretrained("m", torch_dtype="bf16")\n',
        [("invalid-precision", 2, 44)],
    ),
    (
        "import torch\nfrom diffusers import UNet2DConditionModel as U\ndef main():\n    dtype = torch.bfloat16\n"
        '    return U.from_pretrained("m", torch_dtype=dtype)\n',
        [("bf16-emulated", 5, 47)],
    ),
    (
        "import torch\nfrom transformers import AutoModel, Trainer, TrainingArguments\n"
        'model = AutoModel.from_pretrained("m", torch_dtype=torch.float16)\nmodel.config.use_cache = False\n'
        'arguments = TrainingArguments("o", fp16=True)\nTrainer(model, arguments).train()\n',
        [("scaled-half-parameters", 3, 52)],
    ),
    ('import deepspeed\ndeepspeed.initialize(config={"bf16": {"enabled": True}})\n', [("bf16-emulated", 2, 50)]),
    (
        'import deepspeed\nCONFIG = {\n    "bf16": {"enabled": True},\n    "fp16": {"enabled": True},\n}\n'
        "deepspeed.initialize(config=CONFIG)\n",
        [("bf16-emulated", 3, 25), ("fp16-and-bf16", 4, 25)],
    ),
    (
        'import lightning as L\nDEBUG = False\nif DEBUG:\n    L.Trainer(precision="bf16")\n'
        'else:\n    L.Trainer(precision="nope")\n',
        [("invalid-precision", 6, 25)],
    ),
    (
        '# é\nfrom accelerate import Accelerator\ns = "é"; Accelerator(mixed_precision="bf16")\n',
        [("bf16-emulated", 3, 38)],
    ),
]


@pytest.mark.parametrize(("source", "expected"), SCRIPTS)
def test_scripts(check: Callable[..., Answer], source: str, expected: list[Place]) -> None:
    assert check(train_py=source).places == expected


SILENT = [
    'from transformers import TrainingArguments\nTrainingArguments("o", fp16=True, bf16=False)\n',
    "import argparse\nfrom transformers import TrainingArguments\n"
    'a = argparse.ArgumentParser().parse_args()\nTrainingArguments("o", bf16=a.bf16)\n',
    'from transformers import TrainingArguments\ndef f(bf16=True):\n    TrainingArguments("o", bf16=bf16)\n',
    "from transformers import TrainingArguments\nbf16 = True\nif x:\n    bf16 = False\n"
    'TrainingArguments("o", bf16=bf16)\n',
    'from transformers import TrainingArguments\nfor bf16 in (True,):\n    TrainingArguments("o", bf16=bf16)\n',
    'from transformers import TrainingArguments\na = TrainingArguments("o", bf16=True)\na.bf16 = False\n',
    'from transformers import TrainingArguments\nk = {"bf16": True}\nk["bf16"] = False\nTrainingArguments("o", **k)\n',
    'from transformers import TrainingArguments\nk = {"bf16": True}\nk.update(y)\nTrainingArguments("o", **k)\n',
    'from mine import TrainingArguments\nTrainingArguments("o", bf16=True)\n',
    'def f(TrainingArguments):\n    TrainingArguments("o", bf16=True)\n',
    "import torch\nfrom transformers import TrainingArguments\n"
    'if torch.cuda.is_bf16_supported():\n    TrainingArguments("o", bf16=True)\n',
    "import torch\nfrom transformers import TrainingArguments\n"
    'ok = torch.cuda.get_device_capability()[0] >= 8\nTrainingArguments("o", bf16=True)\n',
    "import sys\nfrom transformers import TrainingArguments\nif len(sys.argv) > 1:\n"
    '    TrainingArguments("o", bf16=True)\n',
    'from transformers import TrainingArguments\nTrainingArguments("o", bf16=True, use_cpu=True)\n',
    'import lightning as L\nL.Trainer(precision="bf16-mixed", accelerator="tpu")\n',
    'import lightning as L\nL.Trainer(precision="bf16-mixed", accelerator=choose())\n',
    'import lightning as L\nL.Trainer(precision="16-mixed")\nL.Trainer(precision=32)\nL.Trainer(precision=None)\n',
    'import torch\nwith torch.autocast("cpu", dtype=torch.bfloat16):\n    pass\n',
    "import torch\nwith torch.autocast(device, dtype=torch.bfloat16):\n    pass\n",
    'import torch\nwith torch.autocast("cuda", dtype=torch.bfloat16, enabled=False):\n    pass\n',
    'import torch\nwith torch.autocast("cuda", dtype=torch.bfloat16, enabled=flag):\n    pass\n',
    'import torch\nimport torch_xla\nfrom accelerate import Accelerator\nAccelerator(mixed_precision="bf16")\n',
    'import torch\nscaler = torch.amp.GradScaler("cuda")\nwith torch.autocast("cuda"):\n    pass\n',
    'import torch\nscaler = torch.amp.GradScaler("cuda", enabled=False)\n'
    'with torch.autocast("cpu", dtype=torch.bfloat16):\n    pass\n',
    'import torch\nscaler = torch.amp.GradScaler("cuda")\nwith torch.autocast("cuda", dtype=d):\n    pass\n',
    'import accelerate\naccelerate.Accelerator(mixed_precision=None)\naccelerate.Accelerator(mixed_precision="no")\n',
    'import torch\nfrom transformers import AutoModel\nAutoModel.from_pretrained("m", torch_dtype="auto")\n',
]


@pytest.mark.parametrize("source", SILENT)
def test_what_is_not_certain_is_not_judged(check: Callable[..., Answer], source: str) -> None:
    assert check(train_py=source).ids == []


HALF = """
import torch
from peft import get_peft_model
from transformers import AutoModel, Trainer, TrainingArguments
model = AutoModel.from_pretrained("m", torch_dtype=torch.float16{loading})
{between}
arguments = TrainingArguments("o", fp16=True{training})
Trainer(model, arguments{trainer})
"""


@pytest.mark.parametrize(
    "part",
    [
        {"between": "model = get_peft_model(model, config)"},
        {"between": "model.float()"},
        {"between": "model.requires_grad_(False)"},
        {"between": "for p in model.parameters():\n    p.data = p.data.float()"},
        {"between": "prepare(model)"},
        {"loading": ", load_in_8bit=True"},
        {"loading": ", quantization_config=config"},
        {"training": ', deepspeed="ds.json"'},
        {"training": ", **more"},
        {"trainer": ", peft_config=config"},
    ],
)
def test_half_models_that_may_be_trained_otherwise(check: Callable[..., Answer], part: dict[str, str]) -> None:
    empty = {"loading": "", "between": "", "training": "", "trainer": ""}
    assert check(train_py=HALF.format(**empty)).ids == ["scaled-half-parameters"]
    assert check(train_py=HALF.format(**{**empty, **part})).ids == []


def test_flash_attention_in_float32(check: Callable[..., Answer]) -> None:
    source = (
        "import torch\nfrom transformers import AutoModel, TrainingArguments\n"
        'AutoModel.from_pretrained("m", dtype=torch.float32, attn_implementation="flash_attention_2")\n'
    )
    assert check(gpu="A100", train_py=source).places == [("flash-attention-dtype", 3, 38)]
    for more in ('TrainingArguments("o", bf16=True)\n', 'TrainingArguments("o", bf16=x)\n', 'torch.autocast("cuda")\n'):
        assert check(gpu="A100", train_py=source + more).ids == []


def test_a_script_that_asks_the_gpu_is_named(check: Callable[..., Answer]) -> None:
    answer = check(
        train_py="""
        import torch
        from accelerate import Accelerator
        print(torch.cuda.is_bf16_supported())
        Accelerator(mixed_precision="bf16")
        """
    )
    assert answer.ids == []
    assert any("train.py asks the GPU what it supports (line 3)" in line for line in answer.report["unseen"])


DEEPSPEED = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}}

CONFIGS: list[tuple[str, str, list[Place]]] = [
    ("ds_json", json.dumps(DEEPSPEED), [("bf16-emulated", 1, 59)]),
    (
        "ds_json",
        json.dumps({**DEEPSPEED, "fp16": {"enabled": True}}, indent=1),
        [("bf16-emulated", 4, 14), ("fp16-and-bf16", 7, 14)],
    ),
    ("ds_json", json.dumps({**DEEPSPEED, "bf16": {"enabled": "auto"}}), []),
    ("ds_json", json.dumps({"bf16": {"enabled": True}}), []),
    (
        "args_json",
        '{"output_dir": "o",\r\n "bf16": true, "fp16": true}',
        [("bf16-emulated", 2, 10), ("fp16-and-bf16", 2, 24)],
    ),
    ("args_yaml", "output_dir: o\nbf16: yes\ntf32: true\n", [("bf16-emulated", 2, 7), ("tf32-unsupported", 3, 7)]),
    ("args_yaml", "output_dir: o\nbf16: auto\nfp16:\n", []),
    ("args_yaml", "bf16: true\n", []),
    ("acc_yaml", "distributed_type: MULTI_GPU\nmixed_precision: bf16\n", [("bf16-emulated", 2, 18)]),
    ("acc_yaml", "distributed_type: MULTI_XPU\nmixed_precision: bf16\n", []),
    ("acc_yaml", "distributed_type: 'NO'\nmixed_precision: half\n", [("invalid-precision", 2, 18)]),
    ("acc_yaml", "distributed_type: 'NO'\nmixed_precision: no\n", []),
    ("acc_yaml", "distributed_type: 'NO'\nuse_cpu: true\nmixed_precision: fp16\n", [("fp16-on-cpu", 3, 18)]),
    ("pl_yaml", "trainer:\n  accelerator: gpu\n  precision: bf16-mixed\n", [("bf16-emulated", 3, 14)]),
    ("pl_yaml", "trainer:\n  max_epochs: 3\n  precision: amp_bf16\n", [("invalid-precision", 3, 14)]),
    ("pl_yaml", "trainer:\n  max_epochs: 3\n  precision: ${precision}\n", []),
    ("pl_yaml", "trainer:\n  precision: amp_bf16\n", []),
    ("hydra_yaml", "_target_: lightning.pytorch.Trainer\nprecision: bf16-true\n", [("bf16-emulated", 2, 12)]),
    (
        "hydra_yml",
        "x:\n  trainer:\n    _target_: pytorch_lightning.Trainer\n    precision: bf16\n",
        [("bf16-emulated", 4, 16)],
    ),
    ("merge_yaml", "base: &b {bf16: true}\nrun:\n  <<: *b\n  output_dir: o\n", [("bf16-emulated", 1, 17)]),
    ("tagged_yaml", "output_dir: o\nbf16: !env BF16\n", []),
    ("two_yaml", "a: fp16\n---\noutput_dir: o\nbf16: true\n", [("bf16-emulated", 4, 7)]),
]


@pytest.mark.parametrize(("name", "text", "expected"), CONFIGS)
def test_configurations(check: Callable[..., Answer], name: str, text: str, expected: list[Place]) -> None:
    assert check(**{name: text}).places == expected


def test_what_the_gpu_can_do_is_fine(check: Callable[..., Answer]) -> None:
    for gpu in ("A100", "MI250"):
        answer = check(
            gpu=gpu,
            train_py='from transformers import TrainingArguments\nTrainingArguments("o", bf16=True, tf32=True)\n',
            acc_yaml="distributed_type: MULTI_GPU\nmixed_precision: bf16\n",
        )
        assert answer.ids == []


def test_without_a_gpu_settings_are_judged_by_themselves_only(machine: Machine, project: Path) -> None:
    write(project, args_yaml="output_dir: o\nbf16: true\n", bad_yaml="output_dir: o\nbf16: true\nfp16: true\n")
    answer = machine.preflight(".")
    assert answer.ids == ["fp16-and-bf16"]
    assert any("--gpu" in line for line in answer.report["unseen"])


TRAIN = 'from transformers import TrainingArguments\nTrainingArguments("o", fp16=True{more})\n'


def test_disagreement_of_files_named_together(check: Callable[..., Answer]) -> None:
    answer = check(
        gpu="A100",
        train_py=TRAIN.format(more=""),
        acc_yaml="distributed_type: MULTI_GPU\nmixed_precision: bf16\n",
        ds_json=json.dumps(DEEPSPEED),
    )
    assert answer.places == [("precision-disagreement", 2, 18), ("precision-disagreement", 1, 59)]
    assert "TrainingArguments(fp16=True) in train.py:2:29" in answer.report["problems"][0]["message"]


def test_script_against_its_own_launch_configuration(check: Callable[..., Answer]) -> None:
    script = 'from accelerate import Accelerator\nAccelerator(mixed_precision="fp16")\n'
    config = "distributed_type: MULTI_GPU\nmixed_precision: {}\n"
    assert check(gpu="A100", train_py=script, acc_yaml=config.format("bf16")).ids == ["precision-disagreement"]
    assert check(gpu="A100", train_py=script, acc_yaml=config.format("fp16")).ids == []


def test_files_of_a_folder_are_joined_by_name_only(machine: Machine, project: Path) -> None:
    (project / "configs").mkdir()
    (project / "configs" / "ds.json").write_text(json.dumps(DEEPSPEED))
    (project / "train.py").write_text(TRAIN.format(more=""))
    assert machine.preflight(".", "--gpu", "A100").ids == []
    (project / "train.py").write_text(TRAIN.format(more=', deepspeed="configs/ds.json"'))
    assert machine.preflight(".", "--gpu", "A100").places == [("precision-disagreement", 1, 59)]


def test_a_folder_leaves_out_what_git_ignores(machine: Machine, project: Path) -> None:
    for folder in ("wandb", ".hidden", "kept"):
        (project / folder).mkdir()
        (project / folder / "args.yaml").write_text("output_dir: o\nbf16: true\nfp16: true\n")
    (project / ".gitignore").write_text("wandb/\n")
    (problem,) = machine.preflight(".").report["problems"]
    assert problem["location"]["filename"].endswith("kept/args.yaml")
    (project / ".git").mkdir()
    (project / ".gitignore").write_text("args.yaml\n")
    assert machine.preflight("kept").ids == []


def test_links_are_followed_once_and_may_lead_nowhere(machine: Machine, project: Path) -> None:
    (project / "kept").mkdir()
    (project / "kept" / "args.yaml").write_text("output_dir: o\nbf16: true\nfp16: true\n")
    (project / "again").symlink_to("kept")
    (project / "round").symlink_to(".")
    (project / "lost.json").symlink_to("nowhere.json")
    answer = machine.preflight(".")
    assert answer.status == 1
    assert len(answer.ids) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("broken_json", '{"fp16": {'),
        ("broken_yaml", "fp16: [1\n"),
        ("broken_py", "fp16 = autocast(\n"),
        ("deep_json", "[" * 100_000 + '"fp16"'),
    ],
)
def test_broken_files(machine: Machine, project: Path, name: str, text: str) -> None:
    """Named, they are an error; found below a folder, a line."""
    write(project, **{name: text})
    (path,) = project.iterdir()
    answer = machine.preflight(path.name)
    assert answer.status == 2
    assert f"{path.name} was not read" in answer.stderr
    answer = machine.preflight(".")
    assert answer.status == 0
    assert any(f"{path.name} was not read" in line for line in answer.report["unseen"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def plain(node: Node) -> Any:
    if isinstance(node.value, Mapping):
        return {key: plain(value) for key, _, value in node.value.items}
    return [plain(item) for item in node.value] if isinstance(node.value, tuple) else node.value


@given(JSON, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_json_values_and_places(value: object, indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    root = read_json(text)
    assert plain(root) == value
    lines = text.split("\n")
    for node in root.walk():
        here = lines[node.row - 1][node.column - 1 :]
        if isinstance(node.value, Mapping):
            assert here.startswith("{")
        elif isinstance(node.value, tuple):
            assert here.startswith("[")
        else:
            assert here.startswith(json.dumps(node.value, ensure_ascii=ascii_only))


@given(JSON)
def test_yaml_reads_json_alike(value: object) -> None:
    """Except floats such as ``1e5``, which YAML 1.1 takes for strings."""
    text = json.dumps(value)
    (root,) = read_yaml(text)
    places = {(node.row, node.column) for node in read_json(text).walk()}
    assert {(node.row, node.column) for node in root.walk()} == places
