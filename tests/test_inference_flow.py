"""A cast is followed through every statement that leaves a block, to the layer that fails for it.

Each program runs in float32; with half weights torch raises in the line that is marked.
"""

from __future__ import annotations

import textwrap
import traceback
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from amplint.annotate.rows import file_dtypes
from amplint.claims.conflicts import conflicts
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER = """\
import contextlib

import torch
from torch import nn


@contextlib.contextmanager
def muffled():
    try:
        yield
    except ValueError:
        pass


class Model(nn.Module):
    def __init__(self, flag=True):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.flag = flag

    def aligned(self, x):
        return x.to(self.linear.weight.dtype)

    def forward(self, x: torch.Tensor, count: int = 1, flag: bool = True) -> torch.Tensor:
"""

FAILING = {
    "the first of several passes": """
        h = x.float()
        for number in range(2):
            if number > 0:
                h = self.linear(h)
            x = self.linear(h)  # fails
        return x
        """,
    "any pass but the first": """
        for number, row in enumerate((x, x, x)):
            if not number:
                h = self.linear(row)
            else:
                h = self.linear(row.float())  # fails
        return h
        """,
    "a pass that begins behind the first number": """
        h = x.float()
        for number in range(1, 3):
            if number == 0:
                h = self.aligned(h)
            x = self.linear(h)  # fails
        return x
        """,
    "break": """
        for _ in range(count):
            if flag:
                x = x.float()
                break
            x = self.aligned(x)
        return self.linear(x)  # fails
        """,
    "continue": """
        for _ in range(count):
            if flag:
                x = x.float()
                continue
            x = self.aligned(x)
        return self.linear(x)  # fails
        """,
    "the next pass": """
        for _ in range(count + 1):
            y = self.linear(x)  # fails
            if flag:
                x = x.float()
                continue
            x = y
        return x
        """,
    "while and else": """
        while count:
            count -= 1
            x = self.aligned(x)
        else:
            x = x.float()
        return self.linear(x)  # fails
        """,
    "a loop without end": """
        while True:
            x = x.float()
            if flag:
                break
            x = self.aligned(x)
        return self.linear(x)  # fails
        """,
    "match": """
        match count:
            case 0:
                x = self.aligned(x)
            case 1 | 2:
                x = x.float()
            case _:
                x = x * 2
        return self.linear(x)  # fails
        """,
    "match with a name": """
        match (x.float(), x):
            case (y, z):
                pass
        return self.linear(y)  # fails
        """,
    "try": """
        try:
            x = x.float()
            if flag:
                raise ValueError
            x = self.aligned(x)
        except ValueError:
            pass
        return self.linear(x)  # fails
        """,
    "finally": """
        for _ in range(count):
            try:
                if flag:
                    break
            finally:
                x = x.float()
            x = self.aligned(x)
        return self.linear(x)  # fails
        """,
    "what is swallowed": """
        with contextlib.suppress(ValueError):
            x = x.float()
            if flag:
                raise ValueError
            x = self.aligned(x)
        return self.linear(x)  # fails
        """,
    "what a context manager of the project swallows": """
        with muffled():
            x = x.float()
            raise ValueError
        return self.linear(x)  # fails
        """,
    "the second of two tests": """
        if flag:
            x = x.float()
        y = x * 2
        if flag:
            return self.linear(x)  # fails
        return self.linear(x)
        """,
    "the second of two tests of an attribute": """
        if self.flag:
            x = x.float()
        if not self.flag:
            return self.linear(x)
        return self.linear(x)  # fails
        """,
    "a flag that was answered by leaving": """
        if not flag:
            return self.linear(x)
        x = x.float()
        if not flag:
            x = self.aligned(x)
        return self.linear(x)  # fails
        """,
    "a function that finds its variable changed": """
        def inner():
            return self.linear(x)  # fails

        x = x.float()
        return inner()
        """,
    "a function that changes the variable": """
        def inner():
            nonlocal x
            x = x.float()

        inner()
        return self.linear(x)  # fails
        """,
    "a function that runs when the one around it has ended": """
        def kept(x):
            def inner():
                return self.linear(x)  # fails

            if flag:
                x = x.float()
                return inner
            x = self.aligned(x)
            return inner

        return kept(x)()
        """,
    "a function that calls one that finds its variable changed": """
        def inner():
            return self.linear(x)  # fails

        def between():
            return inner()

        between()
        x = x.float()
        return between()
        """,
    "a function that changes the variable, perhaps": """
        def inner():
            nonlocal x
            if flag:
                x = x.float()
            return self.linear(x)  # fails

        return inner()
        """,
    "a generator": """
        def wide():
            yield x.float()

        for y in wide():
            x = self.linear(y)  # fails
        return x
        """,
    "the second call": """
        y = self.linear(getattr(self, "kept", x))  # fails
        self.kept = x.float()
        return y
        """,
}


