"""``amplint check``, ``rules`` and ``explain``: options, exit statuses, messages."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Completed

Run = Callable[..., Completed]


def codes(result: Completed) -> list[str]:
    return [finding["code"] for finding in json.loads(result.stdout)]


@pytest.fixture
def check(run: Run) -> Callable[..., list[str]]:
    """The codes found by ``check --output-format json`` with some arguments."""

    def invoke(*arguments: str) -> list[str]:
        return codes(run("check", "--output-format", "json", *arguments))

    return invoke


def test_clean_and_empty(project: Path, run: Run) -> None:
    assert run("check").status == 0
    (project / "a.py").write_text("x = 1\n")
    result = run("check", "--output-format", "json")
    assert (result.status, result.stdout) == (0, "[]\n")
    assert "All checks passed: 1 file." in result.stderr


def test_findings_give_status_1(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.double()\n")
    assert run("check").status == 1
    assert run("check", "--exit-zero").status == 0


def test_possible_needs_pedantic(project: Path, check: Callable[..., list[str]]) -> None:
    (project / "a.py").write_text("x.maybe()\n")
    assert check() == []
    assert check("--pedantic") == ["TOY107"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), ["TOY101", "TOY102"]),
        (("--select", "TOY101"), ["TOY101"]),
        (("--select", "toy-half,toy-off"), ["TOY101", "TOY201"]),
        (("--select", "toy1"), ["TOY101", "TOY102"]),
        (("--select", "ALL"), ["TOY101", "TOY102", "TOY201"]),
        (("--extend-select", "TOY2"), ["TOY101", "TOY102", "TOY201"]),
        (("--ignore", "TOY1"), []),
        (("--select", "TOY101", "--ignore", "TOY1"), ["TOY101"]),
        (("--select", "TOY", "--ignore", "TOY101"), ["TOY102", "TOY201"]),
    ],
)
def test_selection(
    project: Path, check: Callable[..., list[str]], arguments: tuple[str, ...], expected: list[str]
) -> None:
    (project / "a.py").write_text("x.half(); x.double(); x.off()\n")
    assert check(*arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--select", "TOY110"), "did you mean 'TOY1"),
        (("--ignore", "toy-hlaf"), "did you mean 'toy-half'"),
        (("--scenario", "autocast-fp61"), "did you mean 'autocast-fp16'"),
        (("--torch-version", "two"), "X.Y"),
        (("--device", "tpu"), "tpu"),
        (("--unsafe-fixes",), "--fix or --diff"),
        (("--stdin-filename", "a.py"), "needs the path -"),
        (("-", "a.py"), "cannot be combined"),
        (("--no-such-option",), "no-such-option"),
    ],
)
def test_wrong_usage(project: Path, run: Run, arguments: tuple[str, ...], message: str) -> None:
    result = run("check", *arguments)
    assert result.status == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_missing_path_is_named_and_the_rest_is_checked(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.double()\n")
    result = run("check", "--output-format", "json", "a.py", "nowhere.py")
    assert result.status == 2
    assert "amplint: error: no such file or directory: nowhere.py\n" in result.stderr
    assert codes(result) == ["TOY102"]


def test_scenarios_and_aliases(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.double()\n")
    result = run("check", "--output-format", "json", "--scenario", "bf16-mixed", "--scenario", "fsdp-bf16")
    assert json.loads(result.stdout)[0]["scenarios"] == ["autocast-bf16", "fsdp-bf16"]
    assert json.loads(run("check", "--output-format", "json", "--device", "cpu").stdout)[0]["device"] == "cpu"


def test_internal_errors_are_one_line_each(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.py").write_text("x.boom(); x.crashes(); x.double()\n")
    (project / "b.py").write_text("x.double()\n")
    result = run("check", "--output-format", "json")
    assert result.status == 2
    assert codes(result) == ["TOY102", "TOY102"]
    lines = [line for line in result.stderr.splitlines() if "internal error" in line]
    assert len(lines) == 2
    assert all(str(project / "a.py") in line for line in lines)
    assert "TOY103" in result.stderr
    assert "Traceback" not in result.stderr
    monkeypatch.setenv("AMPLINT_DEBUG", "1")
    assert "Traceback" in run("check").stderr


def test_inference_failure_names_the_file(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = importlib.import_module("amplint.project.ends")

    def broken(*_: object, **__: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(asking, "analyse", broken)
    (project / "a.py").write_text("x.half()\n")
    (project / "b.py").write_text("def f(:\n")
    result = run("check", "--output-format", "json")
    assert result.status == 2
    assert f"internal error in the inference on {project / 'a.py'}: KeyError" in result.stderr
    assert codes(result) == ["AMP901"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python parses both")
@pytest.mark.parametrize("text", ["type X = int\n", "x = f'{'a'}'\n"])
def test_source_of_a_newer_python_is_a_warning(project: Path, run: Run, text: str) -> None:
    (project / "a.py").write_text(text)
    (project / "b.py").write_text("try:\n    pass\nexcept* OSError:\n    print('C:\\Users')\n")
    found = {Path(f["filename"]).name: f for f in json.loads(run("check", "--output-format", "json").stdout)}
    assert {name: f["severity"] for name, f in found.items()} == {"a.py": "warning", "b.py": "error"}
    assert "this needs a newer Python than the 3." in found["a.py"]["message"]


def test_a_template_is_no_python(project: Path, run: Run) -> None:
    (project / "a.py").write_text("import {{ name }}\n")
    (project / "b.py").write_text("x = 1\n{% if half %}\nx.half()\n")
    (project / "c.py").write_text('TEXT = "{{ name }}"\ndef f(:\n')
    result = run("check", "--output-format", "json", "a.py", "b.py", "c.py")
    assert [finding["filename"] for finding in json.loads(result.stdout)] == [str(project / "c.py")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("from ${path} import model\n", False),
        ("import torch\n\nclass $Name(torch.nn.Module):\n    pass\n", False),
        ("SIZE = <%= size %>\n", False),
        ("class Net:\n    $$\n    size = 1\n", False),
        ("N = ?1\n", False),
        ("model.fit?\n", True),
        ("PRICE = '${price}'\ndef f(:\n", True),
        ("!echo $HOME\n", True),
        ("files = $(ls)\n", True),
    ],
)
def test_a_template_is_told_by_what_python_stops_at(project: Path, run: Run, text: str, told: bool) -> None:
    (project / "a.py").write_text(text)
    found = json.loads(run("check", "--output-format", "json", "a.py").stdout)
    assert [finding["code"] for finding in found] == ["AMP901"] * told


def test_companion_files_of_macos_are_no_python(project: Path, run: Run) -> None:
    (project / "._a.py").write_bytes(b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X        ")
    (project / "._b.py").write_bytes(b"\x00\x01x.half()\n")
    result = run("check", "--output-format", "json", "._a.py", "._b.py")
    assert [finding["filename"] for finding in json.loads(result.stdout)] == [str(project / "._b.py")]


def test_stdin(project: Path, run: Run) -> None:
    result = run("check", "--output-format", "json", "--stdin-filename", "sub/a.py", "-", stdin=b"x.double()\n")
    assert result.status == 1
    assert json.loads(result.stdout)[0]["filename"] == str(project / "sub" / "a.py")
    assert run("check", "--output-format", "concise", "-", stdin=b"x.double()\n").stdout.startswith("<stdin>:1:1: ")
    assert run("check", "-", stdin=b"").status == 0


def test_stdin_fix_prints_the_source(project: Path, run: Run) -> None:
    result = run("check", "--fix", "-", stdin=b"import torch\r\nx.half()\r\n")
    assert (result.status, result.stdout) == (0, "import torch\r\nx.to(torch.float16)\r\n")
    result = run("check", "--fix", "-", stdin=b"x.double()\n")
    assert (result.status, result.stdout) == (1, "x.double()\n")
    assert "TOY102" in result.stderr


def test_output_file_and_statistics(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.double(); y.double(); x.half()\n")
    result = run("check", "--output-format", "json", "--output-file", "out.json")
    assert result.stdout == ""
    assert len(json.loads((project / "out.json").read_text())) == 3
    assert run("check", "--output-file", "no/such/folder").status == 2
    result = run("check", "--statistics")
    assert result.status == 1
    assert result.stdout == "2  TOY102  toy-double\n1  TOY101  toy-half\n"
    document = json.loads(run("check", "--statistics", "--output-format", "json").stdout)
    assert document[0] == {"code": "TOY102", "name": "toy-double", "count": 2}


def test_show_files(project: Path, run: Run) -> None:
    (project / "a.py").write_text("x.double()\n")
    result = run("check", "--show-files")
    assert (result.status, result.stdout) == (0, "a.py\n")


def test_configuration(project: Path, run: Run, check: Callable[..., list[str]]) -> None:
    (project / "src").mkdir()
    (project / "src" / "a.py").write_text("x.half(); x.double(); x.off()\n")
    (project / "src" / "old.py").write_text("x.half()\n")
    (project / "pyproject.toml").write_text(
        '[tool.amplint]\nignore = ["TOY101"]\nextend-select = ["TOY201"]\nexclude = ["src/old.py"]\n'
        'scenarios = ["bf16"]\ndevice = "cpu"\ntorch-version = "2.4"\n'
    )
    result = run("check", "--output-format", "json")
    assert codes(result) == ["TOY102", "TOY201"]
    assert json.loads(result.stdout)[0]["scenarios"] == ["bf16"]
    assert json.loads(result.stdout)[0]["device"] == "cpu"
    assert check("--isolated") == ["TOY101", "TOY102", "TOY101"]
    assert check("--select", "TOY101", "src/a.py") == ["TOY101"]
    assert check("--ignore", "TOY102") == ["TOY201"]
    assert check("src/old.py") == []
    (project / "src" / "amplint.toml").write_text('select = ["TOY201"]\n')
    assert check("src") == ["TOY201"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('selekt = ["A"]', "unknown key 'selekt' (did you mean 'select'?)"),
        ('select = "A"', "'select' must be a list of strings"),
        ("device = 1", "'device' must be a string"),
        ('device = "cude"', "did you mean 'cuda'"),
        ('select = ["TOY999"]', "unknown rule selector"),
        ("select = [", "not valid TOML"),
    ],
)
def test_wrong_configuration(project: Path, run: Run, text: str, message: str) -> None:
    (project / "amplint.toml").write_text(text)
    result = run("check")
    assert result.status == 2
    assert message in result.stderr
    assert run("check", "--isolated").status == 0


def test_rules(run: Run) -> None:
    rules = json.loads(run("rules", "--output-format", "json").stdout)
    assert [rule["code"] for rule in rules][:2] == ["AMP900", "AMP901"]
    assert rules[2] == {
        "code": "TOY101",
        "name": "toy-half",
        "summary": "Flags half()",
        "severity": "error",
        "fix": "safe",
        "default": True,
        "evidence": "run",
        "url": "https://amplint.readthedocs.io/en/latest/rules/TOY101/",
    }
    assert "TOY201  toy-off" in run("rules").stdout


def test_explain(run: Run) -> None:
    result = run("explain", "toy-half")
    assert result.status == 0
    assert "What it does" in result.stdout
    assert "safe fix" in result.stdout
    assert "x.half()  # expect" in result.stdout
    assert run("explain", "TOY101").stdout == result.stdout
    assert run("explain", "AMP901").status == 0
    result = run("explain", "TOY1011")
    assert result.status == 2
    assert "did you mean 'TOY101'" in result.stderr


def test_version_and_help(run: Run) -> None:
    from amplint import __version__

    assert run("--version").stdout == f"amplint {__version__}\n"
    assert "check" in run("--help").stdout
    assert run("frobnicate").status == 2


def test_two_rules_with_one_code(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import toy_rules

    monkeypatch.setattr(toy_rules.Double, "code", "TOY101")
    result = run("check")
    assert result.status == 2
    assert "brings the code TOY101 (toy_rules.Double), which another rule has: toy_rules.Half" in result.stderr


def test_jobs_do_not_change_the_result(project: Path, run_process: Run) -> None:
    for number in range(6):
        padding = f"# {'padding' * 60_000}\n"
        (project / f"m{number}.py").write_text(f"x.half()\n{padding}y.double()\n")
    (project / "broken.py").write_text("def f(:\n")
    serial = run_process("check", "--output-format", "json", "--jobs", "1")
    parallel = run_process("check", "--output-format", "json", "--jobs", "2")
    assert (serial.status, parallel.status) == (1, 1)
    assert len(json.loads(serial.stdout)) == 13
    assert serial.stdout == parallel.stdout
