"""Objects that attributes hold, and where a project runs them: ``self.head = Head()``, ``model.head(x)``.

An attribute is known by its name alone, whatever object has it: where the project runs what one of that name holds, it
may run what is asked about. Nothing is said of an attribute whose object is handed on, or that something may look up by
its name.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from amplint.infer.syntax.bodies import children, nodes_below, once_for_each_node
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.syntax.references import references
from amplint.infer.torch_model.modules import GIVING_BACK, MODULE_METHODS
from amplint.project.mentions import ASKING, Definition, Function, made_attributes, own_attributes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amplint.project.mentions import Limit, Mention
    from amplint.source import Source

_PARTS = ("children", "named_children", "_modules", "get_submodule")
"""What gives the parts of a module without spelling them."""
_COMPARING = ("startswith", "endswith", "removeprefix", "replace", "split")
"""Methods of strings that look nothing up."""


class Run(NamedTuple):
    """Where what an attribute holds is run, by a call of one of its methods; "" for what is not known to be one. Not
    ``called``: something of that name is asked of it, and perhaps called elsewhere."""

    file: Source
    row: int
    method: str
    called: bool


_Run = tuple[int, str, bool]


def attribute_of(file: Source, mention: Mention) -> str | None:
    """The attribute that holds what a mention makes: ``x.attribute = Class(...)``, on one side of a conditional too."""
    if not mention.called:
        return None
    return _holders(file.tree).get((mention.row, mention.column))


def runs_of(attribute: str, files: Iterable[Source] | None) -> list[Run] | None:
    """Where those files that have the word run what attributes of a name hold; None where it may be run elsewhere."""
    if files is None:
        return None
    found: list[Run] = []
    for file in files:
        runs = _runs(file.tree, attribute)
        if runs is None:
            return None
        found += [Run(file, *run) for run in runs]
    return found


def runs_leading(runs: Iterable[Run], target: Definition, methods: Iterable[str]) -> list[Run] | None:
    """Those of some runs that lead to methods of the class that the object is of, or may; None where it may be run
    elsewhere. A constructor that leads there is such a place; so is all where no method is named, or no class."""
    leading, defined = _leading(target, methods)
    if "__init__" in leading or any(not run.called and (run.method in leading or not defined) for run in runs):
        return None
    return [run for run in runs if run.called and (run.method in leading or run.method not in defined)]


def _leading(target: Definition, methods: Iterable[str]) -> tuple[set[str], set[str]]:
    """The methods of a class that lead to some of them, and all that it defines; nothing of what is no class, or where
    no method is named."""
    leading, defined = {*methods}, set[str]()
    if isinstance(target, ast.ClassDef) and leading:
        defined = {s.name for s in target.body if isinstance(s, Function)}
        while more := {name for name, read in _mentioned(target).items() if read & leading} - leading:
            leading |= more
    return leading, defined


def runs_made_of(
    file: Source, cls: ast.ClassDef, name: str, target: Definition, methods: Iterable[str], limit: Limit
) -> bool:
    """Whether a method that others may call, or one that it calls, leads to some methods of the target, of which
    attributes hold what is made with a name: not ``forward``, nor private.

    To call torch's own methods of a module, as for its parameters, leads there as little as to call other methods of
    that class.
    """
    functions = {s.name: s for s in cls.body if isinstance(s, Function)}
    made = {attribute for attribute, names in made_attributes(cls).items() if name in names}
    leading, defined = _leading(target, methods)
    parents = _parents(file.tree)

    def leads(node: ast.Attribute) -> bool:
        runs = _run_by(node, parents, file.tree)
        return runs is None or any(method in leading or method not in defined for _, method, _ in runs)

    pending = [m for m in functions if m == "__call__" or not (m == "forward" or m.startswith("_"))]
    reached = {*pending, "forward"}
    while pending:
        method = functions[pending.pop()]
        last = limit(method)
        further = {attribute for attribute, row in own_attributes(method) if row <= last} & functions.keys() - reached
        reached |= further
        pending += further
        held = (node for node in nodes_of_kind(method, ast.Attribute) if node.attr in made and node.lineno <= last)
        if any(map(leads, held)):
            return True
    return False


def running(file: Source, cls: ast.ClassDef, attribute: str) -> frozenset[str]:
    """The methods of a class that run what attributes of a name hold, or hand it on."""
    parents = _parents(file.tree)
    return frozenset(
        method.name
        for method in cls.body
        if isinstance(method, Function)
        for node in nodes_of_kind(method, ast.Attribute)
        if _is_read(node, attribute) and _run_by(node, parents, file.tree) != []
    )


def is_spelled_out(file: Source, mention: Mention) -> bool:
    """Whether what holds the object that a mention makes runs it only where that is spelled: it derives from torch's
    classes alone, and its file asks no module for its parts otherwise."""
    if any(node.attr in _PARTS for node in nodes_of_kind(file.tree, ast.Attribute)):
        return False
    torch = {id(reference.node) for reference in references(file.tree)}
    classes = (
        c for c in nodes_of_kind(file.tree, ast.ClassDef) if c.lineno <= mention.row <= (c.end_lineno or c.lineno)
    )
    innermost = max(classes, key=lambda cls: cls.lineno, default=None)
    return innermost is not None and all(id(base) in torch for base in innermost.bases)


@once_for_each_node
def _holders(tree: ast.Module) -> dict[tuple[int, int], str]:
    """By the place of a call, the attribute that holds what it gives."""
    found: dict[tuple[int, int], str] = {}
    for node in nodes_of_kind(tree, ast.Assign, ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        pending = [node.value] if len(targets) == 1 else []
        while pending:
            value = pending.pop()
            if isinstance(value, ast.IfExp):
                pending += [value.body, value.orelse]
            elif isinstance(value, ast.Call) and isinstance(targets[0], ast.Attribute):
                found[value.func.lineno, value.func.col_offset] = targets[0].attr
    return found


@once_for_each_node
def _mentioned(cls: ast.AST) -> dict[str, frozenset[str]]:
    """By method of a class, the attributes that it reads; ``forward`` where it calls its object, or hands it on."""
    assert isinstance(cls, ast.ClassDef)
    found: dict[str, frozenset[str]] = {}
    for method in (s for s in cls.body if isinstance(s, Function)):
        names = {node.attr for node in nodes_of_kind(method, ast.Attribute) if isinstance(node.ctx, ast.Load)}
        own = method.args.args[0].arg if method.args.args else ""
        for call in nodes_of_kind(method, ast.Call):
            given = (*call.args, *(keyword.value for keyword in call.keywords))
            handed = (call.func, *(given if getattr(call.func, "id", "") != "super" else ()))
            names |= {"forward"} if any(getattr(part, "id", None) == own for part in handed) else set()
        found[method.name] = frozenset(names)
    return found


@once_for_each_node
def _parents(tree: ast.Module) -> dict[int, ast.AST]:
    return {id(child): node for node in nodes_below(tree) for child in children(node)}


def _runs(tree: ast.Module, attribute: str) -> list[_Run] | None:
    parents = _parents(tree)
    if any(map(_looks_up_anything, nodes_of_kind(tree, ast.Call))):
        return None
    found: list[_Run] = []
    for text in nodes_of_kind(tree, ast.Constant):
        if text.value == attribute and not _is_compared(text, parents):
            return None
    for node in nodes_of_kind(tree, ast.Attribute):
        runs = _run_by(node, parents, tree) if _is_read(node, attribute) else []
        if runs is None:
            return None
        found += runs
    return found


def _looks_up_anything(call: ast.Call) -> bool:
    """Whether a call asks for an attribute by a name that is not written: ``getattr(self, f"stage{i}")``."""
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    written = call.args[1:2] if name == "getattr" else call.args
    return name in ("getattr", "attrgetter") and not all(isinstance(each, ast.Constant) for each in written)


def _is_read(node: ast.Attribute, name: str) -> bool:
    return node.attr == name and isinstance(node.ctx, ast.Load)


def _is_compared(text: ast.Constant, parents: dict[int, ast.AST]) -> bool:
    """Whether a string is only compared with others, or is written where nothing reads it."""
    parent = parents.get(id(text))
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Attribute) and parent.func.attr in _COMPARING
    return isinstance(parent, (ast.Compare, ast.Expr))


def _run_by(node: ast.expr, parents: dict[int, ast.AST], tree: ast.Module) -> list[_Run] | None:
    """What one mention of an attribute, or what gives its object back, runs of that; None where it is handed on."""
    parent = parents.get(id(node))
    if isinstance(parent, ast.Call) and parent.func is node:
        return [(parent.lineno, "forward", True)]
    if isinstance(parent, ast.Attribute):
        above = parents.get(id(parent))
        if parent.attr in GIVING_BACK and isinstance(above, ast.Call) and above.func is parent:
            return _run_by(above, parents, tree)
        return [] if _is_torchs_own(parent) else [_run_through(parent, parents)]
    if isinstance(parent, ast.Call):
        if getattr(parent.func, "id", "") in ASKING or _only_asks(parent, node, parents, tree):
            return []
        return [] if _is_put_back(parent, node, parents) else None
    if isinstance(parent, ast.Assign):
        return [] if _is_put_back(node, node, parents) else None
    if isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node:
        return _run_by_turns(parent, parents, tree)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return _run_by(parent, parents, tree)
    harmless = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.If, ast.Delete, ast.Expr)
    return [] if isinstance(parent, harmless) else None


def _run_by_turns(
    loop: ast.For | ast.comprehension, parents: dict[int, ast.AST], tree: ast.Module
) -> list[_Run] | None:
    """The same of a loop over what an attribute holds, as each part of it is named there."""
    if not isinstance(loop.target, ast.Name):
        return None
    around = loop if isinstance(loop, ast.For) else parents[id(loop)]
    run_over = {id(part) for part in nodes_of_kind(loop.iter, ast.Name)}
    found: list[_Run] = []
    for part in nodes_of_kind(around, ast.Name):
        if part.id == loop.target.id and isinstance(part.ctx, ast.Load) and id(part) not in run_over:
            runs = _run_by(part, parents, tree)
            if runs is None:
                return None
            found += runs
    return found


def _run_through(asked: ast.Attribute, parents: dict[int, ast.AST]) -> _Run:
    """What asking an object for an attribute that is its own may run."""
    last: ast.AST = asked
    while isinstance(above := parents.get(id(last)), ast.Attribute):
        last = above
    called = isinstance(above, ast.Call) and above.func is last
    method = asked.attr if last is asked or not called else ""
    return asked.lineno, "forward" if method == "__call__" else method, called


def _is_torchs_own(node: ast.AST | None) -> bool:
    """Whether an attribute of a module is a method of torch's that runs nothing of it."""
    return isinstance(node, ast.Attribute) and node.attr in MODULE_METHODS and node.attr not in _PARTS