def program(body: str) -> str:
    return HEADER + textwrap.indent(textwrap.dedent(body), "        ")


def failing_rows(text: str) -> list[int]:
    return [row for row, line in enumerate(text.splitlines(), 1) if line.endswith("# fails")]


@pytest.mark.parametrize("name", FAILING)
def test_the_layer_that_fails_is_found(name: str) -> None:
    text = program(FAILING[name])
    assert found_rows(text) == failing_rows(text)


def found_rows(text: str) -> list[int]:
    source = Source(Path("/project/module.py"), text.encode())
    facts = analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))
    return [facts.span(conflict.node).start.row for conflict in conflicts(facts) if "fp16" in conflict.scenarios]


def twice(model: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> None:
    model(x)
    model(x)


HARMLESS = {
    "what the first pass replaces": """
        h = torch.ones(4)
        for number, row in enumerate(x):
            if number % 2 == 0:
                h = self.linear(row)
        return self.linear(h)
        """,
    "what the first pass aligns": """
        x = x.float()
        for number in range(2):
            x = self.aligned(x) if number == 0 else self.linear(x)
        return self.linear(x)
        """,
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_torch_runs_is_not_found(name: str) -> None:
    text = program(HARMLESS[name])
    assert found_rows(text) == []
    names: dict[str, Any] = {}
    exec(compile(text, "program.py", "exec"), names)
    twice(names["Model"]().half(), torch.ones(2, 4, dtype=torch.float16))


@pytest.mark.parametrize("name", FAILING)
def test_torch_raises_there(name: str) -> None:
    text = program(FAILING[name])
    names: dict[str, Any] = {}
    exec(compile(text, "program.py", "exec"), names)
    twice(names["Model"](), torch.ones(2, 4))
    model = names["Model"]().half()
    with pytest.raises(RuntimeError, match="dtype") as caught:
        twice(model, torch.ones(2, 4, dtype=torch.float16))
    rows = [frame.lineno for frame in traceback.extract_tb(caught.tb) if frame.filename == "program.py"]
    assert rows[-1] in failing_rows(text)


SUMMED = """
total = {start}
for row in x:
    total = total + self.linear(row){cast}
return self.linear(total){marked}
"""


@pytest.mark.parametrize(
    ("start", "cast", "fails"),
    [
        ("torch.tensor(0.0)", "", False),
        ("torch.zeros(())", "", False),
        ("0.0", "", False),
        ("torch.zeros(4)", "", True),
        ("torch.tensor(0.0)", ".float()", True),
    ],
)
def test_a_sum_over_a_loop_begins_as_a_number_does(start: str, cast: str, fails: bool) -> None:
    text = program(SUMMED.format(start=start, cast=cast, marked="  # fails" if fails else ""))
    assert failing_rows(text) == found_rows(text)
    names: dict[str, Any] = {}
    exec(compile(text, "program.py", "exec"), names)
    model = names["Model"]().half()
    with pytest.raises(RuntimeError, match="dtype") if fails else nullcontext():
        model(torch.ones(2, 4, dtype=torch.float16))


COUNTED = """
total = torch.tensor({start})
for _ in x:
    total = total + torch.ones(4, dtype=torch.int64)
return total
"""


@pytest.mark.parametrize(("start", "dtype"), [("0", "int64"), ("0.0", "float32")])
def test_a_sum_of_integers_beside_a_tensor_without_dimensions(start: str, dtype: str) -> None:
    text = program(COUNTED.format(start=start))
    names: dict[str, Any] = {}
    exec(compile(text, "program.py", "exec"), names)
    assert names["Model"]()(torch.ones(2, 4)).dtype is getattr(torch, dtype)
    source = Source(Path("/project/module.py"), text.encode())
    rows = file_dtypes(source, scenarios=(CONTROL,), device="cuda", torch_version=(2, 13)).rows
    assert [row.dtypes for row in rows if row.span.start.row == len(text.splitlines())] == [((dtype,),)]
