"""The table of doubts: every reason for which amplint is less sure of a claim than the facts alone make it.

A row says what is doubted of which rules' claims, what is left of the claim, and why, in one sentence for the reader.
Its question is asked where the claim is made, in ``claims`` or by a rule, which name the row. What is passed over
because it may be harmless is a row too, of the effect ``drop``.
"""

from __future__ import annotations

from amplint.finding import Doubt, Effect

_OPERANDS = "AMP101 AMP102 AMP103 AMP104 AMP105 AMP106 AMP107 AMP110 AMP204"
_LOW_PRECISION = "AMP301 AMP302 AMP303 AMP305 AMP306"


def _drop(name: str, codes: str, message: str) -> Doubt:
    return Doubt(name, tuple(codes.split()), Effect.DROP, message)


def _possible(name: str, codes: str, message: str) -> Doubt:
    return Doubt(name, tuple(codes.split()), Effect.POSSIBLE, message)


def _likely(name: str, codes: str, message: str) -> Doubt:
    return Doubt(name, tuple(codes.split()), Effect.LIKELY, message)


BELOW_MAIN_GUARD = _possible(
    "below-main-guard", "", "Only the script below the main guard runs this, and it asks for no low precision."
)
NO_WEIGHTS = _possible(
    "no-weights", "", "Only half weights make this fail, and nothing that owns weights is seen to lead here."
)
CITED_EVIDENCE = _likely("cited-evidence", "", "A source or an issue says that this fails; no run has shown it.")

FAILS_BEFORE = _possible(
    "fails-before",
    f"{_OPERANDS} {_LOW_PRECISION}",
    "Another operation raises before this one runs, in every scenario named.",
)
OTHER_LIBRARY = _likely(
    "other-library", "AMP101", "The kernel belongs to another library, and only its source says which dtypes it takes."
)
ADDED_LATER = _likely(
    "added-later",
    _OPERANDS,
    "A parameter is added beside a layer that was there before, and the model may be converted after that.",
)
FOLLOWS_DEFAULT = _likely(
    "follows-default",
    _OPERANDS,
    "A plain attribute keeps torch's default dtype, which may be the model's while it is constructed.",
)
NORM_KEPT_WIDE = _likely(
    "norm-kept-wide",
    _OPERANDS,
    "The code casts up before a norm, and who does so often keeps the norm's weights in float32 too.",
)
UNKNOWN_ON_A_PATH = _likely(
    "unknown-on-a-path",
    f"{_OPERANDS} {_LOW_PRECISION}",
    "On another path the tensor's dtype is unknown, or a number takes its place.",
)
DEFAULT_UNSEEN = _possible(
    "default-unseen",
    _OPERANDS,
    "Only a model that is constructed under a 16-bit default dtype fails, and nothing in the file sets one.",
)
ROWS_OF_ANYONE = _possible(
    "rows-of-anyone",
    "AMP105",
    "A method of a class that is no module gets the tensor, which may hold data instead of activations.",
)
WIDE_DESTINATION = _possible(
    "wide-destination",
    "AMP105",
    "Under autocast a layer mostly gets float32, and then the destination has the dtype of the rows.",
)
MAY_BE_A_NUMBER = _possible(
    "may-be-a-number",
    "AMP106",
    "A caller decides the dtype, or a number takes the tensor's place, which fits any dtype.",
)
MAY_BE_MISSING = _possible(
    "may-be-missing", _OPERANDS, "The path on which the dtypes differ also decides whether the operand is there at all."
)
ROWS_MAY_FOLLOW = _possible(
    "rows-may-follow",
    "AMP105",
    "A caller decides one of the dtypes, and nothing says that it passes another one than the code makes.",
)
FAILS_ELSEWHERE = _possible(
    "fails-elsewhere",
    "AMP103 AMP110",
    "The constant makes another operation fail, and this one gets only what took its dtype from there.",
)
OTHER_VARIES = _possible(
    "other-varies",
    "AMP103 AMP110",
    "The other operand has several dtypes too, and the paths on which they differ may not go together.",
)
PATHS_APART = _possible(
    "paths-apart",
    "AMP102 AMP104",
    "The dtypes differ on one path only, and that path may never bring both operands here.",
)
CALLERS_AGREE = _possible(
    "callers-agree", _OPERANDS, "The modules that apply the Function pass operands of one dtype on some path."
)

