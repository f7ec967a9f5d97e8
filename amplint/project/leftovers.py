"""What a package defines and leaves: its other files take from the same file by name, and nothing in the project
mentions this.

A file that no other takes from is the user's to take from, unless it is a program that uses what else it defines, or
runs nothing, in a program whose files import its neighbours, or in a package whose ``__init__`` takes from them; so is
one that others take whole. A class may be found by its base where something in the project finds classes so, or where
the base is of another library that others install it beside; what is decorated may be registered by it. An import alone
uses nothing, but where it hands the name on.

A project that reaches most of what it defines (see :mod:`amplint.project.reached`) has ways in for all that it is there
for: its files are not the user's to take from, but for what an ``__init__`` takes, and no other library finds its
classes by their base.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from amplint import contents
from amplint.compiling import kept, ordinary
from amplint.infer.names.folders import LIBRARY_FOLDERS, project_around
from amplint.project.files import TooLargeError, matching, naming_module, parsed, read_all, spelling
from amplint.project.layout import MAX_TEXT_BYTES, TEXTS
from amplint.project.reached import is_a_test, reaches_most
from amplint.project.scopes import is_installed, scope_of
from amplint.project.stranded import is_stranded
from amplint.project.takers import ANY, File

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts
    from amplint.project.mentions import Definition
    from amplint.source import Source

MAX_PARSED = 40
"""Files that spell the name of a module or of what it defines; where more do, nothing is said."""
MAX_NEIGHBOURS = 12
"""Files of a folder of which it is asked whether others import them."""
MAX_DEFINITIONS = 24
"""Definitions that are looked at for one."""
_BY_BASE = re.compile(rb"\b(?:__subclasses__|__init_subclass__|getmembers)\b|\bmetaclass *=(?! *(?:abc\.)?ABCMeta\b)")
"""What may find classes by what they derive from."""


_IMPORTS = re.compile(
    rb"\b(?:import_module|__import__|spec_from_file_location|pkgutil|SourceFileLoader|run_path|exec)\b"
)
"""What may import a module by a name that nobody spells."""


@ordinary
class Leftovers:
    """What a file of a package defines and nothing mentions; found for the definitions that are asked for."""

    def __init__(self, facts: FileFacts) -> None:
        scope = scope_of(facts)
        self._scope = (project_around(scope.folder / "_") or scope.folder) if scope.whole else None
        self._files: dict[Path, File] = {}
        self._file = self._of(facts.path, facts.source)
        self._known: dict[tuple[Path, str], bool] = {}
        self._takes: dict[Path, set[str] | None] = {}
        self._named: dict[Path, bool] = {}

    def hold(self, row: int) -> bool:
        """Whether a line stands in a definition that nothing in the project mentions but such, while other files of the
        package, or its own program, take what else the file defines."""
        target = next((d for d in self._file.found.values() if d.lineno <= row <= (d.end_lineno or row)), None)
        return target is not None and self._holds(self._file, target)

    def hold_of(self, source: Source, definition: Definition) -> bool:
        """The same of what another file of the project defines."""
        return self._scope is not None and self._holds(self._of(source.path, source), definition)

    @kept
    def reaches_most(self) -> bool:
        """Whether what the project runs or hands out reaches most of what it defines."""
        return self._scope is not None and reaches_most(self._scope)

    def is_in_texts(self, name: str) -> bool:
        """Whether a text of the project, such as a configuration, has a name; so where it is no project."""
        return self._scope is None or _is_named_in_texts(self._folder, name)

    def is_of_torch(self, cls: ast.ClassDef) -> bool:
        """Whether a class of the file derives from torch's alone."""
        return self._file.is_of_torch(cls)

    def _holds(self, file: File, target: Definition) -> bool:
        key = file.path, target.name
        if key not in self._known:
            self._known[key] = self._scope is not None and (
                self._is_left(file, target) or self._is_copy(file, target) or self._is_stranded(file)
            )
        return self._known[key]

    def _is_stranded(self, file: File) -> bool:
        """Whether no import leads to a file, and no text of the project has its name."""
        return is_stranded(self._folder, file.path) and not _is_named_in_texts(self._folder, file.module)

    def _is_left(self, file: File, target: Definition) -> bool:
        """Whether nothing mentions a definition, but itself and others that nothing mentions."""
        pending, seen = [(file, target)], {(file.path, target.name)}
        while pending:
            file, definition = pending.pop()
            users = self._users(file, definition)
            if users is None or len(seen) > MAX_DEFINITIONS:
                return False
            further = [(other, d) for other, d in users if (other.path, d.name) not in seen]
            pending += further
            seen |= {(other.path, d.name) for other, d in further}
        return all(self._leaves(self._files[path], name) for path, name in seen)

    def _users(self, file: File, definition: Definition) -> list[tuple[File, Definition]] | None:
        """The definitions that mention one, and those that it may be found by; None where anything else may."""
        plain = file.is_plain(definition, by_base=self._finds_by_base, reached=False) or (
            self.reaches_most and file.is_plain(definition, by_base=self._finds_by_base, reached=True)
        )
        own = file.users(definition, apart=self._unused(file, definition)) if plain else None
        found_otherwise = is_a_test(definition.name.encode()) or _is_named_in_texts(self._folder, definition.name)
        if own is None or found_otherwise:
            return None
        others = self._users_elsewhere(file, definition.name)
        if others is None:
            return None
        bases = file.bases(definition) if self._finds_by_base else []
        return [*((file, user) for user in (*own, *bases)), *others]

    def _unused(self, file: File, definition: Definition) -> list[str]:
        """The names that a file gives what it makes of a definition, and that nothing mentions, where the project
        reaches most of what it defines."""
        names = file.assigned_of(definition) if self.reaches_most else []
        return [name for name in names if all(other is file for other in self._spelling(name) or (None,))]

    @kept
    def _finds_by_base(self) -> bool:
        """Whether the project may find classes by what they derive from."""
        return _is_anywhere(_BY_BASE, self._folder, contents.age())

    def _users_elsewhere(self, file: File, name: str) -> list[tuple[File, Definition]] | None:
        """The definitions of other files of the project that mention a name; None where anything else does, or too many
        spell it."""
        others, found = self._spelling(name), []
        for other in others or ():
            users = other.users_of(file, name) if other is not file else []
            if users is None or (other.imports(file, name) and self._is_taken_whole(other)):
                return None
            found += [(other, user) for user in users]
        return found if others is not None else None

    def _leaves(self, file: File, name: str) -> bool:
        """Whether other files take by its name what a file defines, and none takes all of it or lets its users do so;
        or else the file, as a program, uses what it defines, but not that, or nobody runs it."""
        if self._is_taken_whole(file):
            return False
        if not (self._takes[file.path] or set()).isdisjoint(file.found):
            return True
        if file.tried:
            return name not in file.tried
        return self.reaches_most or self._is_idle(file)

    def _is_copy(self, file: File, target: Definition) -> bool:
        """Whether a file that none imports has a definition, or all in it that use it, as another file has, which is
        the one that others take them from. What is decorated may be registered."""
        reaching = file.reaching(target)
        if reaching is None or self._is_named(file):
            return False
        last = [name for name, users in reaching.items() if not users]
        if any(file.found[name].decorator_list for name in (target.name, *last)):
            return False
        return self._is_taken_elsewhere(file, target.name) or (
            bool(last) and all(self._is_taken_elsewhere(file, name) for name in last)
        )

    def _is_taken_elsewhere(self, file: File, name: str) -> bool:
        """Whether a third file takes by a name what another one defines."""
        others = self._spelling(name) or ()
        defining = [other for other in others if other is not file and name in other.found]
        return any(name in taker.taken(one) for one in defining for taker in others if taker is not one)

    def _is_idle(self, file: File) -> bool:
        """Whether a file runs nothing, and none imports it, as some do its neighbours. Of what is installed the
        ``__init__`` of the folder has to take what neighbours define: else users import the files themselves."""
        if not file.only_defines or self._imports_by_text or self._is_named(file):
            return False
        return self._is_left_out(file) if file.installed else self._has_neighbours(file)

    def _is_named(self, file: File) -> bool:
        """Whether a file imports another one or has its name, or a text has."""
        if file.path not in self._named:
            others = self._asking_for(file.module)
            self._named[file.path] = (
                others is None
                or any(other.names_or_takes(file) for other in others if other is not file)
                or _is_named_in_texts(self._folder, file.module)
            )
        return self._named[file.path]

    def _is_left_out(self, file: File) -> bool:
        """Whether the ``__init__`` of its folder takes a class or function from another file of it."""
        exporting = self._at(file.path.with_name("__init__.py"))
        return exporting is not None and any(
            name == ANY or name in one.found for one in self._neighbours(file) for name in exporting.taken(one)
        )

    def _neighbours(self, file: File) -> Iterator[File]:
        """The other files of a folder but for its ``__init__``, as many as are looked at."""
        for path in sorted(file.path.parent.glob("*.py"))[:MAX_NEIGHBOURS]:
            one = self._at(path) if path not in (file.path, path.with_stem("__init__")) else None
            if one is not None:
                yield one

    def _has_neighbours(self, file: File) -> bool:
        """Whether some file imports another one of the same folder."""
        for one in self._neighbours(file):
            others = self._asking_for(one.module)
            if others and any(True for other in others if other is not one for _ in other.taken(one)):
                return True
        return False

    @kept
    def _imports_by_text(self) -> bool:
        """Whether the project may import modules by names that it is given."""
        return _is_anywhere(_IMPORTS, self._folder, contents.age())

    def _is_taken_whole(self, file: File) -> bool:
        if file.path not in self._takes:
            self._takes[file.path] = self._taken(file)
        return self._takes[file.path] is None

    def _taken(self, file: File, through: tuple[Path, ...] = ()) -> set[str] | None:
        """Names that other files take from a file; None where they may take any."""
        others = self._asking_for(file.module)
        if others is None or file.by_text or _is_exporting(file):
            return None
        taken: set[str] = set()
        for other in others:
            for name in other.taken(file) if other is not file else ():
                if name is None or (_is_exporting(other) and (name == ANY or not self.reaches_most)):
                    return None
                if name != ANY:
                    taken.add(name)
                elif other.path in through or self._taken(other, (*through, file.path)) is None:
                    return None
                else:
                    taken |= file.found.keys() & other.names
        return taken

    @property
    def _folder(self) -> Path:
        assert self._scope is not None
        return self._scope

    def _is_private(self, path: Path) -> bool:
        """Whether a file is a package's own, by an underscore before its name or that of a folder around it."""
        if self._scope is None or self._scope not in path.parents:
            return False
        within = path.relative_to(self._scope).parts
        return any(part.startswith("_") and not part.startswith("__") for part in within)

    def _spelling(self, word: str) -> list[File] | None:
        return self._files_at(spelling(self._folder, True, contents.age(), word.encode()))

    def _files_at(self, paths: tuple[Path, ...] | None) -> list[File] | None:
        if paths is None or len(paths) > MAX_PARSED:
            return None
        return [file for file in map(self._at, paths) if file is not None]

    def _asking_for(self, module: str) -> list[File] | None:
        """The files that may import a module of a name, or have it in a text of one word."""
        return self._files_at(naming_module(self._folder, True, contents.age(), module.encode()))

    def _at(self, path: Path) -> File | None:
        """A file of the project, parsed once; None where it cannot be."""
        source = parsed(path) if path not in self._files else None
        return self._of(path, source) if source is not None else self._files.get(path)

    def _of(self, path: Path, source: Source) -> File:
        if path not in self._files:
            self._files[path] = File(path, source, is_installed(path) and not self._is_private(path))
        return self._files[path]


