"""How many lines of code amplint and its rules have, at some revisions.

    python benchmarks/code_lines.py [REVISION]...

A line counts where it holds more than a comment or a part of a docstring; the examples in a rule's class count apart.
Without revisions the last commit is counted.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("amplint", "rules")
_EXAMPLES = ("bad", "good")
_NOTHING = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def main(revisions: list[str]) -> int:
    """Print a line for each revision: files and lines of code by folder, and in all without examples."""
    for revision in revisions or ["HEAD"]:
        counts: Counter[str] = Counter()
        for path in _git("ls-tree", "-r", "--name-only", revision, *FOLDERS).splitlines():
            if path.endswith(".py"):
                code, examples = counted(_git("show", f"{revision}:{path}"))
                folder = path.partition("/")[0]
                counts[folder] += code
                counts["files"] += 1
                counts["examples"] += examples
        total = sum(counts[folder] for folder in FOLDERS)
        folders = ", ".join(f"{folder} {counts[folder]}" for folder in FOLDERS)
        print(
            f"{revision}: {total} lines of code ({folders}), {counts['examples']} of examples, {counts['files']} files"
        )
    return 0


def counted(text: str) -> tuple[int, int]:
    """The lines of code of a file without its examples, and those of the examples."""
    tree = ast.parse(text)
    left_out = {row for node in _docstrings(tree) for row in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    examples = {row for node in _examples(tree) for row in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    rows: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NOTHING:
            rows.update(range(token.start[0], token.end[0] + 1))
    return len(rows - left_out - examples), len(rows & examples)


def _docstrings(tree: ast.Module) -> list[ast.Expr]:
    """Strings that stand alone: docstrings of definitions, and those below an assignment."""
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Expr))
    return [node for node in found if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)]


def _examples(tree: ast.Module) -> list[ast.AnnAssign]:
    """``bad: ClassVar[...] = (...)`` and ``good`` in classes."""
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
    assigned = (node for cls in classes for node in cls.body if isinstance(node, ast.AnnAssign))
    return [node for node in assigned if isinstance(node.target, ast.Name) and node.target.id in _EXAMPLES]


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
