"""Imports the file under test, as its project would, with other text in the place of some files if asked."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import types
    from collections.abc import Mapping


class LoadError(Exception):
    """The file could not be imported: one line that says why, and at which line where that is known."""


def module_name(path: Path) -> tuple[Path, str]:
    """The folder to import from and the dotted name: packages are the folders upwards that hold ``__init__.py``.

    So are those without one up to a folder that the file imports from by name and that nothing else provides.
    """
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    imported = _imported(path)
    for above in (folder, *folder.parents):
        if above.name in imported and not _is_elsewhere(above):
            folder = above.parent
            break
    parts = path.relative_to(folder).with_suffix("").parts
    return folder, ".".join(parts[:-1] if path.name == "__init__.py" and len(parts) > 1 else parts)


def _is_elsewhere(folder: Path) -> bool:
    """Whether the package of the folder's name is another one."""
    loaded = sys.modules.get(folder.name)
    if loaded is not None:
        return str(folder) not in getattr(loaded, "__path__", ())
    spec = importlib.util.find_spec(folder.name)
    return spec is not None and str(folder) not in (spec.submodule_search_locations or ())


def _imported(path: Path) -> set[str]:
    """The top-level names that a file imports, without relative imports; none where it cannot be parsed."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return set()
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.partition(".")[0])
    return names


def make_importable(*folders: Path) -> None:
    """Put the folders first on the path, the last one foremost."""
    for folder in map(str, folders):
        if folder in sys.path:
            sys.path.remove(folder)
        sys.path.insert(0, folder)


def load(path: Path) -> types.ModuleType:
    """Import the file, after :func:`make_importable`, unless that has happened already. Raises LoadError."""
    _, name = module_name(path)
    imported = sys.modules.get(name)
    if imported is not None and _same_file(getattr(imported, "__file__", None), path):
        return imported
    try:
        if "." in name or _is_first_choice(name, path):
            module = importlib.import_module(name)
            if _same_file(getattr(module, "__file__", None), path):
                return module
        return load_file(path, name)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise LoadError(f"cannot import {path.name}: {one_line(error)}") from error


def _is_first_choice(name: str, path: Path) -> bool:
    """Whether importing the name would give that file: ``code.py`` must not become the standard library's."""
    if not name.isidentifier() or name in sys.modules:
        return False
    spec = importlib.util.find_spec(name)
    return spec is not None and _same_file(spec.origin, path)


def _same_file(origin: str | None, path: Path) -> bool:
    return origin is not None and Path(origin).resolve() == path.resolve()


def load_file(path: Path, name: str = "") -> types.ModuleType:
    """Import one file by itself, under its own name where that is free."""
    name = name.rpartition(".")[2] or path.stem
    if name in sys.modules or not name.isidentifier():
        name = f"amplint_target_{abs(hash(str(path))):x}"
    spec = importlib.util.spec_from_file_location(name, path, loader=SourceFileLoader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def overlay_files(overlay: Mapping[str, str]) -> None:
    """Let every later import of the process read these texts in the place of the files' own."""
    if not overlay:
        return
    texts = {str(Path(path).resolve()): text.encode() for path, text in overlay.items()}
    read = SourceFileLoader.get_data

    def get_data(self: SourceFileLoader, path: str) -> bytes:
        text = texts.get(str(Path(path).resolve())) if path.endswith(".py") else None
        return read(self, path) if text is None else text

    def get_code(self: SourceFileLoader, fullname: str) -> Any:
        path = self.get_filename(fullname)
        if str(Path(path).resolve()) in texts:
            return self.source_to_code(self.get_data(path), path)
        return code(self, fullname)

    code = SourceFileLoader.get_code
    SourceFileLoader.get_data = get_data  # type: ignore[method-assign, assignment]
    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def find(module: types.ModuleType, qualified: str) -> Any:
    """The class or function of that qualified name. Raises LoadError."""
    value: Any = module
    for part in qualified.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise LoadError(f"{Path(module.__file__ or '').name} defines no {qualified} when imported") from None
    return value


def one_line(error: BaseException) -> str:
    """Type and first line of an error, without a trailing stop."""
    lines = str(error).strip().splitlines()
    text = lines[0].rstrip(".")[:300] if lines else ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
