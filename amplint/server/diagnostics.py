"""A finding as an editor shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from amplint.finding import Certainty, Severity

if TYPE_CHECKING:
    from amplint.finding import Finding
    from amplint.rule_base import Announced
    from amplint.server.positions import Places

SOURCE = "amplint"
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
}


def diagnostic(finding: Finding, rule: Announced | None, places: Places) -> types.Diagnostic:
    """One finding with the places that decided its dtypes and those that fail for the same cause."""
    related = [
        types.DiagnosticRelatedInformation(places.location(cause.filename, cause.span), cause.message)
        for cause in finding.causes
    ]
    related += [
        types.DiagnosticRelatedInformation(places.location(place.filename, place.span), "fails for the same cause")
        for place in finding.also
    ]
    url = rule.url if rule is not None else None
    return types.Diagnostic(
        range=places.of(finding.filename).range(finding.span),
        message=_message(finding),
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=types.CodeDescription(url) if url is not None else None,
        source=SOURCE,
        related_information=related,
        data={"fingerprint": finding.fingerprint},
    )


def _message(finding: Finding) -> str:
    told = [finding.message]
    if finding.scenarios:
        told.append(f"scenarios: {', '.join(finding.scenarios)} (device {finding.device})")
    if finding.certainty is not Certainty.PROVEN:
        told.append(f"certainty: {finding.certainty.value}")
    return "\n".join(told)
