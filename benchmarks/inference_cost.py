"""What the inference costs beside ``ast.parse`` of the same files, in CPU seconds of one process.

Usage: ``python benchmarks/inference_cost.py FOLDER [--first N] [--count N] [--dtypes SCENARIO]``

For each file first ``ast.parse`` is timed, then what ``amplint check`` does with it up to the facts: files without any
rule's tokens are passed over, as in ``check``; the others are analysed under the default scenarios together.  With
``--dtypes`` every file is analysed as ``amplint dtypes --scenario`` does.  The two are timed in turn, so that a busy
machine slows both.  Prints figures and ratios and asserts nothing.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import resource
import time
import warnings
from pathlib import Path

from amplint.annotate.rows import file_dtypes
from amplint.garbage import collect_after_file, collect_seldom
from amplint.infer.entry.analysis import analyse
from amplint.infer.lattice.scenarios import CONTROL, DEFAULT_SCENARIOS, find_scenario
from amplint.plugins import load_rules
from amplint.source import Source, SourceError

TORCH = (2, 13)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--first", type=int, default=0, help="files to leave out at the start")
    parser.add_argument("--count", type=int, default=None, help="files to take")
    parser.add_argument("--dtypes", metavar="SCENARIO", help="measure `amplint dtypes` under this scenario")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    files = sorted(arguments.folder.rglob("*.py"))[arguments.first :][: arguments.count]
    scenario = find_scenario(arguments.dtypes) if arguments.dtypes else None
    if arguments.dtypes and scenario is None:
        parser.error(f"unknown scenario '{arguments.dtypes}'")
    rules = load_rules()
    collect_seldom()
    parsed = inferred = 0.0
    analysed = 0
    slowest: list[tuple[float, str]] = []
    for path in files:
        data = path.read_bytes()
        begun = time.process_time()
        try:
            ast.parse(data)
        except (SyntaxError, ValueError):
            continue
        parsed += time.process_time() - begun
        begun = time.process_time()
        source = Source(path, data)
        try:
            if scenario is not None:
                file_dtypes(source, scenarios=(CONTROL, scenario), device="cuda", torch_version=TORCH)
                analysed += 1
            elif any(rule.may_find(data) for rule in rules):
                analyse(source, scenarios=(CONTROL, *DEFAULT_SCENARIOS), device="cuda", torch_version=TORCH)
                analysed += 1
        except SourceError:
            continue
        collect_after_file(len(data))
        spent = time.process_time() - begun
        inferred += spent
        slowest.append((spent, str(path.relative_to(arguments.folder))))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{len(files)} files, {analysed} analysed")
    print(f"ast.parse {parsed:.2f} s, inference {inferred:.2f} s: {inferred / parsed:.2f} times; {memory} MB at most")
    for seconds, name in itertools.islice(sorted(slowest, reverse=True), 5):
        print(f"  {seconds:.2f} s  {name}")


if __name__ == "__main__":
    main()
