"""Flagged operations, each run alone in one child process: where their function or class cannot run as a whole."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from amplint.frozen import dataclass
from amplint.source import Source
from amplint.verify.parent import run_job
from amplint.verify.snippet import Snippet, snippets

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplint.engine import Options
    from amplint.verify.job import Job, Outcome
    from amplint.verify.targets import Target

HOW = "the flagged expression alone"


@dataclass(frozen=True)
class Alone:
    """By scenario and fingerprint: what running the operation gave, or in one line why it cannot run."""

    outcomes: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    reasons: dict[tuple[str, str], str] = field(default_factory=dict)


def run_alone(target: Target, job: Job, options: Options, progress: Callable[[str], None] | None = None) -> Alone:
    """Run the operations at the findings of a target, under the job's device, scenarios and limits."""
    source = Source(target.path, target.path.read_bytes())
    written = snippets(source, target.findings, replace(options, device=job.device))
    found = [snippet for snippet in written.values() if isinstance(snippet, Snippet)]
    done = Alone()
    cells = [(name, f.fingerprint) for f in target.findings for name in f.scenarios if name in job.scenarios]
    broken = "not run: earlier operations used up the time or ended the process"
    ended: dict[str, Outcome] = {}
    if found:
        only = replace(job, snippets=tuple(s.to_json() for s in found), claims=(), factory=None, trace=False)
        report = run_job(only, progress)
        broken = report.broken or broken
        for outcome in report.outcomes:
            done.outcomes.update({(outcome.scenario, fingerprint): outcome for fingerprint in outcome.reached})
        ended = {outcome.scenario: outcome for outcome in report.outcomes if not outcome.reached}
    for name, fingerprint in cells:
        if (name, fingerprint) in done.outcomes:
            continue
        snippet = written[fingerprint]
        if isinstance(snippet, str):
            done.reasons[name, fingerprint] = snippet
        elif name in snippet.scenes:
            done.reasons[name, fingerprint] = (ended[name].error if name in ended else None) or broken
        else:
            done.reasons[name, fingerprint] = snippet.unknown.get(name, broken)
    return done