def _is_put_back(made: ast.expr, given: ast.expr, parents: dict[int, ast.AST]) -> bool:
    """Whether what is made of an object, as ``torch.compile`` does, takes the place of the attribute that held it."""
    above = parents.get(id(made))
    held = given
    while isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute):
        held = held.func.value
    targets = above.targets if isinstance(above, ast.Assign) else []
    return [ast.unparse(target) for target in targets] == [ast.unparse(held)]


def _only_asks(call: ast.Call, given: ast.expr, parents: dict[int, ast.AST], tree: ast.Module) -> bool:
    """Whether a call hands an object to a function of its file that asks it for nothing but torch's own methods, as for
    its parameters."""
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    functions = [function for function in nodes_of_kind(tree, ast.FunctionDef) if function.name == called]
    if len(functions) != 1 or given not in call.args or functions[0].decorator_list:
        return False
    names = [argument.arg for argument in (*functions[0].args.posonlyargs, *functions[0].args.args)]
    position = call.args.index(given) + isinstance(parents.get(id(functions[0])), ast.ClassDef)
    if position >= len(names):
        return False
    nodes = (node for node in nodes_below(functions[0]) if isinstance(node, ast.Name) and node.id == names[position])
    return all(_is_torchs_own(parents.get(id(node))) for node in nodes)