ANSWERS_ARGUMENT = _possible(
    "answers-argument",
    "AMP102",
    "A plain function casts one argument up to meet another, so callers are likely to pass that one in float32.",
)
MAKES_CONSTANT = _possible(
    "makes-constant",
    "AMP102",
    "Only constructors call this function, and it makes all operands itself: no autocast region is open then.",
)
COMPARED_WITH_ZERO = _possible(
    "compared-with-zero", "AMP102", "The code only compares the result with zero, which low precision answers alike."
)
CAST_BACK = _possible(
    "cast-back",
    "AMP102",
    "The code casts the result back to the dtype of an argument, so the lost precision was given up anyway.",
)
CAST_IN_OTHER_FILE = _possible(
    "cast-in-other-file", "AMP102", "Another file casts the operands up, and need not have meant this product."
)
PREPARES_WEIGHTS = _possible(
    "prepares-weights",
    "AMP102",
    "The function prepares weights, and no method that may run under autocast is seen to call it.",
)
RUN_BY_TESTS = _possible("run-by-tests", "AMP102", "Only tests run this, and the file opens no autocast region.")
ON_HOST = _drop(
    "on-host", "AMP102 AMP302 AMP305", "The tensor lies on the host, where autocast for another device does nothing."
)

PROJECTION_LEFT_OFF = _possible(
    "projection-left-off",
    "AMP103",
    "The layer exists only where two sizes differ, and every construction in the file leaves them equal.",
)
OPTION_LEFT_OFF = _possible(
    "option-left-off",
    "AMP103",
    "The constant is made only where an option is on, and every construction in the file leaves it off.",
)
BROUGHT_TO_DTYPE = _drop("brought-to-dtype", "AMP104", "The operands have one dtype before they meet.")

FAST_PATH_MAY_BE_SHUT = _possible(
    "fast-path-may-be-shut", "AMP108", "A caller decides arguments of the constructors that may close the fast path."
)
CUDA_ALONE = _possible("cuda-alone", "AMP108", "Nothing in the file runs autocast on a device other than CUDA.")
OTHER_MASK_TOO = _possible(
    "other-mask-too", "AMP108", "The call may pass an attention mask as well, which closes the fast path."
)

ROUNDED_AT_ONCE = _drop("rounded-at-once", "AMP109", "The code gives the result another dtype at once.")
STORED = _drop("stored", "AMP109", "The tensor is one of a dict's or a module's, which is stored, not computed with.")
ASKED_FOR = _drop(
    "asked-for", "AMP109", "A test around the cast asks for the dtype, or for an option that callers set."
)
OF_NO_MODEL = _possible(
    "of-no-model",
    "AMP109",
    "No module is seen to run this, and no caller passes what is cast: the function chooses a dtype for itself.",
)
GIVEN_AWAY = _possible(
    "given-away", "AMP109", "A function of another package takes the tensor, and may take that dtype alone."
)
HOLDS_A_MASK = _possible(
    "holds-a-mask", "AMP109", "The tensor is a mask, whose zeros, ones and infinities both 16-bit dtypes hold."
)
LAYERS_CAST_AGAIN = _possible(
    "layers-cast-again", "AMP109", "The cast runs only while autocast is on, and layers cast their inputs again."
)
ATTENTION_CAST_BACK = _possible(
    "attention-cast-back",
    "AMP109",
    "Only an attention gets the tensor, an average that does not overflow, and its result is cast back.",
)
MADE_WIDE = _possible(
    "made-wide", "AMP109", "The function makes the tensor in float32, so that every model gets the same rounded values."
)
HOLDS_EXPONENTIAL = _possible(
    "holds-exponential",
    "AMP109",
    "The tensor holds an exponential, for which bfloat16 has the range and float16 has not.",
)

WIDENS_A_TABLE = _drop(
    "widens-a-table", "AMP110 AMP111", "The code makes the tensor that becomes float32, and may want a float32 table."
)
ONLY_RETURNED = _possible(
    "only-returned", "AMP111", "The module returns the float32 tensor, and its caller may want it so."
)
MERGED_BIAS = _possible(
    "merged-bias", "AMP111", "The weight is a bias, which layers of quantized weights cast in their forward."
)
MAY_BE_NO_TENSOR = _likely(
    "may-be-no-tensor", f"AMP112 {_LOW_PRECISION}", "The value may be something else than a tensor."
)
MAY_PROBE = _drop("may-probe", "AMP112", "The statement may be there to see whether it raises.")
ASKS_FOR_DTYPE = _drop(
    "asks-for-dtype",
    "AMP107 AMP113",
    "A test around this asks for a dtype, so the code tells the cases apart on purpose.",
)

