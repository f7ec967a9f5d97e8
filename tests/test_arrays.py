"""What is made of an array of NumPy lies in the host's memory, on which CUDA's autocast does not act."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplint.annotate.rows import file_dtypes
from amplint.infer.lattice.scenarios import CONTROL, find_scenario
from amplint.source import Source

CODE = """\
import numpy as np
import torch
from numpy.typing import NDArray


class Gram(torch.nn.Module):
    def forward(self, other, data{annotation}):
        {before}
        table = torch.as_tensor({made}, dtype=torch.float32)
        product = table @ table
        return product
"""


def _product(annotation: str, made: str, before: str = "") -> str:
    scenario = find_scenario("autocast-fp16")
    assert scenario is not None
    text = CODE.format(annotation=annotation, made=made, before=before)
    source = Source(Path("/project/gram.py"), text.encode())
    rows = file_dtypes(source, scenarios=(CONTROL, scenario), device="cuda", torch_version=(2, 13)).rows
    (dtype,) = next(row.dtypes[-1] for row in rows if row.span.start.row == 11)
    return dtype


@pytest.mark.parametrize(
    ("annotation", "made", "dtype"),
    [
        (": np.ndarray", "data", "float32"),
        (": NDArray[np.float64]", "data", "float32"),
        (': "np.ndarray | None" = None', "data", "float32"),
        (": np.ndarray = None", "data.astype(np.float32)", "float32"),
        ("", "np.stack(data)", "float32"),
        ("", "np.asarray(data).reshape(3, 3)", "float32"),
        ("", "data", "float16"),
        (": torch.Tensor", "data", "float16"),
        (": np.ndarray | torch.Tensor", "data", "float16"),
        (": np.ndarray", "other", "float16"),
        ("", "other.stack(data)", "float16"),
        (": np.ndarray", "data, device=other.device", "float16"),
        (": np.ndarray", "data, device='cuda'", "float16"),
    ],
)
def test_where_a_tensor_made_of_data_lies(annotation: str, made: str, dtype: str) -> None:
    assert _product(annotation, made) == dtype


@pytest.mark.parametrize(("stored", "dtype"), [("np.array(data)", "float32"), ("other(data)", "float16")])
def test_a_variable_that_holds_an_array(stored: str, dtype: str) -> None:
    assert _product("", "held", f"held = {stored}") == dtype


def test_a_parameter_that_is_bound_again() -> None:
    assert _product(": np.ndarray", "data", "data = other(data)") == "float16"
