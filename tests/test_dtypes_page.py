"""The page of ``amplint dtypes``: complete in itself, safe to open, and saying what the JSON says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT, amplint

from amplint.annotate.hues import HUES, hue
from amplint.annotate.markup import source_lines
from amplint.infer.lattice.scenarios import SCENARIOS
from amplint.source import Source

if TYPE_CHECKING:
    from pathlib import Path

FIXTURE = ROOT / "fixtures" / "incidents" / "kv_cache_attention" / "failing.py"
HOSTILE = '''\
import torch  # </script><script>alert(1)</script><!-- <img src=http://example.com/a.png> & {{data}}


def f(x: torch.Tensor, q: torch.Tensor):
    """</style>"""
    h = torch.where(
        x > 0,

        x.float(),
        x.half(),
    )
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return torch.mm(h, q), h
'''
VOID = {"meta", "input"}


class Page(HTMLParser):
    """A page's elements and, of its lines, the text and the innermost expression of each character."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.lines: list[str] = []
        self.parts: dict[int, list[str]] = {}
        """The text inside of each expression, a part for each line."""
        self.classes: dict[int, str] = {}
        self.data: dict[str, Any] = {}
        self.notes: dict[str, set[str]] = {}
        """Notes by the id of their line, as ``class text``."""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in VOID:
            return
        self.open.append((tag, dict(attrs)))
        if tag == "code":
            self.lines.append("")
        number = dict(attrs).get("data-e")
        if number is not None:
            self.parts.setdefault(int(number), []).append("")
            assert self.classes.setdefault(int(number), dict(attrs)["class"] or "") == dict(attrs)["class"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        attributes = self.open[-1][1] if self.open else {}
        if attributes.get("id") == "data":
            self.data = json.loads(data)
        if any(tag == "code" for tag, _ in self.open):
            self.lines[-1] += data
            for _, around in self.open:
                if around.get("data-e") is not None:
                    self.parts[int(around["data-e"] or "")][-1] += data
        if "note" in (attributes.get("class") or "").split():
            (row,) = (a["id"] for _, a in self.open if a.get("class") == "row")
            self.notes.setdefault(row or "", set()).add(f"{attributes['class']} {data}")


def page(*arguments: str) -> Page:
    done = amplint("dtypes", "--output-format", "html", *arguments)
    assert (done.status, done.stderr) == (0, "")
    return Page(done.stdout)


@pytest.fixture
def hostile(project: Path) -> Path:
    path = project / "hostile.py"
    path.write_text(HOSTILE)
    return path


def test_nothing_leads_out_of_the_page(hostile: Path) -> None:
    shown = page(str(hostile), "--scenario", "bf16")
    for tag, attributes in shown.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form", "source", "video"}
        assert not {"src", "srcset", "action", "style"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)
    assert [tag for tag, _ in shown.elements].count("script") == 2
    (policy,) = (a["content"] for _, a in shown.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    for name in ("page.css", "page.js", "page.html"):
        text = resources.files("amplint.annotate").joinpath(name).read_text()
        assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttpRequest|import\(|innerHTML|eval\(", text)


def test_the_source_is_all_there(hostile: Path) -> None:
    shown = page(str(hostile), str(FIXTURE), "--scenario", "bf16")
    sources = [Source(path, path.read_bytes()) for path in sorted((FIXTURE, hostile))]
    assert shown.lines == [line for source in sources for line in source_lines(source)]
    ids = [attributes["id"] for _, attributes in shown.elements if attributes.get("class") == "row"]
    assert ids == [f"f{i}L{row + 1}" for i, source in enumerate(sources) for row in range(len(source.lines))]


def test_every_scenario_says_what_the_json_says(hostile: Path) -> None:
    files = [str(hostile), str(FIXTURE)]
    shown = page(*files, "--scenario", "bf16", "--device", "cpu")
    assert shown.data["scenarios"] == [s.name for s in SCENARIOS]
    for lane, scenario in enumerate(SCENARIOS):
        done = amplint("dtypes", *files, "--scenario", scenario.name, "--device", "cpu", "--output-format", "json")
        expected: set[tuple[Any, ...]] = set()
        for number, file in enumerate(json.loads(done.stdout)["files"]):
            for row in file["expressions"]:
                dtype, origin = row["dtype"], row["origin"]
                names = "none" if dtype is None else " ".join(sorted([dtype] if isinstance(dtype, str) else dtype))
                several = isinstance(dtype, list)
                expected.add((number, row["location"]["row"], names, None if several or not origin else origin["row"]))
        found = set()
        for file, fact, _, row in shown.data["expressions"]:
            dtype, steps = shown.data["facts"][file][fact][1 + lane]
            names = "none" if dtype < 0 else " ".join(sorted(shown.data["dtypes"][dtype][1].split(" | ")))
            places = [shown.data["places"][shown.data["steps"][file][lane][step][0]] for step in steps]
            found.add((file, row, names, places[0][1] if places and " " not in names else None))
        assert found == expected


def test_the_first_scenario_is_chosen_and_all_have_their_styles(hostile: Path) -> None:
    done = amplint("dtypes", str(hostile), "--scenario", "16-true", "--output-format", "html")
    shown = Page(done.stdout)
    picks = [attributes for tag, attributes in shown.elements if tag == "input"]
    assert [attributes["id"] for attributes in picks] == [f"s{lane}" for lane in range(7)]
    assert [SCENARIOS[lane].name for lane, a in enumerate(picks) if "checked" in a] == ["fp16"]
    rules = re.findall(r"#s(\d):checked~main :is\(([.p\d,]+)\)\{background:var\(--(\w+)-ground\)\}", done.stdout)
    style = {(int(lane), name[1:]): hue for lane, names, hue in rules for name in names.split(",")}
    for number, (file, fact, _, _) in enumerate(shown.data["expressions"]):
        maybe, *lanes = shown.data["facts"][file][fact]
        assert maybe == 0
        for lane, (dtype, _) in enumerate(lanes):
            expected = None if dtype < 0 else shown.data["dtypes"][dtype][0]
            assert style.get((lane, shown.classes[number])) == expected
    for lane in range(7):
        assert (
            f"#s{lane}:checked~main .note.s{lane},#s{lane}:checked~header .known.s{lane}{{display:inline-block}}"
            in done.stdout
        )
        assert f"#s{lane}:focus-visible~nav" in done.stdout


def test_what_fails_is_marked_in_its_scenarios(project: Path) -> None:
    path = project / "m.py"
    path.write_text(
        "import torch\nfrom torch import nn\n\n\nclass Head(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.proj = nn.Linear(8, 8)\n\n"
        "    def forward(self, x: torch.Tensor):\n        return self.proj(x.float())\n"
    )
    done = amplint("dtypes", str(path), "--scenario", "bf16", "--output-format", "html")
    shown = Page(done.stdout)
    (marked,) = (a for tag, a in shown.elements if " e" in (a.get("class") or "") and tag == "span")
    assert "".join(shown.parts[int(marked["data-e"] or "")]) == "self.proj(x.float())"
    lanes = [lane for lane, scenario in enumerate(SCENARIOS) if f"e{lane}" in (marked["class"] or "").split()]
    assert [SCENARIOS[lane].name for lane in lanes] == ["fp16", "bf16", "bf16-mixed-params", "fsdp-bf16"]
    classes = " ".join(f"s{lane}" for lane in lanes)
    assert f"note fails {classes} error AMP102 upcast-matmul-operand" in shown.notes["f0L11"]
    assert all(f"#s{lane}:checked~main .e{lane}{{text-decoration:underline wavy" in done.stdout for lane in lanes)
    known = re.findall(r'<span class="known s(\d)">dtype known of (\d+) of (\d+) expressions</span>', done.stdout)
    assert [int(lane) for lane, _, _ in known] == list(range(len(SCENARIOS)))
    assert all(0 < int(some) <= int(every) for _, some, every in known)


def test_expressions_nest(hostile: Path) -> None:
    shown = page(str(hostile), "--scenario", "fp32")
    texts = {number: [part for part in parts if part] for number, parts in shown.parts.items()}
    where = next(number for number, parts in texts.items() if parts[0] == "torch.where(")
    assert texts[where] == ["torch.where(", "x > 0,", "x.float(),", "x.half(),", ")"]
    half = next(number for number, parts in texts.items() if parts == ["x.half()"])
    assert shown.data["expressions"][half][2] == where
    assert shown.data["expressions"][where][2] == -1


def test_notes_are_those_of_the_text(hostile: Path) -> None:
    shown = page(str(hostile), "--scenario", "fp32")
    assert shown.notes["f0L9"] == {
        "note f32 changed s3 .float(): float16 -> float32",
        "note f32 changed s4 s5 s6 .float(): bfloat16 -> float32",
    }
    mm = {
        "s0 s1 s2": "float32",
        "s3": "float32, float16",
        "s4 s5 s6": "float32, bfloat16",
    }
    assert shown.notes["f0L13"] == {
        f"note bf16 changed {lanes} mm(): {before} -> bfloat16 (autocast)" for lanes, before in mm.items()
    }


def test_an_origin_has_its_chain(hostile: Path) -> None:
    shown = page(str(hostile), "--scenario", "bf16-mixed")
    (mm,) = (number for number, parts in shown.parts.items() if parts == ["torch.mm(h, q)"])
    file, fact, _, _ = shown.data["expressions"][mm]
    steps = shown.data["steps"][file][2]
    (number,) = shown.data["facts"][file][fact][3][1]
    place, dtype, autocast, before = steps[number]
    assert (shown.data["dtypes"][dtype][1], autocast) == ("bfloat16", 1)
    assert shown.data["places"][place][:2] == [0, 13]
    decided = {tuple(shown.data["places"][steps[step][0]][:2]) for step in before}
    assert (0, 4) in decided  # q, as the caller passes it
    assert decided & {(0, 6), (0, 9)}  # h


def test_the_page_says_nothing_of_the_machine(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "secret" / "place"
    outside.mkdir(parents=True)
    (outside / "model.py").write_text("import torch\n\n\ndef f(x: torch.Tensor):\n    return x.half()\n")
    (project / "own.py").write_text("import torch\n")
    done = amplint(
        "dtypes", str(outside / "model.py"), str(project / "own.py"), "--scenario", "bf16", "--output-format", "html"
    )
    assert str(tmp_path) not in done.stdout
    assert re.findall(r"<summary>(.*?)</summary>", done.stdout) == ["own.py", "place/model.py"]


def test_size(project: Path) -> None:
    """A thousand lines that are dense with tensors stay below 1.5 MB."""
    head = "import torch\nfrom torch import nn\nclass M(nn.Module):\n  def forward(self, x: torch.Tensor):\n    h = x\n"
    source = head + "    h = torch.relu(h.float() * x).to(x.dtype)\n" * 1000
    (project / "long.py").write_text(source)
    done = amplint("dtypes", "long.py", "--scenario", "bf16", "--output-format", "html")
    assert done.stdout.count("data-e=") > 5000
    assert len(done.stdout) < 1_500_000


def colours(dark: bool) -> dict[str, str]:
    style = resources.files("amplint.annotate").joinpath("page.css").read_text()
    light_block, dark_block = re.findall(r":root \{(.*?)\n *\}", style, re.DOTALL)[:2]
    return dict(re.findall(r"--([\w-]+): (#\w+)", dark_block if dark else light_block))


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast(dark: bool) -> None:
    """WCAG 2 AA for small text: 4.5 to 1. The source is written in ``text`` on every dtype's ground."""
    named = colours(dark)
    assert set(colours(True)) == set(colours(False))
    hues = [name for name in HUES if name != "none"]
    pairs = [(name, f"{name}-soft") for name in hues] + [("text", f"{name}-soft") for name in hues]
    pairs += [(name, "panel") for name in (*hues, "text", "muted", "accent")]
    pairs += [(name, "hover") for name in (*hues, "text", "muted")]
    pairs += [("muted", "page"), ("panel", "accent"), ("several", "other-soft")]
    for text, ground in pairs:
        high, low = sorted((luminance(named[text]), luminance(named[ground])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ground)


def test_dtypes_differ_without_colour() -> None:
    """Each floating dtype has an underline of its own."""
    style = resources.files("amplint.annotate").joinpath("page.css").read_text()
    grounds = {name: re.sub(rf"var\(--{name}\w*(-soft)?\)", "", ground)
               for name, ground in re.findall(r"--(\w+)-ground: (.*?);", style)}  # fmt: skip
    assert set(grounds) == set(HUES)
    assert len(set(grounds.values())) == len(grounds)
    assert {hue((name,)) for name in ("float32", "bfloat16", "float16", "float64", "complex64", "int64")} == set(
        HUES
    ) - {
        "several",
        "none",
    }


def test_the_script_works_in_a_browser(tmp_path: Path, hostile: Path) -> None:
    """What a hover, the keyboard, a click and another scenario do, where a browser is at hand.

    A page without a window is told of the focus: whether a browser does that by itself hangs on its mood.
    """
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no chromium to draw the page with")
    text = amplint("dtypes", str(hostile), "--scenario", "bf16", "--output-format", "html").stdout
    acts = """
      const log = [], say = () => log.push(document.getElementById("about").innerText.replace(/\\s+/g, " "));
      const at = (row, i) => document.querySelectorAll("#f0L" + row + " code [data-e]")[i];
      const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
      at(13, 0).dispatchEvent(new MouseEvent("mouseover", {bubbles: true})); say();
      document.getElementById("s3").click(); say();
      at(9, 1).click();
      at(13, 1).dispatchEvent(new MouseEvent("mouseover", {bubbles: true})); say();
      document.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape", bubbles: true}));
      const told = () => document.activeElement.dispatchEvent(new FocusEvent("focusin", {bubbles: true}));
      document.querySelector('code [tabindex="0"]').focus(); told(); say();
      press("ArrowDown"); told(); press("ArrowRight"); told(); say();
      log.push(getComputedStyle(at(9, 0)).backgroundImage.slice(0, 15), document.querySelectorAll(".shown").length);
      document.body.append(JSON.stringify(log));
    """
    file = tmp_path / "page.html"
    file.write_text(text.replace("</body>", f"<script>{acts}</script></body>"))
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
    found = re.search(r"\[\"torch.*\](?=\s*</body>)", done.stdout)
    assert found is not None
    hovered, switched, kept, focused, moved, ground, marked = json.loads(found[0].replace("&gt;", ">"))
    assert hovered.startswith(
        "torch.mm(h, q) bfloat16 in line 13 Where it was decided bfloat16 result of mm, by autocast"
    )
    assert "line 4" in hovered
    assert switched.startswith("torch.mm(h, q) bfloat16 in line 13")
    assert "float16 `q` has what the caller passes line 4" in switched
    assert kept.startswith("x.float() float32 in line 9")
    assert "Inside of" in kept
    assert focused.startswith("torch.where( x > 0, x.float(), x.half(), )")
    assert moved.startswith("x float16 in line 7")
    assert ground == "linear-gradient"
    assert marked == 1
