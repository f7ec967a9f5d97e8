"""Programs that need torch in a process of their own, forked from one that has it imported."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from conftest import Completed

from amplint.verify import warm

RUN = """\
def run():
    import json, os, sys, traceback
    asked = json.loads(sys.argv[1])
    os.dup2(os.open(asked["stdin"], os.O_RDONLY), 0)
    os.dup2(os.open(asked["stderr"], os.O_WRONLY | os.O_CREAT), 2)
    sys.argv[:], sys.path[0] = [asked["file"], *asked["arguments"]], asked["path"]
    status = 0
    try:
        with open(asked["file"], encoding="utf-8") as file:
            code = compile(file.read(), asked["file"], "exec")
        exec(code, globals())
    except SystemExit as end:
        status = end.code or 0
    except BaseException as error:
        traceback.print_exception(type(error), error, error.__traceback__.tb_next)
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)

run()
"""


def with_torch(program: str | Path, *arguments: str, given: str = "", timeout: float = 180.0) -> Completed:
    """Run a text, or a file, as Python does, in this folder; ``given`` is on its standard input."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        file = program if isinstance(program, Path) else scratch / "program.py"
        if isinstance(program, str):
            file.write_text(program, encoding="utf-8")
        (scratch / "stdin").write_text(given)
        asked = {
            "file": str(file),
            "arguments": arguments,
            "path": str(file.parent) if isinstance(program, Path) else "",
            "stdin": str(scratch / "stdin"),
            "stderr": str(scratch / "stderr"),
        }
        with (scratch / "stdout").open("wb") as output:
            process = warm.start(RUN, json.dumps(asked), Path.cwd(), {}, output.fileno())
        try:
            status = process.wait(timeout)
        finally:
            warm.end(process)
        return Completed(status, (scratch / "stdout").read_text(), (scratch / "stderr").read_text())
