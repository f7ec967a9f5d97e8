"""A device over CPU kernels behaves like the device: compared with cuda's own autocast kernels on fake tensors, and by
what code under it sees.  What replaces kernels runs in processes of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from amplint.emulation.gaps import Gap, gap, template  # noqa: E402
from amplint.emulation.policy import policies, release  # noqa: E402

HERE = Path(__file__).parent
TABLE = json.loads((HERE.parent / "amplint" / "data" / "low_precision_support.json").read_text())
#: Fake tensors run these as compositions below the autocast keys, or have no kernel that could refuse the dtype; on the
#: device, as in the emulation, their kernels call listed operations themselves.
DECOMPOSED = {
    "ldexp", "linalg.pinv", "linalg.pinv.hermitian", "matrix_exp", "mvlgamma.mvlgamma_p_1", "mvlgamma.mvlgamma_p_3",
    "mvlgamma.mvlgamma_p_5", "pca_lowrank", "pinverse", "svd_lowrank",
}  # fmt: skip
DEVICES = ("cuda", "xpu", "mps")


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", str(HERE / script), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result(process: subprocess.Popen[str]) -> Any:
    out, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors[-2000:]
    return json.loads(out)


def compared(emulated: dict[str, Any], fake: dict[str, Any]) -> tuple[Counter[str], set[str]]:
    """How many outcomes are what, and the names of those that differ."""
    counts: Counter[str] = Counter()
    differing = set()
    for key, seen in emulated.items():
        if fake[key] == "cannot run":
            kind = "cannot run"
        elif seen != fake[key]:
            kind = "different"
            differing.add(json.loads(key)[0])
        else:
            kind = "both raise" if seen == "raises" else "same"
        counts[kind] += 1
    return counts, differing


# ---- fidelity ---------------------------------------------------------------------------------------------------


def test_operations_on_cudas_list_give_what_cudas_kernels_give(capsys: pytest.CaptureFixture[str]) -> None:
    emulated, fake = result(start("emulation_ops.py", "operations"))
    counts, differing = compared(emulated, fake)
    with capsys.disabled():
        print(f"\n{len({json.loads(key)[0] for key in emulated})} operations: {dict(counts)}")
    assert differing <= DECOMPOSED
    listed = {key: seen for key, seen in emulated.items() if json.loads(key)[0] not in DECOMPOSED}
    counts, _ = compared(listed, fake)
    assert counts["different"] == 0
    assert counts["same"] > 1500
    assert counts["both raise"] >= 20
    assert counts["cannot run"] < 100


def test_modules_give_what_cudas_kernels_give(capsys: pytest.CaptureFixture[str]) -> None:
    processes = [start("emulation_ops.py", way) for way in ("modules-emulated", "modules-fake")]
    counts, differing = compared(*[result(process) for process in processes])
    with capsys.disabled():
        print(f"\nmodules: {dict(counts)}")
    assert differing == set()
    assert counts["same"] >= 70
    assert counts["both raise"] == 0


# ---- regions and the device -------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_code_sees_the_device(device: str) -> None:
    checks = result(start("emulation_checks.py", device))
    assert len(checks) > 25
    assert {name: failure for name, failure in checks.items() if failure} == {}


# ---- policies by release ----------------------------------------------------------------------------------------


def test_policies_follow_the_release() -> None:
    for name, device, first, before in (
        ("rms_norm", "cuda", (2, 12), (2, 11)),
        ("upsample_bilinear2d", "cuda", (2, 4), (2, 3)),
        ("scaled_dot_product_attention", "mps", (2, 6), (2, 5)),
        ("conv3d", "mps", (2, 10), (2, 9)),
        ("conv_transpose1d", "cpu", (2, 0), (1, 13)),
    ):
        assert name in policies(device, first)
        assert name not in policies(device, before)
    assert policies("cuda", (9, 0)) == policies("cuda")
    assert not policies("mps", (2, 4))
    assert release("2.13.0+cpu") == (2, 13)


@pytest.mark.parametrize("device", ["cuda", "cpu", "xpu", "mps"])
def test_policies_are_those_that_this_torch_registers(device: str) -> None:
    registered = torch._C._dispatch_get_registrations_for_dispatch_key(f"Autocast{device.upper()}")
    names = {name.removeprefix("aten::") for name in registered if "imname" not in name} - {"_cudnn_rnn"}
    names.discard("norm.names_ScalarOpt_dim")
    assert set(policies(device, release(torch.__version__))) == names


def test_what_an_older_release_did_not_list_is_left_to_the_composition() -> None:
    program = """if True:
        import torch
        from amplint.emulation import kernels
        kernels.release = lambda version: (2, 11)
        kernels.install("cuda")
        with torch.autocast("cpu"), kernels.calls() as log:
            torch.nn.functional.rms_norm(torch.randn(2, 4), (4,))
        print("rms_norm" in dict(log))
        """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# ---- gaps of CPU kernels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "op", "expected"),
    [
        ("Unsupported dtype Half", None, Gap.CPU_ONLY),
        ("Unsupported dtype BFloat16", None, Gap.DEVICE_TOO),
        ("\"addmm_impl_cpu_\" not implemented for 'Half'", None, Gap.CPU_ONLY),
        ("\"addmm_impl_cpu_\" not implemented for 'Half'", "aten.addmm.default", Gap.CPU_ONLY),
        ("\"geqrf_cpu\" not implemented for 'BFloat16'", None, Gap.DEVICE_TOO),
        ("\"some_kernel\" not implemented for 'BFloat16'", "aten.linalg_qr.default", Gap.DEVICE_TOO),
        ("\"some_kernel\" not implemented for 'BFloat16'", "aten._linalg_svd.default", Gap.DEVICE_TOO),
        ("\"some_kernel\" not implemented for 'Half'", "aten.some_op.default", Gap.CPU_ONLY),
        ("\"some_kernel\" not implemented for 'Half'", None, Gap.CPU_ONLY),
        ("\"cdist\" not implemented for 'Half'", None, Gap.DEVICE_TOO),
        ("\"pdist_backward\" not implemented for 'Half'", None, Gap.DEVICE_TOO),
        ("\"avg_pool3d_out_frame\" not implemented for 'BFloat16'", "aten.avg_pool3d.default", Gap.CPU_ONLY),
        ("\"rrelu_with_noise_out_cpu\" not implemented for 'Half'", None, Gap.CPU_ONLY),
        ("linalg.inv: Low precision dtypes not supported. Got Half", None, Gap.DEVICE_TOO),
        ("quantile() input tensor must be either float or double dtype", None, Gap.DEVICE_TOO),
        ("Could not run 'aten::_cudnn_rnn' with arguments from the 'CPU' backend. This", None, Gap.CPU_ONLY),
        ("No viable backend for scaled_dot_product_attention was found.", None, Gap.CPU_ONLY),
        ("mixed dtype (CPU): expect parameter to have scalar type of Float", None, None),
        ("expected scalar type Float but found BFloat16", "aten.bmm.default", None),
        ("mat1 and mat2 must have the same dtype, but got Half and Float", None, None),
        ("value cannot be converted to type at::Half without overflow", None, None),
        ("\"softmax_kernel\" not implemented for 'Long'", None, None),
    ],
)
def test_gaps_are_told_apart(text: str, op: str | None, expected: Gap | None) -> None:
    assert gap(RuntimeError(text), op) is expected
    if expected is not None:
        assert gap(text, op, device="mps") is Gap.CPU_ONLY


def test_real_errors_of_cpu_kernels_are_told_apart() -> None:
    def text_of(function: Any, dtype: Any) -> str:
        with pytest.raises(RuntimeError) as caught:
            function(torch.eye(6, dtype=dtype))
        return str(caught.value)

    assert gap(text_of(torch.fft.fft, torch.half)) is Gap.CPU_ONLY
    assert gap(text_of(torch.fft.fft, torch.bfloat16)) is Gap.DEVICE_TOO
    for function in (torch.linalg.inv, torch.linalg.qr, torch.linalg.cholesky, torch.linalg.svd):
        for dtype in (torch.half, torch.bfloat16):
            assert gap(text_of(function, dtype)) is Gap.DEVICE_TOO, function
    assert gap(text_of(lambda x: torch.linalg.inv(x) @ x, torch.half)) is Gap.DEVICE_TOO
    assert gap(text_of(lambda x: x.half() @ x, torch.float)) is None


def test_what_varies_is_taken_out_of_texts() -> None:
    text = "linalg.pinv(CPUHalfType{[0, 5, 5]}): expected 2 or more\nand a second line"
    assert template(text) == "linalg.pinv(<dtype>{[]}): expected <n> or more"


def test_the_table_says_what_opinfo_declares() -> None:
    lacking = {name: entry["cuda"]["forward"] for name, entry in TABLE["ops"].items() if entry.get("cuda")
               and "forward" in entry["cuda"]}  # fmt: skip
    assert lacking["linalg.inv"] == ["float16", "bfloat16"]
    assert lacking["fft.fft"] == ["bfloat16"]
    assert "addmm" in TABLE["ops"]
    assert "addmm" not in lacking
    assert all(row["dtype"] in ("float16", "bfloat16") for row in TABLE["refusals"])
    assert {key for row in TABLE["refusals"] for key in row} == {"text", "op", "dtype", "has", "lacks"}