ASKS_FOR_AUTOCAST = _drop("asks-for-autocast", "AMP201 AMP202", "Forward asks for autocast's state itself.")
ALIGNED_BY_HAND = _drop(
    "aligned-by-hand", "AMP201 AMP202", "The code casts the operands of every operation in backward itself."
)
DIFFERENTIATED = _drop(
    "differentiated",
    "AMP201 AMP202",
    "Forward has autograd differentiate at once, and backward only scales that.",
)
OPERANDS_UNKNOWN = _possible(
    "operands-unknown",
    "AMP201 AMP202",
    "No operand in forward has a known dtype, so that autocast may decide nothing there.",
)
CAST_BY_HAND = _possible(
    "cast-by-hand", "AMP201 AMP202", "The code casts the operands in backward to one dtype itself."
)
NOTHING_TO_CAST = _possible(
    "nothing-to-cast", "AMP203", "Nothing in backward depends on autocast, or forward casts its inputs to one dtype."
)
MAY_BE_CAUGHT = _drop("may-be-caught", "AMP203", "The file catches the exception.")
CALLERS_CAST = _drop("callers-cast", "AMP205", "A call of the Function casts what it passes.")

OUTSIDE_A_MODULE = _possible(
    "outside-a-module",
    _LOW_PRECISION,
    "A caller decides the dtype, and no module is seen that would pass low precision.",
)
ONLY_INFINITE = _drop(
    "only-infinite", "AMP301", "A caller outside of modules decides the dtype, and the infinity raises nothing."
)
SHARES_SUMMED = _drop("shares-summed", "AMP302", "The tensor is a sum of probabilities, which is about 1.")
OVERRIDDEN = _drop(
    "overridden", "AMP302", "The epsilon is a default, and every call in the file passes a number that float16 holds."
)
NO_GUARD = _drop(
    "no-guard", "AMP302", "The sum is a factor, or is chosen only where it is not zero: the epsilon guards nothing."
)
PICKED_SHARES = _possible(
    "picked-shares", "AMP302", "The tensor is a sum of chosen probabilities, which is far from zero."
)
EXPONENTIAL_BY_DEFAULT = _possible(
    "exponential-by-default",
    "AMP302",
    "The tensor is an exponential unless an option says otherwise, and no construction in the file does.",
)
TESTED_BEFORE = _possible("tested-before", "AMP302", "A test lets only larger numbers come here.")
ONLY_MULTIPLIED = _possible(
    "only-multiplied", "AMP302", "The code only multiplies by the result, and a factor may be zero."
)
OF_AN_ANGLE = _possible("of-an-angle", "AMP302", "The result is an argument of atan2, which takes zeros.")
ONLY_DECIDES = _possible(
    "only-decides", "AMP302", "The result only decides a choice, which the epsilon hardly changes."
)
LEARNED = _possible("learned", "AMP302", "The tensor is made of parameters that do not begin as zeros.")
FLOOR_BEFORE = _possible("floor-before", "AMP302", "The code adds an epsilon that float16 holds before this one.")
SUMS_WHOLE = _possible(
    "sums-whole", "AMP302", "The tensor is a sum over everything, which is zero only where all of it is."
)
GRADIENT_ALONE = _possible(
    "gradient-alone", "AMP302", "Nothing divides by the root, so that only its gradient is infinite at zero."
)
TRAINER = _possible(
    "trainer", "AMP302", "A class that trains a model holds this, and no GradScaler takes float16 gradients."
)
OF_COMPLEX = _possible(
    "of-complex",
    "AMP302 AMP303 AMP305",
    "The operands are the parts of complex numbers, and callers are likely to pass these in float32.",
)
HOST_BY_DEFAULT = _possible(
    "host-by-default",
    "AMP302",
    "The tensor lies on the host unless a caller names a device, and autocast for another device does nothing there.",
)
TORCHS_OWN = _possible("torchs-own", "AMP302", "The epsilon is the one that torch uses itself.")
CONSTANT_RAISES = _possible("constant-raises", "AMP302", "A constant above raises in float16 before this line runs.")

