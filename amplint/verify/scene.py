"""What one scenario of an operation that runs alone consists of: plain data, JSON both ways."""

from __future__ import annotations

from dataclasses import field

from amplint.frozen import dataclass
from amplint.verify.plain import Plain


@dataclass(frozen=True)
class LayerPart(Plain):
    """A ``torch.nn`` layer by qualified name, the dtypes of its parameters and buffers by name, and its children."""

    name: str
    dtypes: dict[str, str] = field(default_factory=dict)
    children: tuple[LayerPart, ...] = ()


@dataclass(frozen=True)
class Place(Plain):
    """A name in the text, and what it stands for.

    ``kind``: ``tensor`` (its dtype matters) | ``index`` (a tensor that says where: one of ``dtypes``) | ``number``
    (``dtypes`` is int, float or bool) | ``value`` (not known, and not one whose dtype
    matters) | ``dtype`` | ``layer``.
    ``param`` is the operation's parameter and ``item`` the position in it where it takes a list. ``scalar``: 0-dim.
    ``sparse``: a tensor that holds coordinates (COO).
    """

    name: str
    kind: str
    param: str
    item: int = 0
    dtypes: tuple[str, ...] = ()
    scalar: bool = False
    layer: LayerPart | None = None
    sparse: bool = False


@dataclass(frozen=True)
class Scene(Plain):
    """The operation in one scenario.

    ``names`` are the free names of ``text`` and the torch objects they mean; ``autocast`` is the low dtype where it
    is on at the operation.
    """

    text: str
    statement: bool
    names: dict[str, str]
    places: tuple[Place, ...]
    autocast: str | None
