"""The table of doubts: every reason for which amplint is less sure of a claim than the facts alone make it.

A row says what is doubted of which rules' claims, what is left of the claim, and why, in one sentence for the reader.
Its question is asked where the claim is made, in ``claims`` or by a rule, which name the row. What is passed over
because it may be harmless is a row too, of the effect ``drop``.
"""

from __future__ import annotations

from amplint.finding import Doubt, Effect
from amplint.judge.preview import kinds

_OPERANDS = "AMP101 AMP102 AMP103 AMP104 AMP105 AMP106 AMP107 AMP110 AMP204"
ROUNDED = ("AMP302", "AMP303", "AMP306")
"""Rules that say of numbers that they are wrong, which matters only where they are used."""
_LOW_PRECISION = "AMP301 AMP302 AMP303 AMP305 AMP306"
_RUN = "AMP109 AMP111 AMP112 AMP113 AMP201 AMP202 AMP203 AMP205 AMP304 AMP404 AMP405 AMP602 AMP603 AMP604"
"""Rules besides that say what happens when the line is run, not what is written there."""


def _drop(name: str, codes: str, message: str) -> Doubt:
    return Doubt(name, tuple(codes.split()), Effect.DROP, message)


def _possible(name: str, codes: str, message: str) -> Doubt:
    return Doubt(name, tuple(codes.split()), Effect.POSSIBLE, message)


def _likely(name: str, codes: str, message: str) -> Doubt:
    return Doubt(name, tuple(codes.split()), Effect.LIKELY, message)


RUN_IN_FULL_PRECISION = _possible(
    "run-in-full-precision", "", "Only a script or tests run this, and they ask for no low precision."
)
IN_A_TEST = _possible(
    "in-a-test",
    f"{_OPERANDS} {_LOW_PRECISION} {_RUN}",
    "Only this test runs it, as it is written here: what raises there is what the test is about, or was seen.",
)
NOT_IMPORTABLE = _possible(
    "not-importable", "", "The file, or a package around it, imports what is not there, or raises when it is imported."
)
SWITCHED_OFF = _possible(
    "switched-off",
    f"{_OPERANDS} {_LOW_PRECISION} {_RUN} AMP401 AMP402",
    "A constant of the file or the function, which nothing sets to anything else, leaves this out.",
)
LEFT_OVER = _possible(
    "left-over",
    f"{_OPERANDS} {_LOW_PRECISION} {_RUN}",
    "Nothing in the project uses this function or class, or imports its file, though it uses others, or most of them.",
)
UNREACHED = _possible(
    "unreached",
    "AMP401 AMP402 AMP601",
    "Nothing in the project uses this function or class, or imports its file, though most of its code is used.",
)
OTHER_DEVICE = _possible(
    "other-device",
    f"{_OPERANDS} {_LOW_PRECISION} {_RUN} AMP401 AMP402",
    "The file cannot be imported without a library for another accelerator, so nothing in it runs on CUDA.",
)
NO_WEIGHTS = _possible(
    "no-weights", "", "Only half weights make this fail, and nothing that owns weights is seen to lead here."
)
FOR_USERS = _likely(
    "for-users",
    f"{_OPERANDS} {_LOW_PRECISION}",
    "Only half weights make this fail, and no call of a module that owns weights is seen to run it: a user has to.",
)
PREVIEW = _possible(
    "preview",
    " ".join(dict.fromkeys(kind.code for kind in kinds())),
    "Readers called too few findings of this kind right: it is told where the rule is named, or --scenario.",
)

FAILS_BEFORE = _possible(
    "fails-before",
    f"{_OPERANDS} {_LOW_PRECISION} AMP304",
    "Another operation raises, or most likely does, before this one runs or its result is used, in every scenario.",
)
NO_WAY_IN = _possible(
    "no-way-in",
    f"{_OPERANDS} {_LOW_PRECISION} AMP304",
    "All that is seen to lead here raises before, is never run, has autocast off, or is a constructor, before casts.",
)
UNANSWERED = _possible(
    "unanswered",
    f"{_OPERANDS} {_LOW_PRECISION} AMP304",
    "The method needs an attribute of its object that nothing in the project sets, or turns on.",
)
NOT_PASSED = _possible(
    "not-passed",
    f"{_OPERANDS} {_LOW_PRECISION} {_RUN} AMP601",
    "It takes an argument, or an attribute, that nothing in the project gives.",
)
FAILS_ANYHOW = _possible(
    "fails-anyhow",
    "",
    "All that is seen to run this raises in float32 too, as where a name or argument is missing, or is never run.",
)
OTHER_MEMORY = _possible(
    "other-memory",
    f"{_OPERANDS} {_LOW_PRECISION} AMP304",
    "A tensor made in the host's memory meets the device's here or before: torch raises in any dtype.",
)
OTHER_DEFAULT = _possible(
    "other-default",
    f"{_OPERANDS} {_LOW_PRECISION}",
    "Importing the package sets another default dtype than float32, so that nothing here is half.",
)
SUBSTITUTED = _possible(
    "substituted",
    f"{_OPERANDS} {_LOW_PRECISION} AMP304",
    "The code catches what is raised here, and computes the same in another way.",
)
UNKNOWN_ON_A_PATH = _likely(
    "unknown-on-a-path",
    f"{_OPERANDS} {_LOW_PRECISION}",
    "On another path the tensor's dtype is unknown, or a number takes its place.",
)
DEFAULT_UNSEEN = _possible(
    "default-unseen",
    f"{_OPERANDS} AMP305",
    "Only a model that is constructed under a 16-bit default dtype fails, and nothing in the file sets one.",
)
NEVER_CONVERTED = _possible(
    "never-converted",
    _OPERANDS,
    "The code makes this layer outside of any module, where no conversion reaches it: its callers pass float32 too.",
)
PASSED_BY_NONE = _possible(
    "passed-by-none",
    "AMP106",
    "A caller has to pass low precision, and nothing in the project is seen to: a module's own input is float32.",
)
WIDE_DESTINATION = _possible(
    "wide-destination",
    "AMP105",
    "Under autocast a layer mostly gets float32, and then the destination has the dtype of the rows.",
)
PATHS_APART = _possible(
    "paths-apart",
    "AMP102 AMP104",
    "The dtypes differ on one path only, and that path may never bring both operands here.",
)

