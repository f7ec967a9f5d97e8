"""The libcst visitor: positions as in ast, edits that keep code valid, names spelled as the file can spell them."""

from __future__ import annotations

import ast
import sysconfig
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst
import libcst.matchers as m
import pytest
import toy_rules
from conftest import no_facts

from amplint.finding import Applicability, Certainty, Severity
from amplint.fix import apply_edits
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS
from amplint.lossless import Lossless
from amplint.source import Source, Span
from amplint.visit import RuleFailure, Visit, run_rules

if TYPE_CHECKING:
    from amplint.finding import Edit
    from amplint.infer.state.facts import FileFacts
    from amplint.rule import Rule, Suspect

STDLIB = Path(sysconfig.get_paths()["stdlib"])

PAIRS = {
    ast.Call: "Call",
    ast.With: "With",
    ast.AsyncWith: "With",
    ast.ClassDef: "ClassDef",
    ast.FunctionDef: "FunctionDef",
    ast.AsyncFunctionDef: "FunctionDef",
    ast.BinOp: "BinaryOperation",
    ast.BoolOp: "BooleanOperation",
    ast.Compare: "Comparison",
    ast.UnaryOp: "UnaryOperation",
    ast.AugAssign: "AugAssign",
    ast.Assign: "Assign",
    ast.AnnAssign: "AnnAssign",
    ast.Return: "Return",
    ast.Attribute: "Attribute",
    ast.Subscript: "Subscript",
    ast.Name: "Name",
    ast.keyword: "Arg",
    ast.Tuple: "Tuple",
    ast.GeneratorExp: "GeneratorExp",
    ast.If: "If",
    ast.Expr: "Expr",
}


def facts_of(source: Source) -> FileFacts:
    return no_facts(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=(2, 13))


def visit_of(code: str) -> Visit:
    source = Source(Path("/x.py"), code.encode())
    return Visit(source, facts_of(source))


def first(visit: Visit, matcher: m.BaseMatcherNode, index: int = 0) -> cst.CSTNode:
    return m.findall(visit.module, matcher)[index]


def applied(visit: Visit, *edits: Edit) -> str:
    text = apply_edits(visit.source, edits).text
    ast.parse(text)
    return text


def sample() -> list[Path]:
    files = sorted(STDLIB.glob("*.py")) + sorted((STDLIB / "asyncio").glob("*.py"))
    return files[::6]


def test_libcst_places_nodes_where_ast_does() -> None:
    """In the standard library. Passed over: what is inside f-strings, which ast misplaces before Python 3.12, and the
    tuple of ``x[a, b]``, which libcst has no node for."""
    missing: list[str] = []
    seen: Counter[str] = Counter()
    for path in sample():
        source = Source(path, path.read_bytes())
        wanted: dict[Span, list[str]] = {}
        passed_over: set[int] = set()
        for node in ast.walk(source.tree):
            if isinstance(node, ast.JoinedStr):
                passed_over.update(id(child) for child in ast.walk(node))
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
                passed_over.add(id(node.slice))
        for node in ast.walk(source.tree):
            name = PAIRS.get(type(node))
            if name is None or id(node) in passed_over:
                continue
            assert isinstance(node, ast.expr | ast.stmt | ast.keyword)
            wanted.setdefault(source.span(node), []).append(name)
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                wanted.setdefault(source.header_span(node), []).append(name)
                for decorator in node.decorator_list:
                    wanted.setdefault(source.span(decorator), []).append("Decorator")
        lossless = Lossless(source)
        for span, names in wanted.items():
            found = {type(node).__name__ for node in lossless.at(span)}
            for name in names:
                seen[name] += 1
                if name not in found:
                    missing.append(f"{path.name}:{span.start.row}: {name}: {source.segment(span)[:60]!r}")
    assert not missing, f"{len(missing)} of {seen.total()}: {missing[:20]}"
    assert (set(PAIRS.values()) | {"Decorator"}) - set(seen) <= {"AnnAssign"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(x)", "f(x.to(d))"),
        ("f(a + b)", "f((a + b).to(d))"),
        ("f((a + b))", "f((a + b).to(d))"),
        ("f(-a)", "f((-a).to(d))"),
        ("f(*a)", "f(*a.to(d))"),
        ("f(k=a @ b)", "f(k=(a @ b).to(d))"),
        ("f(a if b else c)", "f((a if b else c).to(d))"),
        ("f(lambda: a)", "f((lambda: a).to(d))"),
        ("f(a for a in b)", "f((a for a in b).to(d))"),
        ("f((a for a in b))", "f((a for a in b).to(d))"),
        ("f(1)", "f((1).to(d))"),
        ("f(1.5)", "f(1.5.to(d))"),
        ("f(a.b[0](c))", "f(a.b[0](c).to(d))"),
        ("f([a])", "f([a].to(d))"),
        ("f(  # why\n    a +\n    b\n)", "f(  # why\n    (a +\n    b).to(d)\n)"),
        ("f(not a)", "f((not a).to(d))"),
        ("f(a := b)", "f((a := b).to(d))"),
        ("f(é + 日本, 語)", "f((é + 日本).to(d), 語)"),
    ],
)
def test_append(before: str, after: str) -> None:
    visit = visit_of(before)
    argument = first(visit, m.Arg())
    assert isinstance(argument, cst.Arg)
    assert applied(visit, visit.append(argument, ".to(d)")) == after
    assert applied(visit, visit.append(argument.value, ".to(d)")) == after


