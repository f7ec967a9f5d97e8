"""What findings cost: CPU seconds of a check of one file with more and more flagged lines of one rule.

    python benchmarks/findings_cost.py [--lines N...] [--kind NAME...] [--fix] [--limit SECONDS]

Each file is made of blocks that one rule flags, and checked in this process. The last column says how much more twice
as many lines cost: 2.0 where the cost is linear, 4.0 where it is their square. ``--fix`` applies all fixes too. A kind
whose check took longer than ``--limit`` is not asked for longer files.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from amplint.engine import Options, check_file
from amplint.finding import Applicability
from amplint.infer.lattice.scenarios import DEFAULT_SCENARIOS
from amplint.plugins import load_rules
from amplint.source import Source

if TYPE_CHECKING:
    from collections.abc import Sequence

LINES = (100, 200, 400, 800, 1_600, 3_200)
METHODS = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\nclass Block(nn.Module):\n"
METHODS += "    def __init__(self):\n        super().__init__()\n        self.layer = nn.Linear(8, 8)\n"


def upcasts(number: int) -> str:
    """AMP102: a method each, with an upcast operand of a product."""
    return f"\n    def forward_{number}(self, x, y):\n        return torch.matmul(x.float(), y)\n"


def writes(number: int) -> str:
    """AMP105: a method each, with a write into a buffer of another dtype."""
    return (
        f"\n    def forward_{number}(self, x, index):\n        out = torch.zeros(4, 8)\n"
        "        out.index_add_(0, index, self.layer(x))\n        return out\n"
    )


def masks(number: int) -> str:
    """AMP301: a method each, with a mask constant that float16 does not hold."""
    return f"\n    def forward_{number}(self, x, m):\n        return self.layer(x).masked_fill(m, -1e9)\n"


def casts(number: int) -> str:
    """AMP104 and its kin: a method each, with two casts in one product."""
    return f"\n    def forward_{number}(self, x):\n        return self.layer(x.float()) + self.layer(1 + x.float())\n"


def scopes(number: int) -> str:
    """AMP601: a region each under the old name."""
    region = "        with torch.cuda.amp.autocast():\n            return self.layer(x)\n"
    return f"\n    def forward_{number}(self, x):\n{region}"


def lines(number: int) -> str:
    """Lines of one function, each of which fails for a reason of its own."""
    if not number:
        return "\n    def forward(self, x, y):\n        z_0 = self.layer(x)\n"
    return f"        z_{number} = torch.matmul(x.float(), y.float()).half()\n"


def imported(number: int) -> str:
    """AMP601: a region each under an imported name, which the fixes orphan."""
    return f"\n    def forward_{number}(self, x):\n        with autocast():\n            return self.layer(x)\n"


KINDS = {f.__name__: f for f in (upcasts, writes, masks, casts, scopes, lines, imported)}


def program(kind: str, count: int) -> str:
    """A module with so many blocks of a kind."""
    opening = "from torch.cuda.amp import autocast\n" if kind == imported.__name__ else ""
    return opening + METHODS + "".join(KINDS[kind](number) for number in range(count))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and say the exit status."""
    parser = argparse.ArgumentParser(description="Measure what findings of one file cost.")
    parser.add_argument("--lines", type=int, nargs="+", default=list(LINES), help="flagged blocks of a file")
    parser.add_argument("--kind", choices=KINDS, nargs="+", default=list(KINDS), help="what the blocks hold")
    parser.add_argument("--fix", action="store_true", help="apply all fixes, safe and unsafe")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a kind is left (default 60)")
    chosen = parser.parse_args(arguments)
    highest = Applicability.UNSAFE if chosen.fix else None
    options = Options(load_rules(), DEFAULT_SCENARIOS, fix=highest, write=False)
    with tempfile.TemporaryDirectory(prefix="amplint-findings-") as name:
        for kind in chosen.kind:
            before = 0.0
            for count in chosen.lines:
                source = Source(Path(name).resolve() / f"{kind}_{count}.py", program(kind, count).encode())
                start = time.process_time()
                result = check_file(source, options)
                spent = time.process_time() - start
                found = f"{len(result.findings):>6} findings" + (f" left, {result.fixed} fixed" if chosen.fix else "")
                ratio = f"  {spent / before:5.2f} times" if before else ""
                print(f"{kind:<13}{count:>6} blocks {found}  {spent:8.2f} s{ratio}", flush=True)
                before = spent
                if spent > chosen.limit:
                    break
    return 0


if __name__ == "__main__":
    sys.exit(main())
