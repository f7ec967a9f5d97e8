"""What the inference says of one file: the interface that rules read.

Everything here is data about ``ast`` nodes of one :class:`~amplint.source.Source`; nodes compare by identity.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from amplint.compiling import kept
from amplint.frozen import dataclass
from amplint.infer.flow.training.training import Training
from amplint.infer.lattice.origins import causes
from amplint.infer.names.taken_from import TakenFrom
from amplint.infer.syntax.references import Reference, references

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterable, Mapping, Sequence, Set

    from amplint.finding import Cause
    from amplint.infer.lattice.dtypes import Autocast, Dtypes
    from amplint.infer.lattice.scenarios import Scenario
    from amplint.infer.lattice.strength import Strength
    from amplint.infer.lattice.values import Layer, Limit, Origin, Tensor, Value
    from amplint.infer.names.definitions import Class
    from amplint.infer.state.function_facts import AutogradFunction
    from amplint.infer.state.operand import MadeOperand, Operand
    from amplint.source import Source, Span


@dataclass(frozen=True, slots=True)
class Region:
    """An autocast region that the code opens: a ``with`` item or a decorator.

    ``before`` and ``inside`` are autocast's states under the judged device's policy; ``nested`` says that the code runs
    inside another region, or in a module's method, where the scenario's ambient autocast is around it.
    """

    node: ast.expr
    name: str
    before: Autocast
    inside: Autocast
    nested: bool
    dtype_given: bool
    call: ast.Call | None = None


class Kind(str, Enum):
    """Which sort of operation disagrees; the most specific one that fits. Each is one rule's."""

    ATTENTION = "attention"
    INDEX_WRITE = "index-write"
    OUT_VARIANT = "out-variant"
    BACKWARD = "backward"
    AUTOCAST_EXIT = "autocast-exit"
    UPCAST = "upcast"
    UNDONE_UPCAST = "undone-upcast"
    CONSTANT = "constant"
    TABLE = "table"
    EXTENSION = "extension"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True, eq=False)
class Mismatch:
    """An operation met operands of dtypes that do not go together, in some scenarios of one context.

    ``pair`` are those that differ, or one twice where the operation does not take its dtype; ``lanes`` the numbers of
    the scenarios. ``strengths`` says how surely they differ in each of them; it is empty where no such comparison was
    made.
    """

    node: ast.expr | ast.stmt
    op: str
    kind: Kind
    pair: tuple[Operand, Operand]
    operands: tuple[Operand, ...]
    lanes: tuple[int, ...]
    strengths: tuple[Strength, ...] = ()
    raises: bool = True
    """False where autocast silently undoes what the code asks for."""
    cited: bool = False
    """It is a kernel of another library, by what that library's source says."""
    low_default: bool = True
    """Whether the modules of its file may be built under a 16-bit default dtype, where scenarios differ in that."""
    aligned: Span | None = None
    """The cast elsewhere in the file by which it is known that callers may pass operands of different dtypes."""
    led_by: ast.expr | None = None
    """The call, in the region that switched autocast off, that leads to the function in which the operation stands."""
    elsewhere: Cause | None = None
    """The operation, where it stands in another file: ``node`` is the call that leads there from the checked one,
    and the operands have no nodes."""
    brought: tuple[int, ...] = ()
    """Of an operation elsewhere: the scenarios in which the checked file is to blame."""


class Refused(NamedTuple):
    """An operation that the device has no kernel for in these scenarios, that autocast refuses there, or that raises
    unless something unknown happens to fit."""

    node: ast.expr | ast.stmt
    lanes: tuple[int, ...]


class Unmoved(NamedTuple):
    """An operation meets a tensor of the host's memory, which nothing has moved, beside one of the device that is
    judged: in these scenarios torch raises, whatever their dtypes."""

    node: ast.expr | ast.stmt
    lanes: tuple[int, ...]


class Used(NamedTuple):
    """An operation that low precision may not bear was met, where something may have raised before."""

    node: ast.expr | ast.stmt
    use: Use