def test_append_to_await() -> None:
    visit = visit_of("async def f():\n    return await g()\n")
    assert "return (await g()).to(d)" in applied(visit, visit.append(first(visit, m.Await()), ".to(d)"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()", "f(k=1)"),
        ("f( )", "f( k=1)"),
        ("f(a)", "f(a, k=1)"),
        ("f(a,)", "f(a, k=1,)"),
        ("f(a, )", "f(a, k=1, )"),
        ("f(*a, **b)", "f(*a, **b, k=1)"),
        ("f(x for x in y)", "f((x for x in y), k=1)"),
        ("f((x for x in y))", "f((x for x in y), k=1)"),
        ("f(\n    a,\n    b,\n)", "f(\n    a,\n    b,\n    k=1,\n)"),
        ("f(\n    a,\n    b,  # why\n)", "f(\n    a,\n    b,  # why\n    k=1,\n)"),
        ("f(\n    a,\n    b\n)", "f(\n    a,\n    b,\n    k=1\n)"),
        ("f(\n    a,\n    b,)", "f(\n    a,\n    b,\n    k=1,)"),
        ("f(a,\n  b)", "f(a,\n  b,\n  k=1)"),
        ("f(  # why\n)", "f(  # why\nk=1)"),
        ("f(a  # why\n)", "f(a, k=1  # why\n)"),
    ],
)
def test_add_argument(before: str, after: str) -> None:
    visit = visit_of(before)
    call = first(visit, m.Call())
    assert isinstance(call, cst.Call)
    assert applied(visit, visit.add_argument(call, "k=1")) == after


def test_argument() -> None:
    visit = visit_of("f(a, b, *c, d, dtype=e)")
    call = first(visit, m.Call())
    assert isinstance(call, cst.Call)

    def code(*where: str | int) -> str | None:
        found = visit.argument(call, *where)
        return visit.code(found.value) if found else None

    assert [code(0), code(1), code(2), code(3), code("dtype"), code("x"), code("x", 0)] == [
        "a",
        "b",
        None,
        None,
        "e",
        None,
        "a",
    ]


@pytest.mark.parametrize(
    ("before", "matcher", "after"),
    [
        ("a = 1\nb = 2\n", m.Assign(), "b = 2\n"),
        ("def f():\n    a = 1\n", m.Assign(), "def f():\n    pass\n"),
        ("if x: a = 1\n", m.Assign(), "if x: pass\n"),
        ("a = 1; b = 2\n", m.Assign(), "pass; b = 2\n"),
        ("@d\ndef f(): pass\nx\n", m.FunctionDef(), "x\n"),
        ("@d\n@e\ndef f(): pass\n", m.Decorator(), "@e\ndef f(): pass\n"),
        ("f(a, b)\n", m.Arg(), "f(b)\n"),
        ("f(a)\n", m.Arg(), "f()\n"),
        ("from a import b, c\n", m.ImportAlias(), "from a import c\n"),
        ("from a import b\nx\n", m.ImportAlias(), "x\n"),
        ("x = [a, b]\n", m.Element(m.Name("b")), "x = [a]\n"),
    ],
)
def test_delete(before: str, matcher: m.BaseMatcherNode, after: str) -> None:
    visit = visit_of(before)
    assert applied(visit, visit.delete(first(visit, matcher))) == after


