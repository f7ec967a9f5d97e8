"""An operation that runs alone: its source with every operand replaced by a name, and the dtypes of those names.

For findings in code that could not be run as a whole: free functions, a module's top level, classes that nothing
builds. What the names hold comes from the inference; the file itself is never imported.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from amplint.finding import Severity
from amplint.frozen import dataclass
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL
from amplint.infer.torch_model.torch_ops import BANNED, FP32
from amplint.source import SourceError
from amplint.verify.plain import Plain
from amplint.verify.scene import Scene  # noqa: TC001 - Plain.from_json looks it up
from amplint.verify.snippet_writing import Unknown, write
from amplint.verify.witness import Witness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplint.engine import Options
    from amplint.finding import Finding
    from amplint.infer.lattice.scenarios import Scenario
    from amplint.infer.state.facts import FileFacts
    from amplint.infer.torch_model.torch_ops import Op
    from amplint.source import Source
    from amplint.verify.witness import Sight

NO_OPERATION = "the finding is about a definition or a setting, not about one operation"
BY_CALLERS = "its operands disagree only for some callers"


@dataclass(frozen=True)
class Snippet(Plain):
    """A finding's operation ``op``, as written at ``row`` of ``filename`` (``source``), scenario by scenario.

    ``unknown`` says of the finding's other scenarios why the operation cannot run alone there.
    """

    fingerprint: str
    code: str
    filename: str
    row: int
    op: str
    source: str
    scenes: dict[str, Scene]
    unknown: dict[str, str] = field(default_factory=dict)


def snippets(source: Source, findings: Sequence[Finding], options: Options) -> dict[str, Snippet | str]:
    """By fingerprint: the operation at each finding, or in one line why it cannot run alone.

    ``options`` are those that gave the findings; ``options.device`` names the cast policy.
    """
    if not findings:
        return {}
    scenarios = (CONTROL, *(scenario for scenario in options.judged if scenario != CONTROL))
    witness = Witness({finding.span for finding in findings})
    try:
        facts = analyse(
            source,
            scenarios=scenarios,
            device=options.device,
            torch_version=options.torch_for(source.path).newest,
            recorder=witness,
        )
    except (SourceError, RecursionError) as error:
        return dict.fromkeys((finding.fingerprint for finding in findings), f"cannot be analysed: {error}")
    return {f.fingerprint: _snippet(facts, f, witness.sights(facts, f.span), scenarios) for f in findings}


def _snippet(facts: FileFacts, finding: Finding, sights: list[Sight], scenarios: Sequence[Scenario]) -> Snippet | str:
    if not sights:
        return NO_OPERATION
    source = facts.source
    lanes = {scenario.name: lane for lane, scenario in enumerate(scenarios)}
    scenes: dict[str, Scene] = {}
    unknown: dict[str, str] = {}
    for name in finding.scenarios:
        seen = [sight for sight in sights if name in sight.scenarios]
        if name not in lanes or not seen:
            unknown[name] = "not judged in this scenario"
            continue
        lane = lanes[name]
        for sight in _under_autocast(seen, lane, facts.device):
            try:
                scene = write(source, sight, lane, scenarios[lane])
                if finding.severity is Severity.ERROR and _wants_one_dtype(sight.op) and not _may_disagree(scene):
                    unknown[name] = BY_CALLERS
                    break
                scenes[name] = scene
                unknown.pop(name, None)
                break
            except Unknown as error:
                unknown.setdefault(name, str(error))
    if not scenes:
        return next(iter(unknown.values()), NO_OPERATION)
    text = source.segment(finding.span)
    row = finding.span.start.row
    return Snippet(finding.fingerprint, finding.code, str(source.path), row, sights[0].op.name, text, scenes, unknown)


def _wants_one_dtype(op: Op) -> bool:
    """Whether an operation raises only where its operands disagree: autocast bans it nowhere, and no kernel lacks."""
    return bool(op.strict) and not op.lacks and BANNED not in op.policy.values()


def _may_disagree(scene: Scene) -> bool:
    """Whether the tensors and weights of a scene have several dtypes between them, or one that no product takes."""
    tensors = {dtype for place in scene.places if place.kind == "tensor" for dtype in place.dtypes}
    weights = {dtype for place in scene.places if place.layer for dtype in place.layer.dtypes.values()}
    nested = any(place.layer.children for place in scene.places if place.layer)
    refused = "complex32" in tensors or any(place.sparse for place in scene.places)
    return nested or refused or len(tensors | weights) != 1


def _under_autocast(sights: list[Sight], lane: int, device: str) -> list[Sight]:
    """Of an operation that is a hazard as such, the contexts with autocast on, if there are any; off, where autocast
    computes in float32 what has no kernel."""
    if any(sight.operands for sight in sights):
        return sights
    healed = any(sight.op.lacks and sight.op.policy.get(device) == FP32 for sight in sights)
    return [sight for sight in sights if sight.autocast[lane].on is not healed] or sights
