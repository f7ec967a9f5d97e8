"""The advisories: each is of its form, means the versions that it says, and is reported where it holds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from packaging.version import Version
from preflight_machine import Machine, write

from amplint.finding import Severity
from amplint.preflight.advisories import Advisory, CallCondition, load_advisories, parse_advisory
from amplint.preflight.gpus import _named
from amplint.preflight.problem import Evidence

if TYPE_CHECKING:
    from pathlib import Path

ADVISORIES = load_advisories()
BY_ID = {advisory.id: advisory for advisory in ADVISORIES}
each = pytest.mark.parametrize("advisory", ADVISORIES, ids=list(BY_ID))

VALID = """
package = "p"
affected = ["<2"]
severity = "error"
evidence = "run"
happens = "h"
remedy = "r"
sources = ["https://example.org"]
[examples]
affected = ["1"]
unaffected = ["2"]
"""


def test_there_are_enough() -> None:
    assert len(ADVISORIES) >= 12
    assert {"liger-kernel", "bitsandbytes", "vector-quantize-pytorch", "torch"} <= {
        name for advisory in ADVISORIES for name in advisory.packages_concerned
    }


@each
def test_form(advisory: Advisory) -> None:
    assert all(re.fullmatch(r"https://\S+", source) for source in advisory.sources)
    assert advisory.happens
    assert not advisory.happens.endswith(".")
    assert not advisory.remedy.endswith(".")
    assert not (advisory.evidence is Evidence.CITED and advisory.severity is Severity.ERROR), "cited: a warning at most"


@each
def test_ranges_mean_the_versions_named(advisory: Advisory) -> None:
    assert {wanted for _, wanted in advisory.examples} == {True, False}
    for version, wanted in advisory.examples:
        assert advisory.affects(Version(version)) is wanted, version


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (VALID.replace("remedy", "cure"), "unknown key cure"),
        (VALID.replace('remedy = "r"\n', ""), "missing key remedy"),
        (VALID.replace('["https://example.org"]', "[]"), "no source"),
        (VALID + '[[when.gpu]]\ncapability = "8.0"\n', "unknown key when.gpu.capability"),
        (VALID + "[[when.call]]\ngiven = []\n", "missing key when.call.name"),
        (VALID.replace('"error"', '"fatal"'), "fatal"),
    ],
)
def test_malformed(text: str, said: str) -> None:
    parse_advisory("good", VALID)
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_advisory("bad", text)


PRECISIONS = {
    "fp16-mixed": 'transformers.TrainingArguments("out", fp16=True)',
    "bf16-mixed": 'transformers.TrainingArguments("out", bf16=True)',
    "bf16": 'transformers.AutoModel.from_pretrained("m", dtype=torch.bfloat16)',
}
ON_CPU = {
    "fp16-mixed": 'torch.autocast("cpu", dtype=torch.float16)',
    "bf16-mixed": 'torch.autocast("cpu", dtype=torch.bfloat16)',
}


def script_for(advisory: Advisory) -> str:
    """A script that makes every call that an advisory asks for, and sets its precisions."""
    lines = [call_for(condition) for condition in advisory.calls]
    snippets = ON_CPU if advisory.device == "cpu" else PRECISIONS
    lines += [snippets[names[0]] for names in advisory.precisions]
    roots = sorted({line.partition("(")[0].partition(".")[0] for line in lines} | {"torch"})
    return "".join(f"import {root}\n" for root in roots) + "\n".join(lines) + "\n"


def call_for(condition: CallCondition) -> str:
    name = condition.names[0].replace("*", "Any")
    arguments = {key: values[0] for key, values in condition.arguments}
    if name == "deepspeed.config":
        return 'deepspeed.initialize(config={"fp16": {"enabled": True}})'
    if name == "torch.autocast":
        return ON_CPU["fp16-mixed"]
    spelled = [f"{key}={value!r}" for key, value in arguments.items()] + [f"{key}='x'" for key in condition.given[:1]]
    return f"{name}({', '.join(spelled)})"


def gpu_for(advisory: Advisory) -> list[str]:
    if not advisory.gpus:
        return []
    return ["--gpu", next(name for name, gpu in _named().items() if advisory.gpus[0].holds(gpu))]


@each
def test_reported_for_affected_versions_only(machine: Machine, project: Path, advisory: Advisory) -> None:
    write(project, train_py=script_for(advisory))
    for name in advisory.packages_concerned:
        for version, wanted in (
            next(e for e in advisory.examples if e[1]),
            next(e for e in advisory.examples if not e[1]),
        ):
            machine.install(name, version)
            answer = machine.preflight("train.py", *gpu_for(advisory))
            assert (advisory.id in answer.ids) is wanted, version
        machine.uninstall(name)


def test_conditions(machine: Machine, project: Path) -> None:
    """bitsandbytes: all of version, GPU, precision and call are needed."""
    loading = "transformers.BitsAndBytesConfig(load_in_8bit=True)\n"
    training = 'transformers.TrainingArguments("out", fp16=True)\n'
    machine.install("bitsandbytes", "0.44.1")

    def ids(source: str, gpu: str) -> list[str]:
        write(project, train_py="import transformers\n" + source)
        return machine.preflight("train.py", "--gpu", gpu).ids

    assert ids(loading + training, "V100") == ["bitsandbytes-int8-backward"]
    assert ids(loading + training, "GTX 1660") == ["bitsandbytes-int8-backward"]
    assert ids(loading + training, "T4") == []
    assert ids(loading, "V100") == []
    assert ids(training, "V100") == []
    assert ids(loading + training.replace("True", "flag"), "V100") == []
    assert ids(loading.replace("True", "flag") + training, "V100") == []
    assert ids(loading + f"if flag:\n    {training}", "V100") == []


def test_without_files_it_says_what_to_name(machine: Machine) -> None:
    machine.install("bitsandbytes", "0.44.1")
    machine.install("liger-kernel", "0.5.2")
    answer = machine.preflight("--gpu", "V100")
    assert answer.ids == ["liger-kernel-fused-linear-cross-entropy"]
    assert any("bitsandbytes-int8-backward" in line for line in answer.report["unseen"])
    assert not any("bitsandbytes" in line for line in machine.preflight("--gpu", "A100").report["unseen"])


def test_fallback_imports_are_not_judged(machine: Machine, project: Path) -> None:
    machine.install("torch", "2.2.2")
    write(
        project,
        train_py="""
        try:
            from torch.amp import GradScaler
        except ImportError:
            from torch.cuda.amp import GradScaler
        GradScaler()
        """,
        other_py="from torch.amp import GradScaler\nGradScaler()\n",
    )
    assert machine.preflight("train.py").ids == []
    assert machine.preflight("other.py").places == [("torch-amp-grad-scaler", 2, 1)]


def test_pins(machine: Machine, project: Path) -> None:
    """Requirement files, pyproject.toml and lock files; ranges, markers of other systems and options are no pins."""
    write(
        project,
        requirements_txt="""
        # liger-kernel==0.5.0
        --index-url https://example.org
        liger_kernel[extra] == 0.5.1 ; python_version > "3"  # why
        vector-quantize-pytorch==1.12.9; sys_platform == "amiga"
        bitsandbytes>=0.44
        """,
        pyproject_toml="""
        [project]
        name = "mine"
        version = "1"
        dependencies = ["liger-kernel==0.5.0", "torch>=2"]
        """,
        uv_lock="""
        version = 1

        [[package]]
        name = "liger-kernel"
        version = "0.3.1"
        """,
    )
    answer = machine.preflight(".")
    assert [
        (p["name"], p["version"], p["location"]["filename"].rpartition("/")[2], p["location"]["row"])
        for p in answer.report["packages"]
    ] == [
        ("liger-kernel", "0.5.0", "pyproject.toml", 4),
        ("liger-kernel", "0.5.1", "requirements.txt", 3),
        ("liger-kernel", "0.3.1", "uv.lock", 4),
    ]
    assert [(row, column) for _, row, column in answer.places] == [(4, 18), (3, 1), (4, 1)]


def test_a_pin_is_for_what_lies_beside_it(machine: Machine, project: Path) -> None:
    for name in ("one", "two"):
        (project / name).mkdir()
        (project / name / "train.py").write_text(
            "import transformers\ntransformers.AutoModel.from_pretrained(dtype=1)\n"
        )
    (project / "one" / "requirements.txt").write_text("transformers==4.50.0\n")
    (problem,) = machine.preflight(".").report["problems"]
    assert problem["id"] == "transformers-dtype-argument"
    assert problem["location"]["filename"].endswith("one/train.py")
    assert "pinned in one/requirements.txt:1" in problem["message"]


@pytest.mark.parametrize("text", ["[project\n", "\xff"])
def test_broken_pyproject(machine: Machine, project: Path, text: str) -> None:
    (project / "pyproject.toml").write_bytes(text.encode("latin-1"))
    answer = machine.preflight("pyproject.toml")
    assert answer.status == 2
    assert "pyproject.toml was not read" in answer.stderr