@pytest.mark.parametrize(
    ("before", "matcher", "after"),
    [
        ("if x:\n    y()\n", m.SimpleStatementLine(), "if x:\n    n = 1\n    y()\n"),
        ("if x: y()\n", m.Expr(), "if x: n = 1; y()\n"),
        ("@d\ndef f(): pass\n", m.FunctionDef(), "n = 1\n@d\ndef f(): pass\n"),
    ],
)
def test_insert_before(before: str, matcher: m.BaseMatcherNode, after: str) -> None:
    visit = visit_of(before)
    assert applied(visit, visit.insert_before(first(visit, matcher), "n = 1")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if x:\n    a(); b()  # why\nc()\n", "if x:\n    a(); b()  # why\n    n = 1\nc()\n"),
        ("a(\n    b\n)\n", "a(\n    b\n)\nn = 1\n"),
    ],
)
def test_insert_after(before: str, after: str) -> None:
    visit = visit_of(before)
    line = first(visit, m.SimpleStatementLine())
    assert isinstance(line, cst.SimpleStatementLine)
    assert applied(visit, visit.insert_after(line, "n = 1")) == after


def test_replace_keeps_parentheses() -> None:
    visit = visit_of("x = (a\n     + b).c\n")
    operation = first(visit, m.BinaryOperation())
    assert visit.code(operation) == "(a\n     + b)"
    assert applied(visit, visit.replace(operation, "n")) == "x = (n).c\n"
    assert applied(visit, visit.replace(operation, cst.Name("n"))) == "x = (n).c\n"


@pytest.mark.parametrize(
    ("before", "new", "after"),
    [
        ("x = a if b in (1, 2)else c\n", "n", "x = a if n else c\n"),
        ("x = a if(b)in (1, 2)else c\n", "n", "x = a if n else c\n"),
        ("x = a if(b)in (1, 2)else c\n", "(n,)", "x = a if(n,)else c\n"),
        ("x = a if b in (1, 2) else c\n", "n", "x = a if n else c\n"),
        ("b in (1, 2)\n", "n", "n\n"),
    ],
)
def test_words_stay_apart_from_what_replaces(before: str, new: str, after: str) -> None:
    visit = visit_of(before)
    assert applied(visit, visit.replace(first(visit, m.Comparison()), new)) == after
    ast.parse(after)


def test_parent() -> None:
    visit = visit_of("f(g(x))\n")
    inner = first(visit, m.Call(m.Name("g")))
    assert isinstance(visit.parent(inner), cst.Arg)


@pytest.mark.parametrize(
    ("code", "module", "name", "spelled", "after"),
    [
        ("import torch\n", "torch", None, "torch", None),
        ("import torch as t\n", "torch", None, "t", None),
        ("import torch as t\n", "torch.amp", "autocast", "t.amp.autocast", None),
        ("import torch.nn as nn\n", "torch.nn", "Linear", "nn.Linear", None),
        ("import torch.nn\n", "torch", "float16", "torch.float16", None),
        ("from torch import amp\n", "torch.amp", "autocast", "amp.autocast", None),
        ("from torch.amp import autocast as ac\n", "torch.amp", "autocast", "ac", None),
        ("import os\n", "torch", None, "torch", "import os\nimport torch\n"),
        ("import os\n", "torch.amp", "autocast", "autocast", "import os\nfrom torch.amp import autocast\n"),
        (
            "from torch.cuda.amp import autocast\n",
            "torch.amp",
            "autocast",
            "torch.amp.autocast",
            "from torch.cuda.amp import autocast\nimport torch\n",
        ),
        (
            "def f(autocast, torch): pass\n",
            "torch.amp",
            "autocast",
            "torch_autocast",
            "from torch.amp import autocast as torch_autocast\ndef f(autocast, torch): pass\n",
        ),
        ('"""Doc."""\nx = 1\n', "torch", None, "torch", '"""Doc."""\n\nimport torch\nx = 1\n'),
        ('"""Doc."""', "torch", None, "torch", '"""Doc."""\n\nimport torch\n'),
        (
            "#!/usr/bin/env python\n# licence\n\nx = 1\n",
            "torch",
            None,
            "torch",
            "#!/usr/bin/env python\n# licence\n\nimport torch\nx = 1\n",
        ),
        (
            "from __future__ import annotations\nx = 1\n",
            "torch",
            None,
            "torch",
            "from __future__ import annotations\n\nimport torch\nx = 1\n",
        ),
        (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n",
            "torch",
            None,
            "_torch",
            "from typing import TYPE_CHECKING\nimport torch as _torch\nif TYPE_CHECKING:\n    import torch\n",
        ),
        (
            "def f():\n    import torch\n",
            "torch",
            None,
            "_torch",
            "import torch as _torch\ndef f():\n    import torch\n",
        ),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\n", "torch", None, "torch", None),
        (
            "import os\nx = 1\nimport sys\n",
            "torch",
            None,
            "torch",
            "import os\nimport torch\nx = 1\nimport sys\n",
        ),
        (
            "from (\n".replace("(\n", "a import (\n    b,\n)\n"),
            "torch",
            None,
            "torch",
            "from a import (\n    b,\n)\nimport torch\n",
        ),
    ],
)
def test_import_name(code: str, module: str, name: str | None, spelled: str, after: str | None) -> None:
    visit = visit_of(code)
    spelling, edits = visit.import_name(module, name)
    assert (spelling, applied(visit, *edits)) == (spelled, code if after is None else after)


