"""What amplint makes of programs that nobody would write: no crash, no hang, no fix that breaks a file.

    python benchmarks/fuzzed.py [--programs N] [--seed N] [--jobs N] [--keep FOLDER] [--figures]
    python benchmarks/fuzzed.py --guided FOLDER [--seconds S]
    python benchmarks/fuzzed.py --files FOLDER... [--programs N] [--jobs N] [--figures]

Takes the fixtures and the rules' examples apart and puts them together otherwise: lines and tokens go, come twice,
swap places or come from another program; names, dtypes and numbers change; some bytes become others. Each program is
checked by all rules in all scenarios, and fixed, safely or not: what was Python has to stay Python, and a second run
must change nothing. What goes wrong is kept in a folder.

``--guided`` lets atheris (libFuzzer) choose the programs by the lines of amplint that they reach, and keeps what
reached new ones in FOLDER: ``pip install atheris``.

``--files`` tries the Python files below the folders instead, as they are and where they are, each content once; none is
changed.

Leaves with status 1 where something went wrong.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import signal
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

    from amplint.engine import Options

ROOT = Path(__file__).resolve().parent.parent
COMMAND = "python benchmarks/fuzzed.py --figures"
FILES_COMMAND = "python benchmarks/fuzzed.py --files FOLDER... --figures"
ABOUT = "Programs made of the fixtures' lines and tokens at random, checked and fixed: what crashes, hangs or breaks."
FILES_ABOUT = (
    "Real files, each checked in its place by all rules and fixed in memory: what crashes, hangs or breaks. They are "
    "the packages of `field.txt`, two versions of Python's own library, and what is installed to test amplint."
)
SECONDS = 30
"""CPU time after which a program counts as a hang."""
REAL_SECONDS = 600
"""The same for a real file, of which some hold ten thousand lines."""
SHARE = 500
"""Programs that one task tries."""
WRONG = ("crash", "hang", "fix that breaks the file", "fix that does not settle")
_TOKEN = re.compile(rb"\w+|\s+|\"[^\"\n]*\"|'[^'\n]*'|.", re.DOTALL)
_NAME = re.compile(rb"[A-Za-z_]\w*")
_WORDS = tuple(
    b"float16 float32 float64 bfloat16 half int64 bool complex64 None self x True False 0 1 -1 1e-8 65504 1e30 nan "
    b"torch nn forward backward autocast GradScaler * ** @ : \\ # lambda yield await async match case del global \n "
    b"\t \r\n \x0c \xef\xbb\xbf \x00 \xff # -*- coding: latin-1 -*-".split(b" ")
)


class _HangError(BaseException):
    """A program took too long; no Exception, so that nothing catches it on the way."""


def seeds() -> list[bytes]:
    """The programs that the others are made of."""
    from amplint.plugins import load_rules

    files = [path.read_bytes() for path in sorted((ROOT / "fixtures").rglob("*.py"))]
    examples = [example.source.encode() for rule in load_rules() for example in (*rule.bad, *rule.good)]
    return sorted({*files, *examples})


def mutated(programs: list[bytes], chance: random.Random) -> bytes:
    """One of the programs, changed in some places; mostly one that is Python still."""
    for _ in range(8):
        data = chance.choice(programs)
        for _ in range(chance.choice((1, 1, 2, 3, 5, 9))):
            data = chance.choice(_CHANGES)(data, programs, chance)[:60_000]
        if _parses(data) or chance.random() < 0.05:
            break
    return data


def _lines(data: bytes, programs: list[bytes], chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    at, to = sorted(chance.randrange(len(lines) + 1) for _ in range(2))
    block, change = lines[at:to], chance.randrange(5)
    if change == 0:
        lines[at:to] = []
    elif change == 1:
        lines[at:at] = block
    elif change == 2:
        lines[at:to] = reversed(block)
    elif change == 3:
        other = chance.choice(programs).splitlines(keepends=True) or [b""]
        start = chance.randrange(len(other))
        lines[at:at] = other[start : start + chance.randrange(1, 12)]
    else:
        lines[at:to] = [b"    " + line if chance.random() < 0.8 else line.lstrip() for line in block]
    return b"".join(lines)


def _tokens(data: bytes, programs: list[bytes], chance: random.Random) -> bytes:
    tokens = _TOKEN.findall(data) or [b""]
    at, change = chance.randrange(len(tokens)), chance.randrange(4)
    if change == 0:
        del tokens[at : at + chance.choice((1, 1, 1, 5))]
    elif change == 1:
        tokens[at:at] = [tokens[chance.randrange(len(tokens))]]
    elif change == 2:
        tokens[at] = chance.choice(_WORDS)
    else:
        other = chance.randrange(len(tokens))
        tokens[at], tokens[other] = tokens[other], tokens[at]
    return b"".join(tokens)


def _names(data: bytes, programs: list[bytes], chance: random.Random) -> bytes:
    """One name becomes another everywhere."""
    names = sorted(set(_NAME.findall(data))) or [b"x"]
    old, new = chance.choice(names), chance.choice((*names, *_WORDS[:20]))
    return re.sub(rb"\b%b\b" % re.escape(old), lambda _: new, data)


def _bytes(data: bytes, programs: list[bytes], chance: random.Random) -> bytes:
    held = bytearray(data or b" ")
    for _ in range(chance.choice((1, 1, 8))):
        held[chance.randrange(len(held))] = chance.randrange(256)
    return bytes(held)


def _endings(data: bytes, programs: list[bytes], chance: random.Random) -> bytes:
    change = chance.randrange(4)
    if change == 0:
        return data.replace(b"\n", b"\r\n")
    if change == 1:
        return data.replace(b"    ", b"\t")
    return data.rstrip(b"\n") if change == 2 else b"\xef\xbb\xbf" + data


_CHANGES = (_lines, _lines, _tokens, _tokens, _tokens, _names, _names, _endings, _bytes)


def tried(
    data: bytes, options: Options, path: Path = ROOT / "fuzzed" / "program.py", seconds: int = SECONDS
) -> tuple[str, str]:
    """What came of a program: one of ``WRONG`` with what happened, else ``fixed``, ``found``, ``clean`` or ``no
    Python``."""
    from amplint.engine import check_file
    from amplint.source import Source

    parses = _parses(data)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        result = check_file(Source(path, data), options)
        again = check_file(Source(path, result.after), options) if result.after is not None else None
    except _HangError:
        return "hang", f"more than {seconds} s"
    except Exception as error:
        return "crash", f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    for one in filter(None, (result, again)):
        breaking = [line for line in one.failures if "its fix breaks" in line]
        if breaking:
            return "fix that breaks the file", breaking[0]
        if one.failures or one.error:
            return "crash", (*one.failures, one.error or "")[0]
    if result.after is not None and again is not None:
        if parses and not _parses(result.after):
            return "fix that breaks the file", "it is no Python any more"
        if again.after is not None and not result.notes:
            return "fix that does not settle", "a second run changes it again"
        return "fixed", ""
    return ("found" if result.findings else "clean") if parses else "no Python", ""


def _parses(data: bytes) -> bool:
    with warnings.catch_warnings(), suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        warnings.simplefilter("ignore")
        ast.parse(data)
        return True
    return False


def everything() -> Options:
    """All rules, whatever is possible, and all fixes."""
    from amplint.config import Config
    from amplint.finding import Applicability
    from amplint.judging import judging_options
    from amplint.plugins import load_rules

    rules = load_rules()
    chosen = [rule.code for rule in rules]
    return judging_options(Config(), rules, select=chosen, pedantic=True, fix=Applicability.UNSAFE)


def _on_time(number: int, frame: FrameType | None) -> None:
    raise _HangError


def share(seed: int, count: int, keep: Path | None) -> Counter[str]:
    """Make some programs and try them."""
    signal.signal(signal.SIGVTALRM, _on_time)
    programs, options, chance = seeds(), everything(), random.Random(seed)
    counts: Counter[str] = Counter()
    for _ in range(count):
        data = mutated(programs, chance)
        outcome, why = tried(data, options)
        counts[outcome] += 1
        if outcome in WRONG:
            _keep(data, outcome, why, keep)
    return counts


def real(paths: list[Path]) -> Counter[str]:
    """Try some files."""
    signal.signal(signal.SIGVTALRM, _on_time)
    options = everything()
    counts: Counter[str] = Counter()
    for path in paths:
        outcome, why = tried(path.read_bytes(), options, path, REAL_SECONDS)
        counts[outcome] += 1
        if outcome in WRONG:
            print(f"{outcome}: {path}: {why}", flush=True)
    return counts


def different(folders: list[Path]) -> list[Path]:
    """The Python files below the folders, one for each content."""
    found = (path for folder in folders for path in sorted(folder.resolve().rglob("*.py")) if path.is_file())
    return list({blake2b(path.read_bytes()).digest(): path for path in found}.values())


def _keep(data: bytes, outcome: str, why: str, keep: Path | None) -> None:
    name = blake2b(data, digest_size=6).hexdigest()
    print(f"{outcome}: {name}: {why}", flush=True)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{name}.py").write_bytes(data)


def guided(folder: Path, seconds: int, seed: int, keep: Path | None) -> int:
    """Let atheris choose the programs. Ends this process."""
    import atheris

    with atheris.instrument_imports(include=["amplint"]):
        options = everything()
    signal.signal(signal.SIGVTALRM, _on_time)
    programs = seeds()
    folder.mkdir(parents=True, exist_ok=True)
    for program in programs if not any(folder.iterdir()) else ():
        (folder / blake2b(program, digest_size=6).hexdigest()).write_bytes(program)
    counts: Counter[str] = Counter()
    told = time.monotonic()

    def try_one(data: bytes) -> None:
        nonlocal told
        outcome, why = tried(data, options)
        counts[outcome] += 1
        if outcome in WRONG:
            _keep(data, outcome, why, keep)
        if time.monotonic() > told + 20:
            told = time.monotonic()
            print(f"{counts.total():,} programs: {dict(counts)}", flush=True)

    def change(data: bytes, most: int, seed: int) -> bytes:
        return mutated([data, *programs[seed % len(programs) :][:3]], random.Random(seed))[:most]

    limits = [
        f"-max_total_time={seconds}",
        "-max_len=60000",
        "-timeout=120",
        f"-seed={seed + 1}",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], str(folder), *limits], try_one, custom_mutator=change)
    atheris.Fuzz()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--programs", type=int, default=200_000, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where programs go that something goes wrong with")
    parser.add_argument("--guided", type=Path, metavar="FOLDER", help="let atheris choose, with this corpus")
    parser.add_argument("--seconds", type=int, default=600, help="of --guided")
    parser.add_argument("--files", type=Path, nargs="+", metavar="FOLDER", help="try the files below instead")
    parser.add_argument("--figures", action="store_true", help="keep the figures for docs/figures.md")
    arguments = parser.parse_args()
    if arguments.guided is not None:
        return guided(arguments.guided, arguments.seconds, arguments.seed, arguments.keep)
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor(arguments.jobs) as pool:
        if arguments.files:
            paths = different(arguments.files)[: arguments.programs]
            tasks = [pool.submit(real, paths[at : at + SHARE]) for at in range(0, len(paths), SHARE)]
        else:
            counted = {at: min(SHARE, arguments.programs - at) for at in range(0, arguments.programs, SHARE)}
            tasks = [pool.submit(share, arguments.seed + at, count, arguments.keep) for at, count in counted.items()]
        for task in tasks:
            counts += task.result()
            print(f"{counts.total():,} programs: {dict(counts)}", flush=True)
    figures: dict[str, Any] = {"files" if arguments.files else "programs": counts.total()}
    figures |= {kind: counts[kind] for kind in ("no Python", "clean", "found", "fixed", *WRONG)}
    if arguments.figures:
        from figures import results

        if arguments.files:
            results.save("files", FILES_COMMAND, about=FILES_ABOUT, seen=figures)
        else:
            results.save("fuzzed", COMMAND, about=ABOUT, seen=figures)
    return 1 if any(counts[kind] for kind in WRONG) else 0


if __name__ == "__main__":
    sys.exit(main())