class BranchesMet(NamedTuple):
    """Branches of these paths, one of which is always taken, were followed and meet again."""

    paths: tuple[tuple[int, ...], ...]


class Called(NamedTuple):
    """A call came to its end, or, if ``again``, it equals an earlier one of this number and was not followed."""

    call: int
    again: bool


class Confirming(NamedTuple):
    """From here on, or up to here if ``done``, an autograd Function runs with what modules were seen to pass it."""

    node: ast.ClassDef
    done: bool


class Running(NamedTuple):
    """An activation of a function while something happened: its number, ``id`` of the function's node (0 at the top
    level of a module), the branches that ran and might not, each by ``id`` of its statements, and the statement that
    ran, by line."""

    number: int
    function: int
    path: tuple[int, ...]
    row: int


class Event(NamedTuple):
    """What tells of operands that disagree, or of what is reached behind them, and where the program was then.

    ``chain`` begins with the activation that ran and ends with the outermost one. ``callers`` are the functions of the
    checked file that led there, the last one first; ``branched``: it stood in a branch or a loop; ``own``: in the
    checked file; ``path``: in which.
    """

    what: Mismatch | Refused | Unmoved | Used | BranchesMet | Called | Confirming
    chain: tuple[Running, ...]
    callers: tuple[int, ...]
    branched: bool
    autocast: Autocast
    own: bool
    path: Path


class Aligned(NamedTuple):
    """Operands that disagree if callers pass different dtypes, and the cast that gives such operands one dtype in
    another function."""

    mismatch: Mismatch
    function: int
    cast: Cause


