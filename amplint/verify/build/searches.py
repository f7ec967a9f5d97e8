"""What repairs may ask of the search that they are for, and what one try of a forward showed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from amplint.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn

    from amplint.verify.build.signatures import Parameter
    from amplint.verify.build.spec import Plan, Spec
    from amplint.verify.build.trace import Trace


class ArgumentSearch(Protocol):
    """A search for the arguments of a constructor."""

    @property
    def target(self) -> type:
        """The class to construct."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """What its constructor takes."""

    def choices(self, name: str) -> list[Spec]:
        """What to try for a parameter; also for a name that only ``**kwargs`` takes."""

    def required(self) -> list[str]:
        """Parameters without a default."""

    def takes_any_keyword(self) -> bool:
        """True if the constructor has ``**kwargs``."""


class InputSearch(Protocol):
    """A search for the inputs of a module."""

    @property
    def module(self) -> nn.Module:
        """The module to run."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """What its forward takes."""

    def choices(self, plan: Plan, name: str) -> list[Spec]:
        """What to try for a parameter, given the rest of the plan."""


@dataclass(frozen=True)
class Probe:
    """What came of one try: no ``error`` means that it ran and its result depends on an input."""

    trace: Trace
    error: BaseException | None