leftovers_of = lru_cache(maxsize=2)(Leftovers)
"""What a file leaves, once for all that ask."""


@lru_cache(maxsize=64)
def _is_anywhere(pattern: re.Pattern[bytes], folder: Path, age: int) -> bool:
    """Whether a file of a project matches a pattern; so where it has too many."""
    paths = matching(folder, True, age, pattern)
    return paths is None or bool(paths)


def _is_exporting(file: File) -> bool:
    return file.path.stem == "__init__" and file.installed


def _is_named_in_texts(package: Path, name: str) -> bool:
    """Whether a test, example, configuration or page of the project has the word; so where it has too many."""
    texts = _texts(package, contents.age())
    word = re.compile(rb"\b%b\b" % re.escape(name.encode()))
    return texts is None or any(word.search(text) for text in texts)


@lru_cache(maxsize=1)
def _texts(package: Path, age: int) -> tuple[bytes, ...] | None:
    """What the files of a project hold that are no source of the package; None where they are too many."""
    try:
        return tuple(data for _, data in read_all(_beside(package)))
    except TooLargeError:
        return None


def _beside(package: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(project_around(package / "_") or package):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in LIBRARY_FOLDERS]
        within = package == Path(folder) or package in Path(folder).parents
        for file in (Path(folder, name) for name in names):
            with suppress(OSError):
                if file.suffix in TEXTS and not (within and file.suffix == ".py"):
                    yield from [file] if file.stat().st_size <= MAX_TEXT_BYTES else ()
