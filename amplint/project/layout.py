"""Which files say something of a project: a distribution's metadata, and what may name its code."""

from __future__ import annotations

METADATA = ("PKG-INFO", "*.dist-info", "*.egg-info")
"""What says that a distribution was built, in the folder where its imports start or the one above, as patterns."""
BUILDS = {
    "setup.py": rb"\b(?:packages|py_modules)\b|\A(?![\s\S]*\bext_modules\b)",
    "setup.cfg": rb"(?m)^\[metadata\]",
    "pyproject.toml": rb"(?m)^\[(?:build-system|project|tool\.(?:poetry|flit\.metadata|pdm))\]",
}
"""By file, what says how to build a distribution of the folder, of Python modules and not of extensions alone."""
SETTINGS = ("pyproject.toml", "setup.py", "setup.cfg", "CMakeLists.txt", "meson.build", "Makefile", ".gitignore")
"""What may mention modules that a build generates, in the same folders."""
TEXTS = (".py", ".sh", ".yaml", ".yml", ".json", ".toml", ".cfg", ".gin", ".md", ".rst", ".ipynb")
"""Files beside a package's own source that may name what it defines."""
MAX_TEXT_BYTES = 1_000_000
"""Of a larger one nothing is read: it holds data."""