def suspects_of(source: Source, *rules: Rule) -> list[tuple[Rule, Suspect]]:
    return [(rule, suspect) for rule in rules for suspect in rule.suspects(facts_of(source))]


def test_rules_decide_and_report() -> None:
    source = Source(Path("/x.py"), b"a.half(); b.double(); c.cited(); d.dropped()\n")
    rules = [toy_rules.Half(), toy_rules.Double(), toy_rules.Cited(), toy_rules.Dropped()]
    findings = run_rules(source, facts_of(source), suspects_of(source, *rules))
    assert [(f.code, f.severity, f.certainty, f.fix is not None) for f in findings] == [
        ("TOY101", Severity.ERROR, Certainty.PROVEN, True),
        ("TOY102", Severity.WARNING, Certainty.LIKELY, False),
        ("TOY108", Severity.WARNING, Certainty.LIKELY, False),
    ]
    fix = findings[0].fix
    assert fix is not None
    assert fix.applicability is Applicability.SAFE
    assert apply_edits(source, fix.edits).text.startswith("from torch import float16\na.to(float16);")


def test_a_file_that_libcst_refuses_is_reported_without_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(text: str) -> cst.Module:
        raise cst.ParserSyntaxError("refused", lines=[text], raw_line=1, raw_column=0)

    monkeypatch.setattr(cst, "parse_module", refuse)
    source = Source(Path("/x.py"), b"a.half(); d.dropped()\n")
    findings = run_rules(source, facts_of(source), suspects_of(source, toy_rules.Half(), toy_rules.Dropped()))
    assert [(f.code, f.fix) for f in findings] == [("TOY101", None), ("TOY109", None)]


def test_only_the_statement_around_a_suspect_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = cst.parse_module

    def noting(text: str) -> cst.Module:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(cst, "parse_module", noting)
    text = "import a\n@a\nclass C:\n    def f(self):\n        a.half()\n        b.half()\n# c\nd = e; f.half()"
    source = Source(Path("/x.py"), f"\ufeff{text}".encode())
    findings = run_rules(source, facts_of(source), suspects_of(source, toy_rules.Half()))
    lines = text.splitlines(keepends=True)
    assert sorted(parsed) == ["".join(lines[1:6]), f"{lines[7]}\n"]
    edits = [edit for finding in findings if finding.fix for edit in finding.fix.edits]
    fixed = text.replace(".half()", ".to(float16)").replace("import a\n", "import a\nfrom torch import float16\n")
    assert apply_edits(source, sorted(set(edits))).text.removeprefix("\ufeff") == fixed


@pytest.mark.parametrize(
    ("code", "first", "last", "found"),
    [
        ("é = 日本(語) # 日", "日本", "語)", ["Call"]),
        ("a = 1; b = 2\n", "b", "2", ["Assign"]),
        ("f(x)\rg(y)\r", "g", "y)", ["Call", "Expr", "SimpleStatementLine"]),
        ("a\nb\n", "a", "b\n", ["Module"]),
        ("a\nb\n", "a", "b", []),
    ],
)
def test_nodes_are_found_by_their_places(code: str, first: str, last: str, found: list[str]) -> None:
    source = Source(Path("/x.py"), code.encode())
    span = Span(source.location(code.index(first)), source.location(code.index(last) + len(last)))
    lossless = Lossless(source)
    nodes = lossless.at(span)
    assert [type(node).__name__ for node in nodes] == found
    assert {lossless.span(node) for node in nodes} <= {span}


def test_a_rule_that_raises_is_named_and_the_others_report() -> None:
    source = Source(Path("/x.py"), b"a.boom(); a.half()\n")
    suspects = suspects_of(source, toy_rules.Boom(), toy_rules.Half())
    failures: list[RuleFailure] = []
    findings = run_rules(source, facts_of(source), suspects, failures)
    assert [f.code for f in findings] == ["TOY101"]
    assert [failure.rule.code for failure in failures] == ["TOY103"]
    with pytest.raises(RuleFailure, match="TOY103"):
        run_rules(source, facts_of(source), suspects)
