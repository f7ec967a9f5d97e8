"""What raises in a file whatever the precision: names that nothing binds, what torch's modules do not hold, nor
torchvision's and torchaudio's any more, nor ``collections`` since Python 3.10, functions of torch that only raise, and
keywords that its schedulers do not take."""

from __future__ import annotations

import ast
import builtins
import collections
import collections.abc
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from amplint import contents
from amplint.data import read_table
from amplint.distributions import distribution_of
from amplint.infer.syntax.bodies import nodes_below
from amplint.infer.syntax.by_kind import nodes_of_kind
from amplint.infer.syntax.references import of_companions, references, unbound
from amplint.infer.syntax.surely import evaluated, parts, transparent
from amplint.infer.torch_model.companion_names import gone
from amplint.infer.torch_model.torch_names import missing, only_raises, refuses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.data.newer import Release
    from amplint.source import Source

_Definition = TypeVar("_Definition", ast.FunctionDef, ast.ClassDef)
_BINDING = frozenset(("exec", "execfile", "globals", "vars", "locals", "builtins", "__builtins__"))
"""What may bind names that nobody spells."""
_LATER_BUILTINS = frozenset(
    ("aiter", "anext", "EncodingWarning", "BaseExceptionGroup", "ExceptionGroup", "PythonFinalizationError")
)
_OF_SHELLS = frozenset(("get_ipython", "display", "profile", "_", "WindowsError", "reveal_type"))
"""What an interactive shell, a profiler, ``gettext`` or another platform puts among the builtins."""
_ABSTRACT = frozenset(collections.abc.__all__).difference(collections.__all__)
"""Classes that ``collections`` held too, up to Python 3.9."""
_LAST_WITH_THEM = "3.9"
_BUILTINS = frozenset(dir(builtins)) | _LATER_BUILTINS | _OF_SHELLS


class Raised(NamedTuple):
    """Why an expression or an import raises: the class of the error, and the name that is not there, which no other
    file may give."""

    error: type[Exception]
    name: str


def raising(source: Source, release: Release) -> dict[int, Raised]:
    """The names, dotted names and imports of a file that raise wherever they are run with a release of torch, by
    ``id``.

    A file of no package or distribution may be a part of a program, shown without what binds its names: none of those
    counts.
    """
    return _raising(source.tree, _is_packaged(source), release)


def _is_packaged(source: Source) -> bool:
    """Whether a file is of a package, or of a distribution as it was installed, which has all that its files need."""
    folder = source.path.parent
    return (folder / "__init__.py").is_file() or distribution_of(str(folder), contents.age()) is not None


def _raising(tree: ast.Module, packaged: bool, release: Release) -> dict[int, Raised]:
    found = {id(node): Raised(NameError, node.id) for node in _unbound(tree)} if packaged else {}
    found |= _from_collections(tree) if _is_without_them(release) else {}
    found |= _of_companions(tree, release)
    asked = [reference for reference in references(tree) if missing(reference.name, release) is not None]
    given = _given_to_torch(tree) if asked else frozenset()
    for reference in asked:
        name = missing(reference.name, release)
        assert name is not None
        if given is None or name in given:
            continue
        if reference.statement is not None:
            found[id(reference.statement)] = Raised(ModuleNotFoundError, name)
        elif isinstance(getattr(reference.node, "ctx", None), ast.Load):
            found[id(reference.node)] = Raised(AttributeError, name)
    return found | _removed(tree, release)


def _of_companions(tree: ast.Module, release: Release) -> dict[int, Raised]:
    """The imports and dotted names of what torchvision and torchaudio do not hold any more, by ``id``."""
    found: dict[int, Raised] = {}
    asked = [(reference, gone(reference.name, release)) for reference in of_companions(tree)]
    given = {node.attr for node in nodes_of_kind(tree, ast.Attribute) if not isinstance(node.ctx, ast.Load)}
    for reference, name in asked:
        if name is None or name in given:
            continue
        if reference.statement is not None:
            found[id(reference.statement)] = Raised(ImportError, name)
        elif isinstance(getattr(reference.node, "ctx", None), ast.Load):
            found[id(reference.node)] = Raised(AttributeError, name)
    return found


def _removed(tree: ast.Module, release: Release) -> dict[int, Raised]:
    """The names of what a file calls of torch that only raises, or does not take a keyword."""
    names = {id(reference.node): reference.name for reference in references(tree)}
    found: dict[int, Raised] = {}
    for call in nodes_of_kind(tree, ast.Call):
        name = names.get(id(call.func))
        if name is None:
            continue
        if only_raises(name, release):
            found[id(call.func)] = Raised(RuntimeError, name.rpartition(".")[2])
        elif refuses(name, (keyword.arg for keyword in call.keywords if keyword.arg), release):
            found[id(call.func)] = Raised(TypeError, name.rpartition(".")[2])
    return found


