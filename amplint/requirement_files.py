"""Requirements as a project's files state them: texts such as ``torch>=2.1``, read and never run.

Each reader takes a file's text and yields requirements; text that is not of the file's form raises ValueError.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Table = dict[str, Any]


def requirement_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """(row, column, requirement) of each line of a requirements file that is neither option nor comment, from 1."""
    for row, line in enumerate(text.splitlines(), start=1):
        content = re.split(r"\s#|\s--|\s*\\$", line)[0]
        stripped = content.strip()
        if stripped and not stripped.startswith(("#", "-")):
            yield row, content.index(stripped) + 1, stripped


def included_files(text: str) -> Iterator[str]:
    """The files that a requirements file takes in with ``-r``."""
    for line in text.splitlines():
        found = re.match(r"\s*(?:-r|--requirement)[\s=]+(\S+)", line)
        if found is not None:
            yield found[1]


def pyproject_groups(document: Table) -> Iterator[tuple[str, list[str]]]:
    """(group, requirements) of a pyproject.toml by its standard tables; the project's own have the name ``""``."""
    project = table_at(document, "project")
    yield "", _strings(project.get("dependencies"))
    for tables in (table_at(project, "optional-dependencies"), table_at(document, "dependency-groups")):
        for name, group in tables.items():
            yield name, _strings(group)


def poetry_groups(document: Table) -> Iterator[tuple[str, list[str]]]:
    """The same for Poetry's tables, with its carets and tildes written out as ranges."""
    poetry = table_at(document, "tool", "poetry")
    groups = {name: table_at(poetry, "group", name, "dependencies") for name in table_at(poetry, "group")}
    tables = {"": table_at(poetry, "dependencies"), "dev-dependencies": table_at(poetry, "dev-dependencies"), **groups}
    for name, table in tables.items():
        yield name, [text for package, value in table.items() for text in _of_poetry(package, value)]


def _of_poetry(package: str, value: Any) -> Iterator[str]:
    for entry in value if isinstance(value, list) else [value]:
        text = entry.get("version", "*") if isinstance(entry, dict) else entry
        if isinstance(text, str):
            for alternative in text.split("||"):
                parts = [part for part in re.split(r"[,\s]+(?=[\^~<>=!\d*])", alternative.strip()) if part]
                yield f"{package} {','.join(filter(None, map(_plain, parts)))}".strip()


def _plain(part: str) -> str:
    """One of Poetry's version constraints as PEP 440 has it; empty for any version."""
    text = part.replace(" ", "")
    found = re.fullmatch(r"(\^|~(?!=))(\d+(?:\.\d+)*)(.*)", text)
    if found is not None:
        numbers = [int(number) for number in found[2].split(".")]
        place = min(1 if found[1] == "~" else next((i for i, n in enumerate(numbers) if n), 0), len(numbers) - 1)
        above = [*numbers[:place], numbers[place] + 1]
        return f">={found[2]}{found[3]},<{'.'.join(map(str, above))}"
    if text == "*":
        return ""
    return f"=={text}" if text[0].isdigit() else text


def setup_cfg_groups(text: str) -> Iterator[tuple[str, list[str]]]:
    """The same for ``install_requires`` and the extras of a setup.cfg."""
    from configparser import ConfigParser
    from configparser import Error as ConfigError

    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except ConfigError as error:
        raise ValueError(str(error)) from error
    yield "", [row[2] for row in requirement_lines(parser.get("options", "install_requires", fallback=""))]
    if parser.has_section("options.extras_require"):
        for name, value in parser.items("options.extras_require"):
            yield name, [row[2] for row in requirement_lines(value)]


def python_of_pyproject(document: Table) -> str | None:
    """The Pythons that a pyproject.toml allows, as PEP 440 has it: by its standard table, else by Poetry's."""
    python = table_at(document, "tool", "poetry", "dependencies").get("python")
    poetry = ",".join(filter(None, map(_plain, re.split(r"[,\s]+", python)))) if isinstance(python, str) else None
    stated = table_at(document, "project").get("requires-python")
    return stated if isinstance(stated, str) else poetry


