"""What the tests share: the real command with a toy rule pack, in a process of its own or in this one."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from amplint.cli.main import main
from amplint.infer.names.folders import root_of
from amplint.infer.state.facts import FileFacts
from amplint.judge import preview

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from language_client import Editor
    from preflight_machine import Machine

    from amplint.infer.lattice.scenarios import Scenario
    from amplint.source import Source

# What the tests say holds without a GPU, which a machine that has one need not show; benchmarks ask a real one.
os.environ["CUDA_VISIBLE_DEVICES"] = ""
# Tests run beside each other, and use little of what pip would compile.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["PIP_NO_COMPILE"] = "0"  # a "1" would have pip compile: the value is that of "compile"

ROOT = Path(__file__).parent.parent
TOY_RULES = Path(__file__).with_name("toy_rules.py")


@dataclass(frozen=True)
class Completed:
    """A finished process, or an invocation in this one."""

    status: int
    stdout: str
    stderr: str


def pytest_collection_finish() -> None:
    """Garbage is looked for among what tests make, not among the modules that they import, and not for every few."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup() -> None:
    forget_the_test()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call() -> None:
    forget_the_test()


def forget_the_test() -> None:
    """What runs with torch is forked from one process while the environment is the same (amplint.verify.warm)."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)


@pytest.fixture(autouse=True)
def no_kind_is_in_preview(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which kinds are in preview changes with each round of readers: what runs in this process is judged without."""
    monkeypatch.setattr(preview, "kinds", lambda: ())


@pytest.fixture(autouse=True, scope="session")
def cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What checks keep does not go to the user's own folder."""
    os.environ["AMPLINT_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def autocast_state_is_left_as_found() -> Iterator[None]:
    """What one test leaves switched on would decide another's outcome, depending on their order."""
    before = autocast_state()
    yield
    if before is not None:
        assert autocast_state() == before, "this test leaves torch's autocast state changed"


def autocast_state() -> list[object] | None:
    """Torch's autocast switches, dtypes, cache flag and depth of regions; None before anything imported torch.

    At another depth than 0 the end of the outermost region does not clear the cache of casts.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    devices = ("cpu", "cuda", "mps", "xpu")
    torch.autocast_increment_nesting()
    return [
        torch.autocast_decrement_nesting(),
        torch.is_autocast_cache_enabled(),
        *((torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)) for device in devices),
    ]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter of an environment of its own, for preflight to look into."""
    from preflight_machine import make_interpreter

    return make_interpreter(tmp_path_factory.mktemp("environment"))


@pytest.fixture
def machine(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, python: Path) -> Machine:
    """A machine for preflight, without a GPU until a test gives it one."""
    from preflight_machine import Machine

    made = Machine(tmp_path, monkeypatch, python)
    made.command("nvidia-smi", "exit 1")
    return made


@pytest.fixture(scope="module")
def one_editor() -> Iterator[Editor]:
    """A real language client and ``amplint server``, without a workspace: starting it takes longer than most tests."""
    from language_client import Editor

    loop = asyncio.new_event_loop()
    editor = Editor(None)
    editor.loop = loop
    loop.run_until_complete(editor.__aenter__())
    yield editor
    loop.run_until_complete(editor.__aexit__(None))
    loop.close()


@pytest.fixture
def editor(one_editor: Editor) -> Iterator[Editor]:
    """That client, with nothing open and nothing said."""
    yield one_editor
    assert one_editor.loop is not None
    one_editor.loop.run_until_complete(one_editor.close_all())


@pytest.fixture
def toy_process(tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Start ``python -m amplint`` with the toy rules in the place of the built-in ones."""
    packs = tmp_path / "packs"
    packs.mkdir()
    shutil.copy(TOY_RULES, packs / "amplint_rules.py")

    def start(arguments: Sequence[str], *, python: Sequence[str] = ("-m", "amplint"), **environment: str) -> object:
        path = os.pathsep.join([str(packs), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        return subprocess.Popen(
            [sys.executable, *python, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, **environment},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    return start  # type: ignore[return-value]


@pytest.fixture
def run_process(toy_process: Callable[..., subprocess.Popen[bytes]]) -> Callable[..., Completed]:
    """Run ``amplint`` with the toy rules in a process of its own."""

    def run(*arguments: str, stdin: bytes = b"", **options: object) -> Completed:
        process = toy_process(arguments, **options)
        stdout, stderr = process.communicate(stdin, timeout=120)
        return Completed(process.returncode, stdout.decode(), stderr.decode())

    return run


@pytest.fixture
def toy_pack(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy rules in the place of the built-in ones, and no inference, in this process."""
    import toy_rules

    from amplint.project import ends

    monkeypatch.setitem(sys.modules, "amplint_rules", toy_rules)
    monkeypatch.setattr(ends, "analyse", no_facts)


def no_facts(
    source: Source,
    *,
    scenarios: tuple[Scenario, ...],
    device: str,
    torch_version: tuple[int, int],
    oldest_torch: tuple[int, int] | None = None,
    named: bool = False,
) -> FileFacts:
    """What the inference says of a file without tensors."""
    return FileFacts(
        *(source, source.path, device, torch_version, scenarios, (), (), (), ()),
        oldest=oldest_torch,
        named=named,
        root=root_of(source.path.parent),
    )


@pytest.fixture
def run(toy_pack: None) -> Callable[..., Completed]:
    """Run ``amplint`` with the toy rules in this process."""
    from amplint.cli.main import main

    def invoke(*arguments: str, stdin: bytes = b"") -> Completed:
        result: Result = CliRunner().invoke(main, list(arguments), input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Completed(result.exit_code, result.stdout_bytes.decode(), result.stderr)

    return invoke


def amplint(*arguments: str) -> Completed:
    """Run the command with the built-in rules, in this process."""
    result: Result = CliRunner().invoke(main, list(arguments))
    return Completed(result.exit_code, result.stdout, result.stderr)


def amplint_in(folder: Path, *arguments: str) -> Completed:
    """Run it in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return amplint(*arguments)
