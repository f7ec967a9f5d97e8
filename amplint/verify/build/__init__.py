"""From a class to a module that runs: constructor arguments, inputs, and a recipe that makes both again.

Runs in the child process of one target; needs torch.  ``find`` asks in turn ``examples``, ``doctests``, ``synthesis``
(``construct`` for the constructor, ``forward`` for the inputs, each with its ``*_repair`` from error texts), ``owners``
and, for autograd Functions, ``functions``; the answer is a ``recipe``. ``spread`` gives what was found sizes that
matter; ``variants`` builds it otherwise, by the options that ``guards`` reads from the source.
"""

from amplint.verify.build.effort import Deadline
from amplint.verify.build.find import find_recipe
from amplint.verify.build.recipe import Built, CannotBuild, Recipe
from amplint.verify.build.variants import Variant, variants

__all__ = ["Built", "CannotBuild", "Deadline", "Recipe", "Variant", "find_recipe", "variants"]
