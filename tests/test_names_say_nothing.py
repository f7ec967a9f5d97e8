"""No finding rests on what an author chose and nothing reads: names, comments, docstrings, the file's name, the order
of definitions, the spelling of an import. Every example is checked as it is and in disguise: both say the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from disguise import SAYS, aliased, by_name, disguised, loaded, moved, neutral, original, silent, talkative
from rule_examples import RULES, Case, every_bad, every_good, ids

from amplint.engine import Options, check_file
from amplint.source import Source, Span

if TYPE_CHECKING:
    from disguise import Change, Program

    from amplint.rule_base import Example

CASES = [*every_bad(), *every_good()]
PLACE = "/project/module.py"


@dataclass(frozen=True)
class Disguise:
    """Changes of a program, a comment on each of its lines, and the file that holds it then."""

    changes: tuple[Change, ...]
    comment: str = ""
    file: str = PLACE


DISGUISES = {
    "without a word": Disguise((silent, neutral), file="/project/part/v0.py"),
    "with misleading words": Disguise((talkative, loaded), SAYS, "/project/tests/test_fp16_quantize.py"),
    "torch as th": Disguise((aliased,)),
    "imported by name": Disguise((by_name,)),
    "the other way round": Disguise((moved,)),
}


def found(program: Program, example: Example, file: str) -> list[tuple[str, str, tuple[str, ...], int | None]]:
    """What is reported: the code, how sure, in which scenarios, and the mark of the node that it lies on."""
    major, minor = (example.torch_version or "2.13").split(".")
    options = Options(
        RULES, device=example.device, torch_version=(int(major), int(minor)), pedantic=True, each_place=True
    )
    marks = program.marks()
    reported = []
    for finding in check_file(Source(Path(file), program.text.encode()), options).findings:
        start = Span(finding.span.start, finding.span.start)
        mark = marks.get(finding.span, marks.get(start))
        reported.append((finding.code, finding.certainty.value, finding.scenarios, mark))
    return sorted(reported, key=str)


@pytest.mark.parametrize("name", DISGUISES)
@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_a_disguise_changes_no_finding(case: Case, name: str) -> None:
    disguise, text = DISGUISES[name], case.example.source
    program = disguised(text, *disguise.changes, comment=disguise.comment)
    assert found(program, case.example, disguise.file) == found(original(text), case.example, PLACE)


def test_disguises_change_what_they_are_about() -> None:
    text = 'import torch\n\n\ndef mean(values):  # of all\n    """Their mean."""\n    return torch.sum(values) / 2\n'
    assert disguised(text, silent, neutral).text == "import torch\n\ndef v_0(v_1):\n    return torch.sum(v_1) / 2"
    assert (
        disguised(text, silent, aliased).text
        == "import torch as th\n\ndef mean(values):\n    return th.sum(values) / 2"
    )
    named = disguised(text, silent, by_name).text
    assert named == "from torch import sum as sum_\nimport torch\n\ndef mean(values):\n    return sum_(values) / 2"
    spoken = disguised(text, talkative, loaded, comment=SAYS).text.splitlines()
    assert all(line.endswith(SAYS) for line in spoken)
    assert sum(SAYS in line.partition("#")[0] for line in spoken) == 1
