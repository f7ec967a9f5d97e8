"""Advisories: what is known to go wrong with which versions of which package, and when.

Each is a TOML file in ``advisories/``, named after its id, with these keys:

``package``, ``affected``
    The package (a list where it has several names) and the version ranges (PEP 440) with the defect; a version in any
    of them is affected.
``severity``, ``evidence``
    ``error`` or ``warning``; ``run`` (by amplint's authors, on the released package) or ``cited``.
``happens``, ``remedy``, ``sources``
    What goes wrong, what to do, and the addresses that say so.
``[examples]``
    Versions that are ``affected`` and versions that are ``unaffected``, which the tests compare with the ranges.
``[[when.gpu]]``
    GPUs that it takes, any one: ``capability-below``, ``capability-at-least``, ``tensor-cores``.
``[when.packages]``
    Version ranges of other packages, all of which must hold.
``when.precision``
    Lists of precisions, such as ``fp16-mixed`` (see ``amplint.preflight.frameworks.Use``): the run uses one of each.
``when.device``
    The device type that these precisions are for.
``[[when.call]]``
    Calls that the run makes, all of them: ``name`` (qualified names, of which one; ``*`` as in a shell), and if need be
    ``arguments`` (values, a list where several will do), ``given`` (arguments of which one is there) and ``absent``
    (arguments of which none is there). The first one is where the problem is reported.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from packaging.specifiers import SpecifierSet

from amplint.config import parse_toml
from amplint.finding import Severity
from amplint.frozen import dataclass
from amplint.preflight.frameworks import device_of, dtype_of, uses
from amplint.preflight.gpus import Capability, Gpu, parse_capability
from amplint.preflight.problem import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from packaging.version import Version

    from amplint.preflight.call import Call

KEYS = {"package", "affected", "severity", "evidence", "happens", "remedy", "sources", "examples", "when"}
WHEN_KEYS = {"gpu", "packages", "precision", "device", "call"}
GPU_KEYS = {"capability-below", "capability-at-least", "tensor-cores"}
CALL_KEYS = {"name", "arguments", "given", "absent"}


@dataclass(frozen=True, slots=True)
class GpuCondition:
    """GPUs of a range of compute capabilities, the upper end excluded, with or without tensor cores."""

    below: Capability | None = None
    at_least: Capability | None = None
    tensor_cores: bool | None = None

    def holds(self, gpu: Gpu) -> bool:
        if gpu.capability is None:
            return False
        return (
            (self.below is None or gpu.capability < self.below)
            and (self.at_least is None or gpu.capability >= self.at_least)
            and (self.tensor_cores is None or gpu.fp16_tensor_cores is self.tensor_cores)
        )


@dataclass(frozen=True, slots=True)
class CallCondition:
    """A call by one of some names, with some arguments."""

    names: tuple[str, ...]
    arguments: tuple[tuple[str, tuple[object, ...]], ...] = ()
    given: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    def holds(self, call: Call) -> bool:
        return (
            call.imported_once
            and any(fnmatchcase(call.name, name) for name in self.names)
            and all(_equals(call, key, values) for key, values in self.arguments)
            and (not self.given or any(key in call.values for key in self.given))
            and (not self.absent or call.complete)
            and not any(key in call.values for key in self.absent)
        )


@dataclass(frozen=True, slots=True)
class Advisory:
    """One file. See the module for its keys."""

    id: str
    packages_concerned: tuple[str, ...]
    affected: tuple[SpecifierSet, ...]
    severity: Severity
    evidence: Evidence
    happens: str
    remedy: str
    sources: tuple[str, ...]
    examples: tuple[tuple[str, bool], ...]
    gpus: tuple[GpuCondition, ...] = ()
    packages: tuple[tuple[str, SpecifierSet], ...] = ()
    precisions: tuple[tuple[str, ...], ...] = ()
    device: str | None = None
    calls: tuple[CallCondition, ...] = ()

    @property
    def tokens(self) -> set[str]:
        """Strings of which a script has one where one of the calls asked for stands in it."""
        names = [name.replace("*", ".") for condition in self.calls for name in condition.names]
        return {max(name.split("."), key=len) for name in names}

    def affects(self, version: Version) -> bool:
        """Whether a version has the defect; pre-releases and local versions count as their place in the order says."""
        return any(specifiers.contains(version, prereleases=True) for specifiers in self.affected)

    @property
    def needs_settings(self) -> bool:
        """Whether only scripts and configurations can tell if it matters."""
        return bool(self.precisions or self.calls)

    def gpus_concerned(self, gpus: Sequence[Gpu]) -> list[Gpu]:
        """The GPUs that meet the condition; all of them where there is none."""
        return [gpu for gpu in gpus if not self.gpus or any(condition.holds(gpu) for condition in self.gpus)]

    def packages_hold(self, versions: dict[str, Version]) -> bool:
        """Whether the other packages are of the versions that it takes; an unknown version is not."""
        return all(
            name in versions and specifiers.contains(versions[name], prereleases=True)
            for name, specifiers in self.packages
        )

    def call_concerned(self, calls: Iterable[Call]) -> Call | None:
        """The call that shows the defect: the first condition's, or the one that sets the precision.

        None where one of the calls or precisions asked for is missing.
        """
        certain = [call for call in calls if not call.conditional]
        found = [next((call for call in certain if condition.holds(call)), None) for condition in self.calls]
        on_device = [call for call in certain if self.device is None or device_of(call) == self.device]
        for wanted in self.precisions or (((),) if self.device else ()):
            found.append(next((call for call in on_device if _uses_one(call, wanted)), None))
        return None if None in found else found[0]


def _uses_one(call: Call, wanted: Sequence[str]) -> bool:
    """Whether a call sets one of some precisions, or any where none are named."""
    return any(not wanted or use.precision in wanted for use in uses(call))


@cache
def load_advisories() -> tuple[Advisory, ...]:
    """All of them, by id. Raises ValueError for a file that is not of the form."""
    folder = files("amplint.preflight").joinpath("advisories")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return tuple(parse_advisory(name[:-5], folder.joinpath(name).read_text(encoding="utf-8")) for name in names)


def parse_advisory(name: str, text: str) -> Advisory:
    """One advisory. Raises ValueError that names it and the key."""
    table = parse_toml(text)
    when = table.get("when", {})
    _check_keys(name, "", table, KEYS, required=KEYS - {"when"})
    _check_keys(name, "when.", when, WHEN_KEYS)
    for row in when.get("gpu", ()):
        _check_keys(name, "when.gpu.", row, GPU_KEYS)
    for row in when.get("call", ()):
        _check_keys(name, "when.call.", row, CALL_KEYS, required={"name"})
    _check_keys(name, "examples.", table["examples"], {"affected", "unaffected"}, required={"affected", "unaffected"})
    if not table["sources"]:
        raise ValueError(f"advisory {name}: no source")
    return Advisory(
        id=name,
        packages_concerned=_strings(table["package"]),
        affected=tuple(SpecifierSet(text) for text in table["affected"]),
        severity=Severity(table["severity"]),
        evidence=Evidence(table["evidence"]),
        happens=" ".join(table["happens"].split()),
        remedy=" ".join(table["remedy"].split()),
        sources=tuple(table["sources"]),
        examples=tuple((version, key == "affected") for key, row in table["examples"].items() for version in row),
        gpus=tuple(_gpu_condition(row) for row in when.get("gpu", ())),
        packages=tuple((key, SpecifierSet(value)) for key, value in when.get("packages", {}).items()),
        precisions=tuple(tuple(names) for names in when.get("precision", ())),
        device=when.get("device"),
        calls=tuple(_call_condition(row) for row in when.get("call", ())),
    )


def _gpu_condition(row: dict[str, Any]) -> GpuCondition:
    below, at_least = row.get("capability-below"), row.get("capability-at-least")
    return GpuCondition(
        parse_capability(below) if below else None,
        parse_capability(at_least) if at_least else None,
        row.get("tensor-cores"),
    )


def _call_condition(row: dict[str, Any]) -> CallCondition:
    arguments = row.get("arguments", {})
    return CallCondition(
        _strings(row["name"]),
        tuple((key, tuple(value) if isinstance(value, list) else (value,)) for key, value in arguments.items()),
        tuple(row.get("given", ())),
        tuple(row.get("absent", ())),
    )


def _check_keys(name: str, prefix: str, table: dict[str, Any], known: set[str], required: Iterable[str] = ()) -> None:
    for key in table:
        if key not in known:
            raise ValueError(f"advisory {name}: unknown key {prefix}{key}")
    for key in sorted(required):
        if key not in table:
            raise ValueError(f"advisory {name}: missing key {prefix}{key}")


def _strings(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _equals(call: Call, key: str, values: tuple[object, ...]) -> bool:
    """Whether an argument is certainly one of the values; a dtype equals its name."""
    found = call.get(key)
    if key not in call.values:
        return False
    return any(type(found) is type(value) and found == value for value in values) or dtype_of(found) in values
