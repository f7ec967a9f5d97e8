"""What the rest of the project, and what a way runs before, leave of the suspects of a file.

A file of no package may be a part of a program that is shown alone: of what is not there, nothing is concluded.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from amplint.claims.autocast_queries import Asked
from amplint.claims.caught import has_substitute
from amplint.claims.mapped_inputs import comes_in_a_mapping
from amplint.claims.seen_ways import only_got, only_through
from amplint.claims.unmoved import behind_unmoved
from amplint.finding import Severity
from amplint.infer.lattice.assumptions import NOTHING_SETTLED
from amplint.infer.names.other_devices import needs_another
from amplint.infer.syntax.scripts import asks_for_low_precision
from amplint.judge import doubts
from amplint.judge.certainty import holding
from amplint.project.autocast_devices import only_of_cuda
from amplint.project.helpers import helps_tests
from amplint.project.imports import cannot_be_imported
from amplint.project.leftovers import leftovers_of
from amplint.project.old_functions import only_called
from amplint.project.passing import passed_by_none
from amplint.project.precision import asks_anywhere
from amplint.project.scopes import package_of, scope_of
from amplint.project.torch_defaults import sets_default_device, sets_default_dtype
from amplint.project.uncalled import is_uncalled
from amplint.project.ways import nowhere, ways_in

if TYPE_CHECKING:
    from pathlib import Path

    from amplint.claims.suspect import Suspect
    from amplint.finding import Doubt
    from amplint.infer.state.facts import FileFacts
    from amplint.project.ends import Judging
    from amplint.project.leftovers import Leftovers
    from amplint.project.ways import Ways
    from amplint.rule_base import Rule

Suspects: TypeAlias = "list[tuple[Rule, Suspect]]"


def by_memory(suspects: Suspects, facts: FileFacts) -> Suspects:
    """The suspects of a package that sets no default device, without the scenarios in which a tensor left in the host's
    memory meets one of the device before (see :mod:`amplint.claims.unmoved`); doubted where that is in all of them."""
    codes = doubts.OTHER_MEMORY.codes
    asked = [s for rule, s in suspects if s.standing.told and rule.code in codes]
    behind = {id(s): names for s in asked if (names := behind_unmoved(facts, s))}
    if not behind or package_of(facts) is None or sets_default_device(scope_of(facts)):
        return suspects
    weighed = []
    for rule, suspect in suspects:
        names = behind.get(id(suspect), frozenset())
        reached = tuple(name for name in suspect.scenarios if name not in names)
        left = replace(suspect, scenarios=reached) if reached else suspect.doubted(doubts.OTHER_MEMORY)
        weighed.append((rule, left if names else suspect))
    return weighed


def by_ways_in(suspects: Suspects, facts: FileFacts, judging: Judging, followed: set[Path]) -> Suspects:
    """The suspects, doubted where a constant leaves them out (see :mod:`amplint.infer.syntax.behind_constants`), where
    all that leads there ends before it (see :mod:`amplint.project.ways`), where nobody can use what they stand in (see
    :mod:`amplint.project.unusable` and :mod:`amplint.project.old_functions`), where the project never passes the
    argument that they or what they are about stand behind (see :mod:`amplint.project.passed`), where nothing in it
    passes what makes them fail (see :mod:`amplint.project.passing`), or where it sets another default dtype (see
    :mod:`amplint.project.torch_defaults`)."""
    if not any(s.standing.told for _, s in suspects):
        return suspects
    ways = ways_in(facts, judging)
    scope = scope_of(facts)
    packaged, other = scope.whole, scope.whole and sets_default_dtype(scope)
    lacking = partial(ways.lack, facts.source)
    weighed = []
    for rule, suspect in suspects:
        row = suspect.span.start.row
        old = suspect.standing.told and only_called(ways, row, facts.autograd_functions)
        old = old or (suspect.standing.told and is_uncalled(ways, facts, judging, row))
        if suspect.standing.told and rule.code in doubts.SWITCHED_OFF.codes and ways.leave_out(row):
            weighed.append((rule, suspect.doubted(doubts.SWITCHED_OFF)))
        elif suspect.standing.told and rule.code in doubts.NO_WAY_IN.codes:
            held = {
                doubts.OTHER_DEFAULT: other and facts.half_weights_only(suspect.scenarios),
                doubts.NO_WAY_IN: nowhere(ways, suspect),
                doubts.UNANSWERED: ways.unusable.unanswered(row),
                doubts.FAILS_ANYHOW: old or ways.is_shut(row) or only_through(facts, suspect.span, ways.is_shut),
                doubts.PASSED_BY_NONE: (packaged or comes_in_a_mapping(facts, suspect))
                and passed_by_none(ways, suspect),
                doubts.NOT_PASSED: lacking(row) or only_got(facts, suspect.span, lacking),
            }
            weighed.append((rule, suspect.doubted(*holding(held))))
        elif suspect.standing.told:
            held = {
                doubts.FAILS_ANYHOW: old or ways.unusable.fails(facts.source, row),
                doubts.NOT_PASSED: rule.code in doubts.NOT_PASSED.codes and lacking(row),
            }
            weighed.append((rule, suspect.doubted(*holding(held))))
        else:
            weighed.append((rule, suspect))
    weighed = _as_passed(weighed, facts, judging, ways)
    followed |= ways.asked
    return weighed


def _as_passed(suspects: Suspects, facts: FileFacts, judging: Judging, ways: Ways) -> Suspects:
    """The suspects, doubted where they are none once the parameters that all calls in the project leave at their
    defaults have no other value (see :mod:`amplint.project.passed`), and nothing else is found there in their stead."""
    asked = [(rule, s) for rule, s in suspects if s.standing.told and rule.code in doubts.NOT_PASSED.codes]
    settled = ways.settled() if asked else NOTHING_SETTLED
    if not settled.parameters and not settled.attributes:
        return suspects
    again = judging.facts_where(settled, facts.source)
    for rule in {rule.code: rule for rule, _ in asked}.values():
        left = {s.span for s in rule.suspects(again) if s.standing.told}
        new = {ways.target(span.start.row) for span in left - {s.span for r, s in suspects if r is rule}}
        gone = {s.span for r, s in asked if r is rule and ways.target(s.span.start.row) not in new} - left
        suspects = [(r, s.doubted(doubts.NOT_PASSED) if r is rule and s.span in gone else s) for r, s in suspects]
    return suspects


def by_file(suspects: Suspects, facts: FileFacts) -> Suspects:
    """The suspects, doubted where only tests run the file (see :mod:`amplint.project.helpers`), or nothing can (see
    :mod:`amplint.project.imports`), nothing uses what they stand in (see :mod:`amplint.project.leftovers`), the
    project has no part in what they are about (see :mod:`amplint.project.precision`), or opens regions of no autocast
    but the one that is asked about (see :mod:`amplint.project.autocast_devices`), or the file handles what is raised
    (see :mod:`amplint.claims.caught`), or is for another accelerator (see :mod:`amplint.infer.names.other_devices`)."""
    if not any(s.standing.told for _, s in suspects):
        return suspects
    tree = facts.source.tree
    held = {
        doubts.RUN_IN_FULL_PRECISION: helps_tests(facts.path, tree),
        doubts.NOT_IMPORTABLE: cannot_be_imported(tree, *facts.root, facts.torch_version),
    }
    left = leftovers_of(facts)
    weighed = []
    for rule, suspect in suspects:
        if suspect.standing.told:
            suspect = suspect.doubted(*holding(held | _held(rule, suspect, facts, left)))
        weighed.append((rule, suspect))
    return weighed


def _held(rule: Rule, suspect: Suspect, facts: FileFacts, left: Leftovers) -> dict[Doubt, bool]:
    """Which doubts about a file hold for one suspect of it."""
    row, tree = suspect.span.start.row, facts.source.tree
    of_accuracy = rule.code in doubts.UNASKED_PRECISION.codes and suspect.severity is Severity.WARNING
    raises = rule.code in doubts.SUBSTITUTED.codes and suspect.severity is Severity.ERROR
    current = isinstance(suspect.data, Asked) and not suspect.data.outgrown
    return {
        doubts.OTHER_DEVICE: rule.code in doubts.OTHER_DEVICE.codes and needs_another(tree),
        doubts.LEFT_OVER: rule.code in doubts.LEFT_OVER.codes and left.hold(row),
        doubts.UNREACHED: rule.code in doubts.UNREACHED.codes and left.reaches_most and left.hold(row),
        doubts.UNASKED_PRECISION: of_accuracy and not asks_anywhere(*facts.root) and not asks_for_low_precision(tree),
        doubts.SUBSTITUTED: raises and has_substitute(facts.source, suspect.span),
        doubts.REGIONS_OF_CUDA: current and only_of_cuda(scope_of(facts)),
    }
