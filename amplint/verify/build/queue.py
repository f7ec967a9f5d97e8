"""Plans that wait to be tried, the cheapest first, each once."""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING

from amplint.verify.build.spec import Plan, plan_key

if TYPE_CHECKING:
    from collections.abc import Iterator


class Waiting:
    """A priority queue of plans. A plan that was tried is not taken again; a waiting one may become cheaper."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Plan]] = []
        self._order = itertools.count()
        self._costs: dict[str, float] = {}
        self._tried: set[str] = set()

    def push(self, plan: Plan, cost: float) -> None:
        """Add ``plan``, unless it was tried or waits at no higher cost."""
        key = plan_key(plan)
        if key not in self._tried and cost < self._costs.get(key, float("inf")):
            self._costs[key] = cost
            heapq.heappush(self._heap, (cost, next(self._order), plan))

    def again(self, plan: Plan, cost: float) -> None:
        """Add ``plan`` though it was tried."""
        self._tried.discard(plan_key(plan))
        self._costs.pop(plan_key(plan), None)
        self.push(plan, cost)

    def take(self) -> Iterator[tuple[float, Plan]]:
        """The plans with their costs, as long as there are any; what is pushed meanwhile counts."""
        while self._heap:
            cost, _, plan = heapq.heappop(self._heap)
            key = plan_key(plan)
            if key not in self._tried:
                self._tried.add(key)
                yield cost, plan