CAST_BACK = _possible(
    "cast-back",
    "AMP102",
    "The code casts the result back to the dtype of an argument, so the lost precision was given up anyway.",
)
UNASKED_PRECISION = _possible(
    "unasked-precision",
    "AMP102",
    "Only accuracy under autocast is at stake, and nothing in the project names autocast or low precision.",
)
RUN_BY_NO_MODULE = _possible(
    "run-by-no-module", "AMP102 AMP107", "No module is seen to run this, and the file itself opens no autocast region."
)
ASKED_FOR = _drop(
    "asked-for", "AMP109", "A test around the cast asks for the dtype, or for an option that callers set."
)
NO_HARM_SEEN = _possible(
    "no-harm-seen",
    "AMP109",
    "Nothing shows that the tensor leaves the function in this dtype, or that the function gets one of a model.",
)

ONLY_RETURNED = _possible(
    "only-returned", "AMP111", "The module returns the float32 tensor, and its caller may want it so."
)
ASKS_FOR_DTYPE = _drop(
    "asks-for-dtype",
    "AMP107 AMP113",
    "A test around this asks for a dtype, so the code tells the cases apart on purpose.",
)

CAST_BY_HAND = _possible(
    "cast-by-hand", "AMP201 AMP202", "The code casts the operands in backward to one dtype itself."
)
BACKWARD_UNROUNDED = _possible(
    "backward-unrounded", "AMP201 AMP202", "Nothing that backward multiplies is known to have been rounded by autocast."
)

OUTSIDE_A_MODULE = _possible(
    "outside-a-module",
    _LOW_PRECISION,
    "A caller decides the dtype, and no module is seen that would pass low precision.",
)

VALUES_DECIDE = _possible(
    "values-decide", "AMP102 AMP302 AMP303", "The dtype alone does not say that anything is lost: the values decide."
)

MAY_BE_INTEGERS = _possible("may-be-integers", "AMP305", "Nothing says that the tensor holds floating numbers.")
RUN_BESIDE_MODULES = _possible(
    "run-beside-modules",
    "AMP305 AMP306",
    "No module is seen to run this, and it may run where no autocast region is open.",
)
OLDER_AND_ASSUMED = _possible(
    "older-and-assumed", "AMP305", "Only older releases of torch lack the kernel, and a caller decides the dtype."
)
BUFFER_KEPT_WIDE = _possible(
    "buffer-kept-wide",
    "AMP306",
    "Only the module's conversion makes the buffer low precision, and the project may keep it from that.",
)

NOT_POSITIONS = _drop(
    "not-positions", "AMP306", "Nothing says that the product is of positions, whose angles need them exactly."
)
ONLY_OUTGROWN = _possible(
    "only-outgrown", "AMP306", "The constructor has made the table; only positions beyond its end make a new one."
)
BEGINS_TRAINING = _possible(
    "begins-training", "AMP604", "The function takes the training step itself, so it hardly runs inside another region."
)
SWITCHED_ON = _possible(
    "switched-on", "AMP603", "A flag switches the region on, and what sets the flag may do so for CUDA only."
)
STEERS_NOTHING = _possible(
    "steers-nothing",
    "AMP602",
    "The answer decides over no region of autocast and no dtype of it: on another device the same is computed.",
)
MASKS_ALL_THE_SAME = _possible(
    "masks-all-the-same",
    "AMP301",
    "Nothing raises: softmax and the like give the same of an infinite number, but where nothing else is left.",
)
REGIONS_OF_CUDA = _possible(
    "regions-of-cuda", "AMP602", "All regions of autocast that the project opens are CUDA's, of which the query asks."
)
IMPORTED_ONLY = _possible(
    "imported-only", "AMP601", "The file never uses the name, and to import it warns of nothing: only a call does."
)
LOSS_BY_VALUES = _likely(
    "loss-by-values",
    f"{' '.join(ROUNDED)} AMP404",
    "What the code does is certain; how much accuracy that costs, the values decide.",
)
MANAGED = _likely("managed", "AMP404", "A framework runs the backward pass, and may leave the region for it.")


TABLE = tuple(row for row in tuple(globals().values()) if isinstance(row, Doubt))
"""Every row."""