Sink = Literal["returned", "rebound", "parameter"]
"""What becomes of a promoted tensor: a module returns it; it takes the narrow one's place; or it stays where autocast
made the narrow one, and a parameter of float32 was selected beside it."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """An operation whose half-precision operand becomes float32 because of another operand.

    ``wide`` is a parameter of an explicit dtype, or ``made`` says where it got its dtype, or ``upcast`` where it was
    cast to float32 in so many words. ``lanes`` are the numbers of the scenarios. ``sink``: why that matters. Of those
    that are ``returned`` only the scenarios are left in which a module's ``forward`` does.
    """

    node: ast.expr | ast.stmt
    op: str
    narrow: Operand
    wide: Operand
    lanes: tuple[int, ...]
    made: MadeOperand | None
    function: int
    upcast: Origin | None = None
    sink: Sink = "returned"


@dataclass(frozen=True, slots=True)
class Apart:
    """An operation that makes one of query, key and value float32, which a kernel gets beside a half-precision one.

    ``tensor`` is the one that ``node`` widens, ``by_autocast`` or by promotion, ``sibling`` the one that stayed; they
    have no nodes, the kernel may be called in another file. ``lanes`` are the scenarios.
    """

    node: ast.expr | ast.stmt
    tensor: Operand
    sibling: Operand
    kernel: str
    by_autocast: bool
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Addressed:
    """A tensor of torch's default dtype whose memory address the program takes, for compiled code to read.

    ``node`` makes it, ``causes`` show where the address is taken. ``low_default``: something says that the default
    dtype may be 16 bit there.
    """

    node: ast.expr | ast.stmt
    what: str
    causes: tuple[Cause, ...]
    low_default: bool


@dataclass(frozen=True, slots=True)
class BranchDtypes:
    """Two returns of one function whose tensors differ in dtype in some scenarios without autocast.

    ``node`` is the one whose dtype is fixed in the source, else the later; ``lanes`` are the scenarios.
    """

    node: ast.expr
    other: ast.expr
    tensor: Operand
    reference: Operand
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TorchCall:
    """A call of a torch function, method or layer: what was called, under which autocast, in which live scenarios.

    Of several contexts in which one call runs, the one with autocast on in most scenarios is kept.
    """

    node: ast.Call
    name: str
    autocast: Autocast
    live: int
    region: Region | None
    in_module: bool
    arguments: dict[str, Value] = field(hash=False)


@dataclass(frozen=True, slots=True)
class CastCall:
    """A call of ``.half()``, ``.to(dtype)``, ``.type(dtype)`` and the like on a tensor.

    ``tensor`` is what is cast; ``dtypes`` what it is cast to. ``written``: that is spelled out in the source.
    ``discarded``: the call is a statement of its own. Of several contexts in which it runs, the first is kept, unless
    in another one it is less sure that the value is a tensor.
    """

    node: ast.Call
    tensor: Tensor
    dtypes: Dtypes
    written: bool
    discarded: bool
    live: int
    in_module: bool
    function: int


@dataclass(frozen=True, slots=True)
class Use:
    """An operation that low precision may not bear, as it is applied in one context.

    ``operands``: its tensors, with the dtypes that the kernel sees after autocast's casts; of a constructor or an
    assignment the tensor that is filled. ``numbers``: extreme Python numbers among the arguments, by parameter.
    ``arguments`` are the arguments' values by parameter, ``nodes`` their expressions. ``low_default``: of what only a
    module that is made in low precision runs there, whether something says that one is.
    """

    node: ast.expr | ast.stmt
    op: str
    operands: tuple[Operand, ...]
    numbers: dict[str, float | Limit] = field(hash=False)
    arguments: dict[str, Value] = field(hash=False)
    nodes: dict[str, ast.expr] = field(hash=False)
    live: int = 0
    in_module: bool = False
    function: int = 0
    low_default: bool = True


class Reach(Protocol):
    """What runs on weights in one file, by line; ``of_modules``: what modules run, those without weights too;
    ``of_calls``: what calling a module that owns weights runs."""

    @property
    def of_modules(self) -> Reach: ...

    @property
    def of_calls(self) -> Reach: ...

    def holds(self, row: int) -> bool: ...

    def of_module(self, row: int) -> bool: ...

    def around(self, row: int) -> Sequence[Class]: ...


@dataclass(frozen=True, eq=False)
class FileFacts:
    """All facts about one file, under one device's cast policy, for several scenarios at once.

    ``torch_version`` is the release that they are true of, ``oldest`` the oldest that the file has to run with, None
    where nothing says; ``changes`` are the releases from which on one of them became true;
    ``followed`` the other files that they rest on, those of facts that are found on demand included once they were.
    """

    source: Source
    path: Path
    device: str
    torch_version: tuple[int, int]
    scenarios: tuple[Scenario, ...]
    regions: tuple[Region, ...]
    trace: tuple[Event, ...]
    calls: tuple[TorchCall, ...]
    autograd_functions: tuple[AutogradFunction, ...]
    casts: tuple[CastCall, ...] = ()
    promotions: tuple[Promotion, ...] = ()
    addressed: tuple[Addressed, ...] = ()
    apart: tuple[Apart, ...] = ()
    branches: tuple[BranchDtypes, ...] = ()
    uses: tuple[Use, ...] = ()
    unhindered: Set[int] = frozenset()
    """``id`` of the uses that were met where nothing had raised."""
    refused_calls: Set[int] = frozenset()
    """``id`` of the calls whose arguments no function takes that they were seen to call."""
    activations: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """The activations of each function of the file whose body was followed, by the line of its definition."""
    called: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Those of them that another function was seen to call."""
    callers: Mapping[int, Set[int]] = field(default_factory=dict)
    """The functions that were seen to call a function of the file, each by the line of its definition; 0 for those of
    other files."""
    entered: Set[int] = frozenset()
    """``id`` of the functions of the file whose body was followed as called from outside of all functions."""
    unfinished: Set[int] = frozenset()
    """``id`` of the functions whose body was not followed to its end each time, for want of budget."""
    layers_called: Mapping[int, Layer] = field(default_factory=dict)
    """By ``id`` of a call in the file, the layer that it calls: the first of several."""
    aligned: tuple[Aligned, ...] = ()
    oldest: tuple[int, int] | None = None
    named: bool = False
    """Whether somebody named the scenarios, and so means them whatever the code shows."""
    changes: frozenset[tuple[int, int]] = frozenset()
    followed: Set[Path] = frozenset()
    root: tuple[Path, str] = (Path(), "")
    """The folder that absolute imports start from, and the dotted name of the package that holds the file."""
    weight_reach: Reach | None = field(default=None, repr=False, compare=False)
    """Whether what stands on a line runs on weights; None where that is not asked."""
    taken_from: Callable[[ast.alias, ast.Import | ast.ImportFrom], TakenFrom] = field(
        default=lambda _alias, _statement: TakenFrom.SOURCE, repr=False, compare=False
    )
    """Where the code lies that an import of the file brings."""

    @property
    def oldest_torch(self) -> tuple[int, int]:
        """The oldest release of torch that the file has to run with, that of the facts where nothing says: what is
        written must exist there."""
        return self.oldest or self.torch_version

    def constructor(self, layer: Layer) -> ast.Call | None:
        """Where the file constructs a layer; None for one that is made elsewhere."""
        return self._constructors.get((layer.name, layer.span))

    @kept
    def _constructors(self) -> dict[tuple[str, Span | None], ast.Call]:
        """The calls of torch's objects, by the name of what is called and their place."""
        calls = [(reference.name, reference.call) for reference in self.references if reference.call is not None]
        return {(name, self.span(call)): call for name, call in reversed(calls)}

    @kept
    def opened(self) -> frozenset[int]:
        """``id`` of the expressions that open a region."""
        return frozenset(id(region.node) for region in self.regions)

    @kept
    def references(self) -> tuple[Reference, ...]:
        """Every name in the file that its imports resolve to a torch object; found when first asked for."""
        return references(self.source.tree)

    @kept
    def training(self) -> Training:
        """The training steps of the file; followed when first asked for."""
        return Training(self.source.tree, self.references)

    def half_weights_only(self, scenarios: Iterable[str]) -> bool:
        """Whether autocast is on in none of the scenarios of that name."""
        named = frozenset(scenarios)
        return not any(s.autocast for s in self.scenarios if s.name in named)

    def runs_on_weights(self, row: int) -> bool:
        """Whether something that owns weights is seen to lead to a line, or that was not asked of this file."""
        return self.weight_reach is None or self.weight_reach.holds(row)

    def runs_when_called(self, row: int) -> bool:
        """Whether calling something that owns weights is seen to lead to a line, or that was not asked of this file."""
        return self.weight_reach is None or self.weight_reach.of_calls.holds(row)

    def runs_in_a_module(self, row: int) -> bool:
        """Whether a module, with weights or without, is seen to lead to a line, or that was not asked of this file."""
        return self.weight_reach is None or self.weight_reach.of_modules.holds(row)

    def in_module(self, row: int) -> bool:
        """Whether a line stands in a class that is seen to be a module."""
        return self.weight_reach is not None and self.weight_reach.of_module(row)

    def classes_around(self, row: int) -> Sequence[Class]:
        """The classes that a line stands in, or none where that was not asked of this file."""
        return self.weight_reach.around(row) if self.weight_reach is not None else ()

    def names(self, lanes: Iterable[int]) -> tuple[str, ...]:
        """Scenario names of lane numbers, in the order of the contract."""
        wanted = set(lanes)
        return tuple(s.name for i, s in enumerate(self.scenarios) if i in wanted)

    def all_scenarios(self) -> tuple[str, ...]:
        """Every judged scenario but the float32 control."""
        return tuple(s.name for s in self.scenarios if s.name != "fp32")

    def causes(self, operands: Iterable[Operand], lane: int) -> tuple[Cause, ...]:
        """Where operands' dtypes were decided in one scenario."""
        return causes(self.path, (operand.value for operand in operands), lane)

    def span(self, node: ast.expr | ast.stmt) -> Span:
        return self.source.span(node)
