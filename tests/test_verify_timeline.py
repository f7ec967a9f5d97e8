"""The page of a verified run: complete in itself, safe to open, and true to the events."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest

from amplint.verify.event import KINDS, Event
from amplint.verify.timeline import TimelineRun, render, sources_of, totals

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = 'x = "</script><script>alert(1)</script><!--"  # <img src=http://example.com/a.png> & {{data}}\ny = x + 1\n'
VOID = {"meta", "br", "img", "link", "input", "hr"}


def event(**changes: Any) -> Event:
    made = Event(
        order=1, kind="promotion", op="aten.add.Tensor", function=None, inputs=("bfloat16", "float32"),
        output="float32", shapes=((2, 3), (3,)), bytes=12, filename="/project/model.py", row=2, where="Block.forward",
        phase="forward", operands=("self", "other"), count=2,
    )  # fmt: skip
    return replace(made, **changes)


def run(**changes: Any) -> TimelineRun:
    made = TimelineRun(
        target="/project/model.py::Block", scenario="autocast-bf16", mode="train", device="cuda", run_on="cpu",
        verdict="confirmed", torch="2.13.0", events=(event(), event(order=2, kind="kept", bytes=0)),
        error="RuntimeError: <b>mixed</b>", failure=event(order=3, kind="failed", output=None, note="</style>"),
        codes=("AMP104",), seconds=0.5, reproduce="amplint verify model.py::Block",
    )  # fmt: skip
    return replace(made, **changes)


class Page(HTMLParser):
    """The elements of a page, with the text of each kind; unbalanced ones are an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.setdefault(self.open[-1] if self.open else "", []).append(data)

    @property
    def data(self) -> dict[str, Any]:
        (text,) = (text for text in self.text["script"] if text.startswith("{"))
        return json.loads(text)  # type: ignore[no-any-return]


def page(*runs: TimelineRun, sources: dict[str, str] | None = None) -> Page:
    return Page(render(runs, {"/project/model.py": SOURCE} if sources is None else sources))


def test_json_round_trip() -> None:
    made = run(first_nonfinite=event(kind="nonfinite", note="NaN"))
    assert TimelineRun.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_from_what_the_instrument_gives() -> None:
    made = run()
    flow = {name: made.to_json()[name] for name in ("events", "failure", "first_nonfinite", "dropped")}
    about = {
        name: getattr(made, name) for name in ("target", "scenario", "mode", "device", "run_on", "verdict", "torch")
    }
    read = TimelineRun.from_json({**about, **json.loads(json.dumps(flow))})
    assert read == replace(made, error=None, codes=(), seconds=0.0, reproduce="")


def test_totals() -> None:
    events = [
        event(kind="autocast-cast", count=3, bytes=30),
        event(kind="explicit-cast", count=1, bytes=4),
        event(count=2, bytes=12),
        event(count=1, bytes=5, phase="backward"),
        event(kind="kept", count=9, bytes=0),
        event(kind="failed", count=1, bytes=0),
    ]
    found = {kind: (total["count"], total["bytes"]) for kind, total in totals(events).items() if total["count"]}
    assert found == {
        "autocast-cast": (3, 30),
        "explicit-cast": (1, 4),
        "promotion": (3, 17),
        "kept": (9, 0),
        "failed": (1, 0),
    }