def _from_collections(tree: ast.Module) -> dict[int, Raised]:
    """The imports and dotted names that ask ``collections`` for its abstract classes, by ``id``; none that the file
    gives it again."""
    found: dict[int, Raised] = {}
    given = {node.attr for node in nodes_of_kind(tree, ast.Attribute) if not isinstance(node.ctx, ast.Load)}
    for statement in nodes_of_kind(tree, ast.ImportFrom):
        gone = next((alias.name for alias in statement.names if alias.name in _ABSTRACT - given), None)
        if statement.module == "collections" and not statement.level and gone is not None:
            found[id(statement)] = Raised(ImportError, gone)
    if not any(a.name.partition(".")[0] == "collections" for s in nodes_of_kind(tree, ast.Import) for a in s.names):
        return found
    rebound = any(n.id == "collections" and not isinstance(n.ctx, ast.Load) for n in nodes_of_kind(tree, ast.Name))
    if rebound or any(argument.arg == "collections" for argument in nodes_of_kind(tree, ast.arg)):
        return found
    for node in nodes_of_kind(tree, ast.Attribute):
        of = node.value
        if node.attr in _ABSTRACT - given and isinstance(of, ast.Name) and of.id == "collections":
            found[id(node)] = Raised(AttributeError, node.attr)
    return found


@cache
def _is_without_them(release: Release) -> bool:
    """Whether a release of torch runs on no Python whose ``collections`` holds its abstract classes."""
    major, minor = read_table("python_support.json")["last"][_LAST_WITH_THEM].split(".")
    return release > (int(major), int(minor))


def raises_when_run(source: Source, release: Release) -> bool:
    """Whether the statements at the top level of a file raise."""
    packaged = _is_packaged(source)
    return all(_raises(tree, packaged, release) for tree in _shorter_first(source.tree))


def _shorter_first(tree: ast.Module) -> Iterator[ast.Module]:
    """The file as if its functions did nothing, and the file: what its functions do only binds more names."""
    yield ast.Module([_doing_nothing(statement) for statement in tree.body], [])
    yield tree


def _doing_nothing(statement: ast.stmt) -> ast.stmt:
    """A definition with nothing in its functions, or else the same statement."""
    if isinstance(statement, ast.FunctionDef):
        return _with_body(statement, [ast.copy_location(ast.Pass(), statement)])
    if isinstance(statement, ast.ClassDef):
        return _with_body(statement, [_doing_nothing(inner) for inner in statement.body])
    return statement


def _with_body(definition: _Definition, body: list[ast.stmt]) -> _Definition:
    fields = {name: getattr(definition, name) for name in definition._fields}
    return ast.copy_location(type(definition)(**fields | {"body": body}), definition)


def _raises(tree: ast.Module, packaged: bool, release: Release) -> bool:
    raised = _raising(tree, packaged, release)
    always = (
        (part for part in parts(tree.body, transparent(tree)) if part.always and part.holds is None) if raised else ()
    )
    for part in always:
        errors = (raised[id(node)].error for node in evaluated(part.node) if id(node) in raised)
        if any(not part.is_caught(error) for error in errors):
            return True
    return False


def _unbound(tree: ast.Module) -> Iterator[ast.Name]:
    """The names that are read where neither a scope nor Python binds them; none where something unseen may."""
    names = [name for name in unbound(tree) if name.id not in _BUILTINS and not name.id.startswith("__")]
    if not names or any(isinstance(node, ast.Name) and node.id in _BINDING for node in nodes_below(tree)):
        return
    imports = (node for node in nodes_below(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
    if not any(alias.name in ("*", "builtins") for node in imports for alias in node.names):
        yield from names


def _given_to_torch(tree: ast.Module) -> frozenset[str] | None:
    """Names that the file gives to modules of torch itself; None where it may give them any."""
    torch = {id(reference.node) for reference in references(tree)}
    calls = (node for node in nodes_below(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    if any(getattr(call.func, "id", "") == "setattr" and id(call.args[0]) in torch for call in calls if call.args):
        return None
    stored = (node for node in nodes_below(tree) if isinstance(node, ast.Attribute))
    return frozenset(node.attr for node in stored if not isinstance(node.ctx, ast.Load))
