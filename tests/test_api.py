"""``amplint.check_source`` and ``check_paths``: the findings of the command line, from Python, on any executor."""

from __future__ import annotations

import doctest
import inspect
import json
import pickle
import subprocess
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import click
import pytest
from conftest import ROOT, Completed
from conftest import amplint as command

import amplint
from amplint import api
from amplint.cli.options import judged_by
from amplint.executing import spread

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

INCIDENTS = ROOT / "fixtures" / "incidents"
CODE = """\
import torch


def forward(x: torch.Tensor):
    with torch.cuda.amp.autocast():
        return (x @ x).masked_fill(x > 0, -1e9)
"""


def by_command(*arguments: str) -> list[tuple[str, str, int, str]]:
    """What ``amplint check`` reports: file, code, row, fingerprint."""
    found = json.loads(command("check", "--output-format", "json", *arguments).stdout)
    return [(one["filename"], one["code"], one["location"]["row"], one["fingerprint"]) for one in found]


def told(findings: Any) -> list[tuple[str, str, int, str]]:
    return [(str(one.filename), one.code, one.span.start.row, one.fingerprint) for one in findings]


def test_the_examples_of_the_documentation() -> None:
    assert doctest.testmod(api).attempted > 0
    assert doctest.testmod(api).failed == 0
    page = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False)
    assert (page.attempted > 5, page.failed) == (True, 0)


def test_findings_are_those_of_the_command() -> None:
    wanted = by_command(str(INCIDENTS))
    assert len(wanted) > 5
    assert told(amplint.check_paths(INCIDENTS)) == wanted
    assert told(amplint.check_paths([str(INCIDENTS)], scenarios="fp16,bf16", select=["AMP1"])) == by_command(
        str(INCIDENTS), "--scenario", "fp16", "--scenario", "bf16", "--select", "AMP1"
    )


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_an_executor_changes_nothing(kind: type[ThreadPoolExecutor | ProcessPoolExecutor]) -> None:
    with kind(2) as executor:
        assert list(amplint.check_paths(INCIDENTS, executor=executor)) == list(amplint.check_paths(INCIDENTS))


def test_options_are_those_of_the_command() -> None:
    names = {option.name for option in click.command()(judged_by(lambda: None)).params} | {"extend_select"}
    for function in (amplint.check_source, amplint.check_paths):
        parameters = set(inspect.signature(function).parameters)
        assert {"scenarios" if name == "scenario" else name for name in names} <= parameters


def test_source(project: Path) -> None:
    assert [one.code for one in amplint.check_source(CODE)] == ["AMP601", "AMP301"]
    (finding,) = amplint.check_source(CODE.encode(), select="AMP601", filename="sub/model.py")
    assert (finding.filename, finding.span.start.row) == (project / "sub" / "model.py", 5)
    assert [one.code for one in amplint.check_source("def f(:\n")] == ["AMP901"]
    assert list(amplint.check_source("")) == []


def test_source_is_judged_by_the_configuration_of_its_place(project: Path) -> None:
    (project / "amplint.toml").write_text('ignore = ["AMP601"]\n')
    (project / "other.toml").write_text('select = ["AMP601"]\n')
    assert [one.code for one in amplint.check_source(CODE)] == ["AMP301"]
    assert [one.code for one in amplint.check_source(CODE, isolated=True)] == ["AMP601", "AMP301"]
    assert [one.code for one in amplint.check_source(CODE, config=project / "other.toml")] == ["AMP601"]
    assert [one.code for one in amplint.check_source(CODE, filename="/nowhere/a.py")] == ["AMP601", "AMP301"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"select": ["AMP999"]}, "unknown rule selector"),
        ({"scenarios": "autocast-fp61"}, "did you mean 'autocast-fp16'"),
        ({"device": "cdua"}, "did you mean 'cuda'"),
        ({"torch_version": "9.9"}, "not known"),
        ({"min_certainty": "likly"}, "unknown min_certainty 'likly' .did you mean 'likely'"),
        ({"min_severity": "grave"}, "unknown min_severity 'grave'; known: error, warning"),
        ({"pedantic": True, "min_certainty": "proven"}, "contradicts"),
        ({"config": "nowhere.toml"}, "cannot read"),
        ({"config": "a.toml", "isolated": True}, "contradict"),
    ],
)
def test_wrong_options_are_refused_at_once(project: Path, options: dict[str, Any], message: str) -> None:
    for function in (amplint.check_source, amplint.check_paths):
        with pytest.raises(amplint.UsageError, match=message):
            function("x = 1\n", **options)


def test_what_cannot_be_read_is_told_behind_the_findings(project: Path) -> None:
    (project / "a.py").write_text(CODE)
    given: list[Path | str] = [project / "nowhere.py", "a.py"]
    found = amplint.check_paths(given)
    assert [next(found).code, next(found).code] == ["AMP601", "AMP301"]
    with pytest.raises(amplint.CheckFailed, match=r"no such file or directory: .*nowhere\.py") as raised:
        next(found)
    assert pickle.loads(pickle.dumps(raised.value)).failures == raised.value.failures
    lines: list[str] = []
    assert len(list(amplint.check_paths(given, on_failure=lines.append))) == 2
    assert tuple(lines) == raised.value.failures