def test_nothing_leads_out_of_the_page() -> None:
    shown = page(run())
    for tag, attributes in shown.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form", "a"}
        assert not {"src", "href", "srcset", "action", "style"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
    (policy,) = (a["content"] for _, a in shown.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    for name in ("timeline.css", "timeline.js"):
        text = resources.files("amplint.verify").joinpath(name).read_text()
        assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(|innerHTML|</|eval\(", text)
        assert set(re.findall(r"https?://[\w./]+", text)) <= {"http://www.w3.org/2000/svg"}  # a namespace, never loaded


def test_source_and_texts_are_only_ever_text() -> None:
    shown = page(run(verdict="<i>", reproduce="</script>", target="/project/<u>.py::B"))
    assert [tag for tag, _ in shown.elements].count("script") == 2
    assert not {"i", "u", "img"} & {tag for tag, _ in shown.elements}
    assert [tag for tag, _ in shown.elements].count("b") == 1  # the header's own
    assert shown.data["files"][0]["lines"] == SOURCE.splitlines()
    assert shown.data["runs"][0]["error"] == "RuntimeError: <b>mixed</b>"
    assert shown.data["runs"][0]["failure"]["note"] == "</style>"
    assert "RuntimeError: <b>mixed</b>" in "".join(shown.text["td"])


def test_data_of_the_page() -> None:
    data = page(run(), run(scenario="bf16", failure=None, error=None, verdict="clean")).data
    assert [r["scenario"] for r in data["runs"]] == ["autocast-bf16", "bf16"]
    assert data["runs"][0]["totals"]["promotion"]["bytes"] == 12
    assert data["runs"][0]["events"][0]["filename"] == 0
    assert set(data["kinds"]) == set(KINDS)


def test_every_kind_has_its_lane_and_its_place_in_the_order() -> None:
    script = resources.files("amplint.verify").joinpath("timeline.js").read_text()
    lanes = script[script.index("const LANES") : script.index("const SHORT")]
    changes = script[script.index("const CHANGES") : script.index("const LANES")]
    for kind in KINDS:
        assert f'"{kind}"' in lanes
        assert f'"{kind}"' in changes


def test_the_page_says_nothing_of_the_machine(project: Path) -> None:
    here, packages = project / "pkg" / "model.py", project.parent / "env" / "site-packages" / "lib" / "ops.py"
    elsewhere = project.parent / "secret" / "home" / "code.py"
    made = run(
        target=f"{here}::Block",
        events=tuple(event(filename=str(path)) for path in (here, packages, elsewhere)),
        failure=event(filename="", row=0, kind="failed"),
    )
    text = render([made], {})
    assert str(project.parent) not in text
    names = {file["name"] for file in Page(text).data["files"]}
    assert names == {"pkg/model.py", "lib/ops.py", "home/code.py", "(no source line)"}


def test_sources_are_read_where_they_can_be(tmp_path: Path) -> None:
    good, latin = tmp_path / "good.py", tmp_path / "latin.py"
    good.write_text("a\n")
    latin.write_bytes("# coding: latin-1\n# é\n".encode("latin-1"))
    broken = tmp_path / "broken.py"
    broken.write_bytes(b"# \xff\n")
    names = [str(path) for path in (good, latin, broken, tmp_path / "missing.py")]
    made = run(events=tuple(event(filename=name) for name in names), failure=None)
    assert sources_of([made]) == {str(good): "a\n", str(latin): "# coding: latin-1\n# é\n"}


def test_no_run_is_an_error() -> None:
    with pytest.raises(ValueError, match="no run was traced"):
        render([], {})


def colours(dark: bool) -> dict[str, str]:
    style = resources.files("amplint.verify").joinpath("timeline.css").read_text()
    light_block, dark_block = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]
    return dict(re.findall(r"--([\w-]+): (#\w+)", dark_block if dark else light_block))


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast(dark: bool) -> None:
    """WCAG 2 AA for small text: 4.5 to 1."""
    named = colours(dark)
    assert set(colours(True)) == set(colours(False))
    pairs = [(name.removesuffix("-soft"), name) for name in named if name.endswith("-soft") and name != "quiet-soft"]
    pairs += [(hue, "panel") for hue in ("f32", "f16", "bf16", "f64", "f8", "other", "bad", "warn", "text", "muted")]
    pairs += [
        ("muted", "quiet-soft"),
        ("muted", "page"),
        ("text", "bad-soft"),
        ("text", "warn-soft"),
        ("panel", "accent"),
    ]
    for text, ground in pairs:
        high, low = sorted((luminance(named[text]), luminance(named[ground])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ground)


def test_the_script_draws_in_a_browser(tmp_path: Path) -> None:
    """What the page shows after its script ran, where a browser is at hand."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no chromium to draw the page with")
    file = tmp_path / "page.html"
    failing = run(first_nonfinite=event(row=1, kind="nonfinite", note="overflow: 70000"))
    file.write_text(render([run(verdict="clean", failure=None, error=None), failing], {"/project/model.py": SOURCE}))
    done = subprocess.run(
        [
            *(browser, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"),
            *("--virtual-time-budget=2000", "--dump-dom", file.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if "</html>" not in done.stdout:
        pytest.skip(f"{browser} does not run here")
    drawn = done.stdout.partition("<main")[2].partition("</main>")[0]
    assert 'id="f0L2" class="row has f32 failed"' in drawn
    assert "alert(1)&lt;/script&gt;" in drawn
    assert "&lt;/style&gt;" in drawn  # the failure's text, below its line
    assert 'class="chip promotion f32"' in drawn
    assert "overflow: 70000" in drawn
    assert drawn.count('aria-pressed="true"') == 3  # the confirmed run, all lines, both phases
