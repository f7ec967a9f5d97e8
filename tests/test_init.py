"""``amplint init``: what it writes, from what, and what it never touches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from conftest import amplint

from amplint.config import find_config, parse_toml

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("files", "scenarios"),
    [
        ({"a.py": "import torch\nwith torch.autocast('cuda', dtype=torch.bfloat16):\n    pass\n"}, ["autocast-bf16"]),
        ({"a.py": "import torch\nwith torch.autocast('cuda'):\n    pass\n"}, ["autocast-fp16"]),
        ({"a.py": "import torch\nwith torch.autocast('cpu', enabled=use_amp):\n    pass\n"}, ["autocast-bf16"]),
        ({"a.py": "import torch\nwith torch.autocast('cuda', enabled=False):\n    pass\n"}, []),
        (
            {"a.py": "import torch\nwith torch.autocast('cuda', dtype=chosen):\n    pass\n"},
            ["autocast-fp16", "autocast-bf16"],
        ),
        ({"a.py": "import torch\nwith torch.autocast(device):\n    pass\n"}, ["autocast-fp16", "autocast-bf16"]),
        ({"a.py": "import torch\n@torch.cuda.amp.autocast()\ndef f(x):\n    return x\n"}, ["autocast-fp16"]),
        ({"a.py": "from lightning import Trainer\nTrainer(precision='bf16-true')\n"}, ["bf16"]),
        ({"a.py": "from lightning import Trainer\nTrainer(precision='32-true')\n"}, []),
        ({"conf/t.yaml": "trainer:\n  max_epochs: 3\n  precision: 16-mixed\n"}, ["autocast-fp16"]),
        ({"ds.json": '{"train_batch_size": 8, "bf16": {"enabled": true}}'}, ["autocast-bf16"]),
        (
            {
                "a.py": "from transformers import AutoModel\nAutoModel.from_pretrained('x', torch_dtype='float16')\n",
                "b.py": "from transformers import TrainingArguments\nTrainingArguments('o', bf16=True)\n",
            },
            ["autocast-bf16", "fp16"],
        ),
        ({"test_a.py": "import pytest, torch\nwith torch.autocast('cuda'):\n    pass\n"}, []),
        ({"a.py": "x = y.half()\n"}, []),
        ({}, []),
    ],
)
def test_scenarios_that_the_code_shows(project: Path, files: dict[str, str], scenarios: list[str]) -> None:
    write(project, files)
    result = amplint("init")
    assert (result.status, result.stdout) == (0, "")
    said = ", ".join(scenarios) or "none, so the default ones are judged by, each where the code runs so"
    assert result.stderr == f"Wrote amplint.toml. Scenarios that the code shows: {said}.\n"
    assert list(find_config(project).scenarios) == scenarios
    assert all(len(line) <= 120 for line in (project / "amplint.toml").read_text().splitlines())


def test_what_shows_a_scenario_is_named(project: Path) -> None:
    region = "with torch.autocast('cuda', torch.float16):\n    pass\n"
    write(
        project,
        {"src/a.py": f"import torch\n{region * 2}", **{f"src/b{n}.py": f"import torch\n{region}" for n in range(3)}},
    )
    amplint("init")
    text = (project / "amplint.toml").read_text()
    assert "# autocast-fp16: torch.autocast(torch.float16) in src/a.py:2\n" in text
    assert "# autocast-fp16: torch.autocast(torch.float16) in src/b0.py:2\n# autocast-fp16: and 2 more\n" in text
    assert 'scenarios = ["autocast-fp16"]\n' in text


@pytest.mark.parametrize("text", ['[project]\nname = "x"', '[project]\nname = "x"\n', "# só\n\n\n[tool.ruff]\n", ""])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_pyproject_is_left_as_it_is_above(project: Path, text: str, end: str) -> None:
    path = project / "pyproject.toml"
    before = text.replace("\n", end).encode()
    path.write_bytes(before)
    path.chmod(0o640)
    write(project, {"a.py": "import torch\nwith torch.autocast('cuda'):\n    pass\n"})
    result = amplint("init")
    assert (result.status, result.stderr) == (
        0,
        "Wrote pyproject.toml. Scenarios that the code shows: autocast-fp16.\n",
    )
    after = path.read_bytes()
    assert after.startswith(before)
    assert path.stat().st_mode & 0o777 == 0o640
    assert (b"\r\n" in before) <= (after.count(b"\n") == after.count(b"\r\n"))
    assert parse_toml(after.decode())["tool"]["amplint"] == {"scenarios": ["autocast-fp16"]}
    assert not (project / "amplint.toml").exists()


def test_every_suggested_key_is_one(project: Path) -> None:
    amplint("init")
    path = project / "amplint.toml"
    lines = [line.removeprefix("# ") for line in path.read_text().splitlines()]
    keys = [line for line in lines if " = " in line]
    assert len(keys) == 10
    path.write_text("\n".join(keys))
    result = amplint("check", "--show-settings", "--output-format", "json")
    assert (result.status, result.stderr) == (0, "")
    write(project, {"a.py": ""})
    (settings,) = json.loads(amplint("check", "--show-settings", "--output-format", "json").stdout)
    assert settings["min-severity"] == "error"
    assert settings["per-file-ignores"] == {"tests/": ["AMP3"]}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"amplint.toml": ""}, "amplint.toml is there already: edit it; amplint init overwrites nothing"),
        (
            {"pyproject.toml": "[tool.amplint]\n"},
            "pyproject.toml has a table [tool.amplint] already: edit it; amplint init overwrites nothing",
        ),
        (
            {"pyproject.toml": "[tool.amplint.per-file-ignores]\n"},
            "pyproject.toml has a table [tool.amplint] already: edit it; amplint init overwrites nothing",
        ),
        ({"pyproject.toml": "[tool\n"}, "pyproject.toml is not valid TOML: "),
        (
            {"pyproject.toml": "tool = {x = 1}\n"},
            "nothing can be appended to pyproject.toml, whose tables are inline: ",
        ),
    ],
)
def test_what_is_there_is_never_changed(project: Path, files: dict[str, str], message: str) -> None:
    write(project, files)
    result = amplint("init")
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr.startswith(f"amplint: error: {message}")
    assert result.stderr.count("\n") == 1
    assert {path.name: path.read_text() for path in project.iterdir()} == files


def test_another_folder_and_what_held_there(project: Path) -> None:
    write(project, {"amplint.toml": 'device = "cpu"\n', "sub/a.py": ""})
    result = amplint("init", "sub")
    assert result.status == 0
    assert result.stderr.splitlines()[1] == (
        'amplint: note: so far amplint.toml held here; to keep what it says, add extend = "../amplint.toml"'
    )
    assert (project / "sub" / "amplint.toml").exists()
    result = amplint("init", "nowhere")
    assert (result.status, result.stderr.count("\n")) == (2, 1)
    assert "'nowhere' does not exist" in result.stderr


def test_a_run_goes_by_what_was_written(project: Path) -> None:
    text = (
        "import torch\n\n\ndef rows(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:\n"
        "    out = torch.zeros(16, 8, device=x.device)\n    out.index_add_(0, index, x @ x.t())\n    return out\n\n\n"
        "def train(x, index):\n    with torch.autocast('cuda', dtype=torch.bfloat16):\n        return rows(x, index)\n"
    )
    write(project, {"a.py": text, "pyproject.toml": '[project]\nname = "x"\n'})
    amplint("init")
    (finding,) = json.loads(amplint("check", "--select", "AMP105", "--output-format", "json").stdout)
    assert finding["scenarios"] == ["autocast-bf16"]
