"""``amplint preflight``: what it sees of a machine, and what it says of it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from preflight_machine import Machine, write

from amplint.preflight.gpus import find_gpu
from amplint.preflight.interpreter import inspect_interpreter

if TYPE_CHECKING:
    from pathlib import Path

TITAN, GTX = ("NVIDIA TITAN RTX", "7.5"), ("NVIDIA GeForce GTX 1080 Ti", "6.1")


@pytest.fixture
def machine(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, python: Path) -> Machine:
    """Without any nvidia-smi."""
    return Machine(tmp_path, monkeypatch, python)


def test_nothing_to_see(machine: Machine) -> None:
    machine.command("nvidia-smi", "exit 9")
    answer = machine.preflight()
    assert answer.status == 0
    assert answer.report["machine"]["torch"] is None
    assert answer.report["machine"]["gpus"] == []
    assert list(answer.report) == ["machine", "packages", "problems", "unseen"]
    text = "\n".join(answer.report["unseen"])
    assert "torch is not installed" in text
    assert "nvidia-smi lists no GPU" in text
    assert "--gpu" in text


def test_gpus_from_the_driver(machine: Machine) -> None:
    machine.nvidia_smi(("NVIDIA A100-SXM4-80GB", "8.0"), ("NVIDIA A100-SXM4-80GB", "8.0"))
    answer = machine.preflight()
    assert (answer.status, answer.ids) == (0, [])
    seen = answer.report["machine"]
    assert (seen["source"], seen["driver"]) == ("nvidia-smi", "550.54")
    assert [gpu["capability"] for gpu in seen["gpus"]] == ["8.0", "8.0"]
    assert seen["gpus"][0]["bf16"] == "native"


def test_a_driver_that_does_not_know_compute_cap(machine: Machine) -> None:
    machine.nvidia_smi(("Tesla V100-SXM2-16GB", ""), knows_capability=False)
    (gpu,) = machine.preflight().report["machine"]["gpus"]
    assert (gpu["capability"], gpu["bf16"], gpu["fp16_tensor_cores"], gpu["fp8"]) == ("7.0", "emulated", True, False)


def test_visible_devices_choose(machine: Machine) -> None:
    machine.nvidia_smi(TITAN, GTX)
    machine.environment(CUDA_VISIBLE_DEVICES="1", CUDA_DEVICE_ORDER="PCI_BUS_ID")
    answer = machine.preflight()
    assert [gpu["name"] for gpu in answer.report["machine"]["gpus"]] == [GTX[0]]
    assert answer.ids == []
    machine.environment(CUDA_VISIBLE_DEVICES="")
    answer = machine.preflight()
    assert answer.report["machine"]["gpus"] == []
    assert any("hides all GPUs" in line for line in answer.report["unseen"])


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ["gpu-order", "mixed-gpus"]),
        ({"CUDA_VISIBLE_DEVICES": "0"}, ["gpu-order"]),
        ({"CUDA_DEVICE_ORDER": "FASTEST_FIRST", "CUDA_VISIBLE_DEVICES": "0"}, ["gpu-order"]),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0"}, []),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, ["mixed-gpus"]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-0aaa"}, []),
    ],
)
def test_order_of_different_models(machine: Machine, variables: dict[str, str], expected: list[str]) -> None:
    machine.nvidia_smi(GTX, TITAN)
    machine.environment(**variables)
    answer = machine.preflight()
    assert answer.ids == expected
    assert answer.status == (1 if expected else 0)


def test_order_that_torch_shows(machine: Machine) -> None:
    """Torch counts as the driver does, or it does not: then the message says which is which."""
    machine.nvidia_smi(GTX, TITAN)
    gtx, titan = (GTX[0], (6, 1), ""), (TITAN[0], (7, 5), "")
    machine.torch(gpus=[gtx, titan])
    assert machine.preflight().ids == ["mixed-gpus"]
    machine.torch(gpus=[titan, gtx])
    order, mixed = machine.preflight().report["problems"]
    assert (order["id"], order["evidence"]) == ("gpu-order", "seen")
    assert "cuda:0: NVIDIA TITAN RTX" in order["message"]
    assert "0: NVIDIA GeForce GTX 1080 Ti" in order["message"]
    assert "int8 tensor cores" in mixed["message"]
    assert "bfloat16" not in mixed["message"]


def test_builds_of_torch_that_do_not_fit(machine: Machine) -> None:
    machine.nvidia_smi(("Tesla T4", "7.5"))
    machine.torch("2.6.0+cpu", cuda=None)
    assert machine.preflight().ids == ["torch-without-cuda"]
    machine.torch(why="CUDA initialization: The NVIDIA driver on your system is too old (found version 11040).")
    (problem,) = machine.preflight().report["problems"]
    assert problem["id"] == "cuda-unavailable"
    assert "driver on your system is too old" in problem["message"]
    machine.torch(gpus=[("Tesla T4", (7, 5), "")], arch="sm_80 sm_90")
    assert machine.preflight().ids == ["torch-lacks-architecture"]


@pytest.mark.parametrize(
    ("arch", "gpu", "fits"),
    [
        ("sm_70 sm_75", "T4", True),
        ("sm_70", "T4", True),
        ("sm_80 sm_86", "L4", True),
        ("sm_86", "A100", False),
        ("sm_90a", "H100", True),
        ("sm_90a", "B200", False),
        ("sm_80 compute_80", "B200", True),
        ("sm_90 compute_90", "A100", False),
        ("sm_100f", "B300", True),
    ],
)
def test_architectures(machine: Machine, arch: str, gpu: str, fits: bool) -> None:
    machine.torch(arch=arch)
    assert machine.preflight("--gpu", gpu).ids == ([] if fits else ["torch-lacks-architecture"])


def test_rocm_and_mps(machine: Machine) -> None:
    machine.torch(
        "2.6.0+rocm6.2", cuda=None, hip="6.2", gpus=[("AMD Instinct MI250X", (9, 0), "gfx90a:sramecc+:xnack-")]
    )
    answer = machine.preflight()
    (gpu,) = answer.report["machine"]["gpus"]
    assert (gpu["capability"], gpu["architecture"], gpu["bf16"]) == (None, "gfx90a", "native")
    assert answer.ids == []
    machine.torch("2.6.0", cuda=None, mps=True)
    assert machine.preflight().report["machine"]["accelerators"] == ["mps"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise OSError('libcudart.so.12: cannot open')", "cannot be imported: OSError: libcudart.so.12: cannot open"),
        ("import no_such_module", "cannot be imported: No module named 'no_such_module'"),
        ("import os; os._exit(7)", "ended the process that imported it (status 7)"),
        ("print('x' * 100_000)\nimport sys; sys.stdout = None", "no GPU was seen"),
    ],
)
def test_a_torch_that_misbehaves(machine: Machine, source: str, said: str) -> None:
    machine.install("torch", "2.6.0")
    machine.torch_source(source + "\n__version__ = '2.6.0'\n")
    answer = machine.preflight()
    assert answer.status == 0
    assert said in "\n".join(answer.report["unseen"])
    assert [package["name"] for package in answer.report["packages"]] == ["torch"]


def test_a_torch_that_hangs_is_ended_with_its_children(machine: Machine) -> None:
    child = machine.packages / "child"
    machine.torch_source(
        f"import subprocess, time; p = subprocess.Popen(['sleep', '60']); open({str(child)!r}, 'w').write(str(p.pid))\n"
        "time.sleep(60)"
    )
    found = inspect_interpreter(str(machine.python), seconds=2)
    assert found.version is not None
    assert "did not answer within 2 s" in found.unseen[0]
    state = subprocess.run(["ps", "-o", "stat=", "-p", child.read_text()], capture_output=True, text=True, check=False)
    assert state.stdout.strip()[:1] in ("", "Z")


def test_torch_is_not_imported_in_this_process() -> None:
    script = (
        "import sys; from click.testing import CliRunner; from amplint.cli.main import main\n"
        "result = CliRunner().invoke(main, ['preflight', '--gpu', 'T4']); assert result.exit_code == 0, result.output\n"
        "assert 'torch  ' in result.output, result.output\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("T4", "NVIDIA T4"),
        ("tesla t4", "NVIDIA T4"),
        ("NVIDIA A100-SXM4-80GB", "NVIDIA A100"),
        ("GTX 1080 Ti", "GeForce GTX 1080 Ti"),
        ("1080ti", "GeForce GTX 1080 Ti"),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", "GeForce RTX 3080"),
        ("NVIDIA RTX 6000 Ada Generation", "NVIDIA RTX 6000 Ada"),
        ("Quadro RTX 6000", "Quadro RTX 6000"),
        ("TITAN RTX", "NVIDIA TITAN RTX"),
        ("MI250", "AMD Instinct MI250"),
    ],
)
def test_names_of_gpus(name: str, expected: str) -> None:
    assert find_gpu(name).name == expected


def test_unknown_gpu(machine: Machine) -> None:
    answer = machine.preflight("--gpu", "RTX 6000")
    assert answer.status == 2
    assert answer.report == {}
    assert answer.stderr.count("\n") == 1
    assert "'NVIDIA RTX 6000 Ada' or 'Quadro RTX 6000'" in answer.stderr


@pytest.mark.parametrize("arguments", [["--python", "/no/such/python"], ["nothing.py"], ["notes.txt"]])
def test_wrong_usage(machine: Machine, project: Path, arguments: list[str]) -> None:
    (project / "notes.txt").write_text("bf16\n")
    answer = machine.preflight(*arguments)
    assert answer.status == 2
    assert answer.stderr.startswith("amplint: error: ")


def test_a_command_that_is_no_interpreter(machine: Machine) -> None:
    machine.command("python9", "exit 3")
    answer = machine.preflight("--python", "python9")
    assert answer.status == 2
    assert "did not run as a Python interpreter (status 3)" in answer.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(machine: Machine, project: Path) -> None:
    write(project, train_py="import torch\n")
    (project / "train.py").chmod(0)
    assert machine.preflight("train.py").status == 2


def test_text(machine: Machine, project: Path) -> None:
    write(
        project,
        train_py="""
        from transformers import TrainingArguments

        arguments = TrainingArguments("out", bf16=True)
        """,
        requirements_txt="liger-kernel==0.5.2\n",
    )
    machine.torch("2.6.0+cu124", arch="sm_75")
    machine.command("nvidia-smi", "exit 1")
    status, text = machine.text(".", "--gpu", "T4")
    assert status == 1
    assert text == (
        "python        VERSION (PYTHON)\n"
        "torch         2.6.0+cu124 (CUDA 12.4)\n"
        "gpu           NVIDIA T4 (compute capability 7.5): bf16 emulated, fp16 tensor cores, no fp8 [--gpu]\n"
        "liger-kernel  0.5.2 (requirements.txt:1)\n"
        "settings      train.py\n"
        "\n"
        "error[liger-kernel-fused-linear-cross-entropy]: liger-kernel 0.5.2: fused linear cross entropy (and the model "
        "patches that use it) raises in training under autocast with float32 weights: torch.addmm(out=) gets operands "
        "of two dtypes, and autocast does not cast for it\n"
        "  --> requirements.txt:1:1\n"
        "  = help: upgrade to liger-kernel 0.5.3 or later\n"
        "  = run: https://github.com/linkedin/Liger-Kernel/issues/305 "
        "https://github.com/linkedin/Liger-Kernel/issues/501 https://github.com/linkedin/Liger-Kernel/pull/502\n"
        "\n"
        "warning[bf16-emulated]: TrainingArguments(bf16=True): NVIDIA T4 (compute capability 7.5) has no bfloat16 "
        "arithmetic (compute capability 8.0); torch emulates it or refuses, and Triton and FlashAttention have no "
        "kernels for it\n"
        "  --> train.py:3:43\n"
        "  = help: set fp16 instead\n"
        "  = cited: https://github.com/pytorch/pytorch/pull/129288\n"
    )
    assert machine.text(".", "--gpu", "T4", "--exit-zero")[0] == 0
