"""Activations and weights that silently become float32; the rules that report them say it in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.claims.conflicts import conflicts
from amplint.claims.device_followers import joined
from amplint.claims.made_tensors import promoted
from amplint.claims.merged_weights import merges
from amplint.claims.rotary_embeddings import rotations
from amplint.claims.rounded_positions import rounded_positions
from amplint.claims.surroundings import Surroundings
from amplint.claims.suspect import Suspect, likely_loss
from amplint.finding import Cause, Severity
from amplint.infer.lattice.dtypes import LOW
from amplint.infer.lattice.origins import deciding, lineage
from amplint.infer.lattice.values import Tensor
from amplint.judge import doubts
from amplint.judge.certainty import ASSUMED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplint.infer.state.facts import FileFacts, Promotion


def promotions_of(facts: FileFacts, *, fixed: bool) -> Iterator[Suspect]:
    """A suspect for each promotion: by a table of a fixed dtype, or by anything else.

    None where the same tensor makes an operation fail too: that is the finding, and this is on the way to it. None
    where it is no activation that becomes float32, but a table.
    """
    culprits = (conflict.culprit for conflict in conflicts(facts))
    spoken = {culprit.span for culprit in culprits if culprit is not None and culprit.filename == facts.path}
    spoken |= {cause.span for conflict in conflicts(facts) for cause in conflict.causes if cause.filename == facts.path}
    makers = set()
    for promotion in facts.promotions:
        made = promotion.made
        if (made is not None and made.fixed) is not fixed:
            continue
        decided = made.maker if made is not None else promotion.upcast
        maker = decided.span if decided is not None else facts.span(promotion.node)
        wide = deciding(promotion.wide.value.origin, promotion.lanes[0])
        if maker in spoken or maker in makers or (wide is not None and wide.span in spoken):
            continue
        if _widens_a_table(promotion):
            continue
        makers.add(maker)
        span = facts.span(promotion.node)
        suspect = Suspect(
            span=span,
            node=span,
            message=promoted(promotion),
            scenarios=facts.names(promotion.lanes),
            standing=ASSUMED,
            causes=facts.causes((promotion.narrow, promotion.wide), promotion.lanes[0]),
            severity=Severity.WARNING,
            data=promotion,
        )
        returned = promotion.sink == "returned" and not fixed
        yield suspect.doubted(doubts.ONLY_RETURNED) if returned else suspect


def _widens_a_table(promotion: Promotion) -> bool:
    """Whether it is no activation that becomes float32, but a buffer or what the code itself made.

    Frequencies times positions of float32 are meant to be float32, however the module was converted.
    """
    path = list(lineage(promotion.narrow.value.origin, promotion.lanes[0]))
    if promotion.sink != "returned" or not path or any(origin.parameter for origin in path):
        return False
    return path[-1].made is not None or path[-1].placed


def widened(facts: FileFacts) -> Iterator[Suspect]:
    """A suspect for each operation that makes one of query, key and value float32 on the way to a kernel.

    Of several on the way to one kernel the first: they are cured together.
    """
    spoken = set()
    for apart in sorted(facts.apart, key=lambda found: facts.span(found.node)):
        if apart.kernel in spoken:
            continue
        spoken.add(apart.kernel)
        causes = facts.causes((apart.sibling,), apart.lanes[0])
        yield likely_loss(facts, apart.node, "", facts.names(apart.lanes), causes, apart)


def padded(facts: FileFacts) -> Iterator[Suspect]:
    """A suspect for each concatenation with a constant that has the device of what it is joined to, not the dtype."""
    scenarios = tuple(s.name for s in facts.scenarios if s.inputs != "float32")
    for join in joined(facts) if scenarios else ():
        causes = (Cause(facts.path, facts.span(join.maker), "made without a dtype: float32"),)
        yield likely_loss(facts, join.node, "", scenarios, causes, join)


def rotated(facts: FileFacts) -> Iterator[Suspect]:
    """A suspect for each rotary embedding whose result takes the dtype of the angles, where those are not seen to be in
    low precision, nor those that the file itself makes."""
    lanes = [number for number, scenario in enumerate(facts.scenarios) if scenario.autocast is not None]
    turning = "cos" in facts.source.text and "sin" in facts.source.text
    found = [*rotations(Surroundings.of(facts.source.tree), facts.source.tree)] if lanes and turning else []
    made = [products for products, angles in rounded_positions(facts) if angles] if found else []
    low = {lane for products in made for product in products for lane in product.lanes}
    lanes = [lane for lane in lanes if lane not in low]
    for rotation in found:
        cosines = [call for call in facts.calls if call.node is rotation.cosine]
        given = [value for call in cosines for value in call.arguments.values()]
        seen = [value.dtypes for value in given if isinstance(value, Tensor)]
        wide = [lane for lane in lanes if not any(of[lane].exact and of[lane].mask & LOW for of in seen)]
        if wide:
            yield likely_loss(facts, rotation.node, "", facts.names(wide), data=rotation)


def merged(facts: FileFacts) -> Iterator[Suspect]:
    """A suspect for each weight of another module that its promotion replaces."""
    scenarios = tuple(s.name for s in facts.scenarios if s.keeps_explicit)
    for merge in (
        merges(facts.source.tree, Surroundings.of(facts.source.tree))
        if scenarios and "data" in facts.source.text
        else ()
    ):
        yield likely_loss(facts, merge.node, "", scenarios, data=merge)