def test_files_are_looked_at_anew_in_every_call(project: Path) -> None:
    (project / "pyproject.toml").write_text('[project]\nname = "p"\ndependencies = ["torch<1.13"]\n')
    (project / "a.py").write_text(CODE)
    assert [one.code for one in amplint.check_paths("a.py")] == ["AMP301"]
    (project / "pyproject.toml").write_text('[project]\nname = "p"\n')
    assert [one.code for one in amplint.check_paths("a.py")] == ["AMP601", "AMP301"]


def test_findings_can_be_kept(project: Path) -> None:
    finding = next(amplint.check_source(CODE))
    assert pickle.loads(pickle.dumps(finding)) == finding
    with pytest.raises(AttributeError):
        finding.code = "AMP101"  # type: ignore[misc]


def test_importing_amplint_is_cheap() -> None:
    code = "import sys, amplint; print([name for name in sys.modules if name.startswith('amplint.')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert set(amplint.__all__) <= set(dir(amplint))
    assert all(getattr(amplint, name) is not None for name in amplint.__all__)
    with pytest.raises(AttributeError, match="no attribute 'check_path'"):
        amplint.check_path  # noqa: B018


def test_a_cluster_changes_nothing() -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = list(amplint.check_paths(INCIDENTS, executor=client.get_executor()))
    assert found == list(amplint.check_paths(INCIDENTS))


class Refusing(Executor):
    """An executor that runs here, and fails for some files."""

    def __init__(self, wrong: str) -> None:
        self.wrong = wrong
        self.given: list[Future[Any]] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.given.append(future)
        if self.wrong in str(arguments):
            future.set_exception(MemoryError("no room"))
        elif len(self.given) <= 2:
            future.set_result(function(*arguments, **named))
        return future


def test_many_files_are_given_together() -> None:
    """A cluster loses its connection over ten thousand pieces of work. One that fails is done again, file by file."""
    given: list[int] = []

    def double(number: int) -> int:
        if number == 77:
            raise ArithmeticError("no")
        return 2 * number

    class Counting(ThreadPoolExecutor):
        def submit(self, work: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
            given.append(len(arguments[0]))
            return super().submit(work, *arguments, **named)

    with Counting(2) as executor:
        results = list(spread(executor, double, range(640)))
    assert [item for item, _ in results] == list(range(640))
    assert [got for item, got in results if item != 77] == [2 * item for item in range(640) if item != 77]
    assert isinstance(results[77][1], ArithmeticError)
    assert given == [10] * 64 + [1] * 10


def test_an_executor_that_fails_for_one_file(project: Path) -> None:
    for name in ("a.py", "b.py"):
        (project / name).write_text(CODE)
    lines: list[str] = []
    found = amplint.check_paths(".", executor=Refusing("b.py"), on_failure=lines.append)
    assert {one.filename.name for one in found} == {"a.py"}
    assert lines == [f"the executor fails on {project / 'b.py'}: MemoryError: no room"]


def test_what_is_not_wanted_any_more_is_cancelled(project: Path) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (project / name).write_text(CODE)
    executor = Refusing("nothing")
    found = amplint.check_paths(".", executor=executor)
    next(found)
    found.close()  # type: ignore[attr-defined]
    assert [future.cancelled() for future in executor.given] == [False, False, True]


IN_A_POOL = """
import sys
from concurrent.futures import ProcessPoolExecutor

import amplint

lines = []
with ProcessPoolExecutor(2) as pool:
    for finding in amplint.check_paths(".", executor=pool, on_failure=lines.append):
        print(finding.filename.name, finding.code)
print(*lines, sep="\\n")
"""


def test_a_file_that_ends_its_process_costs_no_other_its_findings(
    project: Path, run_process: Callable[..., Completed]
) -> None:
    for name in "abcdef":
        (project / f"{name}.py").write_text("x.dies()\n" if name == "c" else "x.half()\n")
    done = run_process(python=("-c", IN_A_POOL))
    assert done.stdout.splitlines() == [
        *(f"{name}.py TOY101" for name in "abdef"),
        f"internal error: a process died of checking {project / 'c.py'}",
    ]


def test_nor_in_the_command(project: Path, run_process: Callable[..., Completed]) -> None:
    for name in "abcdef":
        code = "x.dies()\n" if name == "c" else "x.half()\n"
        (project / f"{name}.py").write_text(f"{code}# {'padding' * 60_000}\n")
    done = run_process("check", "--output-format", "concise", "--jobs", "2")
    assert done.status == 2
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [f"{name}.py" for name in "abdef"]
    assert f"a process died of checking {project / 'c.py'}\n" in done.stderr
