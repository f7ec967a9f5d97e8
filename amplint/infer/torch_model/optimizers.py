"""Optimizers: what a class that derives from ``torch.optim.Optimizer`` is given to work on.

``torch.optim.Optimizer`` keeps in ``param_groups`` a dict for each group: its ``params`` are a model's parameters, the
rest is what its constructor got as ``defaults``, or what callers choose instead (``Optimizer.add_param_group``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplint.infer.lattice.arguments import generalised
from amplint.infer.lattice.dtypes import BITS, Lane
from amplint.infer.lattice.values import UNKNOWN, Mapping, Sequence, Tensor, Trait, Value
from amplint.infer.syntax.unchanging import replace

if TYPE_CHECKING:
    import ast

    from amplint.infer.names.definitions import Instance
    from amplint.infer.state.frame import Frame

GROUPS = "param_groups"
DEFAULTS = "defaults"


def groups(frame: Frame, optimizer: Instance, node: ast.expr) -> Value:
    """``self.param_groups``: dicts with the parameters and options, numbers of unknown value.

    Weights, and the gradients that are asked of them, are small numbers.
    """
    dtypes = tuple(Lane(BITS[scenario.parameters]) for scenario in frame.session.scenarios)
    here = frame.here(node, "parameters that the optimizer is given", dtypes)
    origin = replace(here, placed=True, parameter=True, handed=True)
    parameter = Tensor(dtypes, None, origin, leaf=True, trait=Trait.BOUNDED)
    given = optimizer.attributes.get(DEFAULTS)
    options = {key: generalised(value) for key, value in given.items.items()} if isinstance(given, Mapping) else {}
    return Sequence(None, Mapping({**options, "params": Sequence(None, parameter, True)}, UNKNOWN), True)