MAY_COUNT = _drop("may-count", "AMP303", "A caller may pass a mask or lengths, whose sums are integers.")
NEEDS_LOSS_SCALE = _possible(
    "needs-loss-scale",
    "AMP303",
    "Gradients are so large only with a loss scale on them, which no GradScaler keeps for float16 parameters.",
)
NO_ROOT = _possible(
    "no-root",
    "AMP303",
    "No root of the sum over a dimension is taken: it need not be the scale of a layer, which is large.",
)
A_LENGTH = _possible("a-length", "AMP303", "The sum is the length of a vector, which stays far below 256.")
A_DISTANCE = _possible("a-distance", "AMP303", "The code squares the difference of two rows, a distance of positions.")
NO_CHOICE = _possible("no-choice", "AMP303", "The chosen shares are not seen to decide anything.")
SUM_OF_ONES = _possible("sum-of-ones", "AMP303", "The code sums ones, which is exact as long as they are few.")
VALUES_DECIDE = _possible(
    "values-decide", "AMP303", "The dtype alone does not say that anything is lost: the values decide."
)
SQUARES_MAY_BE_SMALL = _likely(
    "squares-may-be-small", "AMP303", "The values decide whether their squares are large enough to overflow."
)

MAY_BE_INTEGERS = _possible("may-be-integers", "AMP305", "Nothing says that the tensor holds floating numbers.")
PREPARES_A_MODEL = _possible(
    "prepares-a-model", "AMP305", "The function gets a model and no tensor, and runs where no autocast region is open."
)
METHOD_OF_NO_MODULE = _possible(
    "method-of-no-module", "AMP305", "The method's class is no module, and it may run where no autocast region is open."
)
OLDER_RELEASE = _likely(
    "older-release", "AMP305", "Only older releases of torch that the project allows lack the kernel."
)
OLDER_AND_ASSUMED = _possible(
    "older-and-assumed", "AMP305", "Only older releases of torch lack the kernel, and a caller decides the dtype."
)
INITIALISES = _likely("initialises", "AMP305", "The model may be constructed in float32 and converted after that.")
BUFFER_KEPT_WIDE = _possible(
    "buffer-kept-wide",
    "AMP306",
    "Only the module's conversion makes the buffer low precision, and the project may keep it from that.",
)
FREQUENCIES = _likely(
    "frequencies",
    "AMP306",
    "Few frequencies are counted, exactly, and how much the rounded product matters depends on the positions.",
)

NOT_POSITIONS = _drop(
    "not-positions", "AMP306", "Nothing says that the product is of positions, whose angles need them exactly."
)
MANAGED = _likely("managed", "AMP404", "A framework runs the backward pass, and may leave the region for it.")
SUPPORT_ASKED = _drop("support-asked", "AMP502", "The file speaks of asking whether a GPU supports bfloat16.")
STAYS_FLOAT32 = _possible("stays-float32", "AMP405", "Everything in the region is float32 without it too.")
NAMED_ONLY = _possible("named-only", "AMP601", "The file only names the class in annotations and never makes one.")
CASTS_UNDONE = _possible(
    "casts-undone",
    "AMP602",
    "The casts that the answer guards are undone, or the next operand makes the same dtype without them.",
)
OPTION_OF_ANOTHER = _possible(
    "option-of-another",
    "AMP603",
    "An option of another object opens the region, and that object's class may know the device.",
)
RUNS_WITHOUT = _possible(
    "runs-without", "AMP603", "The other branch runs the same code without the region, so the caller chooses by device."
)
VERSION_ASKED = _drop("version-asked", "AMP603", "The code asks for the release of torch before it opens the region.")
CUDA_ASKED = _drop("cuda-asked", "AMP603", "The code asks for CUDA before it opens the region.")
FOR_CUDA_ALONE = _drop(
    "for-cuda-alone", "AMP603", "The function or class puts something on CUDA, or calls torch.cuda, without asking."
)
CUDA_FOUND = _drop("cuda-found", "AMP603", "The device comes from an answer of torch.cuda.")


TABLE = tuple(row for row in tuple(globals().values()) if isinstance(row, Doubt))
"""Every row."""