def python_of_setup_cfg(text: str) -> str | None:
    """The same of a setup.cfg."""
    found = re.search(r"^python_requires[ \t]*[=:][ \t]*(\S.*)$", text, re.MULTILINE)
    return found[1] if found is not None else None


def python_of_setup_py(text: str) -> str | None:
    """The same of a setup.py that writes them out in its call."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, RecursionError) as error:
        raise ValueError(str(error)) from error
    stated = (k.value for k in ast.walk(tree) if isinstance(k, ast.keyword) and k.arg == "python_requires")
    return next((v.value for v in stated if isinstance(v, ast.Constant) and isinstance(v.value, str)), None)


def python_of_metadata(text: str) -> str | None:
    """The same of the metadata of a distribution."""
    from email.parser import HeaderParser

    return HeaderParser().parsestr(text).get("Requires-Python")


def metadata_groups(text: str) -> Iterator[tuple[str, list[str]]]:
    """The same for the metadata of a distribution, whose extras stand in markers."""
    from email.parser import HeaderParser

    for requirement in HeaderParser().parsestr(text).get_all("Requires-Dist", []):
        extra = re.search(r"\bextra\s*==\s*['\"]([^'\"]+)", requirement)
        yield (extra[1] if extra is not None else ""), [requirement]


def setup_py_requirements(text: str) -> Iterator[str]:
    """The strings of a setup.py that stand in a list, tuple or set, or are values of a dictionary.

    Requirements are among them, and where they come from is the script's own: nothing of it is run.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, RecursionError) as error:
        raise ValueError(str(error)) from error
    described = {id(k.value) for k in ast.walk(tree) if isinstance(k, ast.keyword) and k.arg in _DESCRIPTIONS}
    for node in ast.walk(tree):
        items: Iterable[ast.expr | None] = ()
        if id(node) in described:
            continue
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            items = node.elts
        elif isinstance(node, ast.Dict):
            items = node.values
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            items = node.args
        for item in items:
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                yield item.value


_DESCRIPTIONS = ("keywords", "classifiers", "packages", "py_modules", "platforms")
"""Arguments of ``setup`` whose lists are no requirements."""


def conda_requirements(text: str) -> Iterator[str]:
    """The dependencies of a conda environment, as PEP 440 writes them and without channel and build, and those that it
    hands to pip. conda's ``=1.12`` is any release that begins so."""
    from importlib import import_module

    yaml: Any = import_module("yaml")
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    dependencies = document.get("dependencies") if isinstance(document, dict) else None
    for entry in dependencies if isinstance(dependencies, list) else ():
        if isinstance(entry, dict):
            yield from _strings(entry.get("pip"))
        elif isinstance(entry, str):
            found = re.fullmatch(r"(?:[^:\s]+::)?([\w.-]+)\s*(.*)", entry.partition("#")[0].strip())
            if found is not None:
                yield f"{found[1]} {_of_conda(found[2])}".strip()


def _of_conda(constraint: str) -> str:
    """``=1.12=py3.9_cuda``, ``>=1.10,<2``, ``==1.12.1`` or ``1.12.*`` as PEP 440 has it; empty for any version."""
    compared = re.match(r"(?:[<>!]=?|==|~=)[^=\s]*", constraint)
    if compared is not None:
        return re.split(r"\s|(?<=[\w*])=", constraint)[0]
    version = constraint.lstrip("= ").split("=")[0].split(" ")[0].rstrip("*.")
    return f"=={version}.*" if version else ""


def table_at(document: Table, *keys: str) -> Table:
    """A table below others; empty where one of them is missing or no table."""
    for key in keys:
        below = document.get(key)
        if not isinstance(below, dict):
            return {}
        document = below
    return document


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
