"""Which half a library or repository belongs to: one to learn from, one that is kept back and only ever counted.

The half follows from the name alone, so it stands before anybody has read the code. An owner does not count, so that a
repository and the package of the same name lie in the same half. What is read while mending rules is of the learned
half; of the kept half only figures are looked at, never rows.
"""

from __future__ import annotations

import hashlib

LEARNED, KEPT = "learned", "kept"
HALVES = (LEARNED, KEPT)


def project(name: str) -> str:
    """The name of a package, or of ``owner/name``, as it is compared: without owner, case and the kind of its dashes.

    >>> project("lucidrains/x_Transformers")
    'x-transformers'
    """
    return name.rsplit("/", 1)[-1].lower().replace("_", "-").replace(".", "-")


def half(name: str) -> str:
    """``learned`` or ``kept``, of a package's or a repository's name."""
    return HALVES[hashlib.sha256(project(name).encode()).digest()[0] % 2]
