"""Which files of a project mention a name: the same whether all are searched or their words were noted before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amplint.project import files

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "all_names.py": "from .other import *\n\nnetworks = 1\n",
    "attribute.py": "import other\n\nother.network()\n",
    "called.py": "def called(network):\n    return network\n",
    "imported.py": "from .other import (\n    network as own,\n)\n",
    "longer.py": "networks = my_network = network2 = 1\n",
    "method.py": "class Own:\n    def run(self):\n        return self.network()\n",
    "umlaut.py": "größe = 1\n",
}
NAMES = ("network", ".network", "work", ".work", "größe", "größ", "two-words", "nowhere")


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> dict[str, list[str]]:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(files, "INDEXED_AFTER", request.param)
    asked = {}
    for name in NAMES:
        for ask in (files.spelling, files.mentioning):
            paths = ask(tmp_path, True, 0, name.encode())
            assert paths is not None
            asked[f"{ask.__name__} {name}"] = [path.stem for path in paths]
    return {key: stems for key, stems in asked.items() if stems}


@pytest.mark.parametrize("found", [0, 1000], indirect=True, ids=["noted", "searched"])
def test_files_that_mention_a_name(found: dict[str, list[str]]) -> None:
    assert found == {
        "spelling network": ["attribute", "called", "imported", "method"],
        "mentioning network": ["all_names", "attribute", "imported"],
        "spelling .network": ["attribute", "method"],
        "mentioning work": ["all_names"],
        "spelling größe": ["umlaut"],
    }
