"""AMP501: precision settings in Python calls that contradict each other or the model's dtype."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from amplint.claims.one_way_choices import names_in, never_equal, no_dtypes
from amplint.claims.precision_names import ALIASES, short_names_alone
from amplint.claims.precision_settings import Contradiction, contradictions
from amplint.rule import ASSUMED, Applicability, Cause, Edit, Evidence, Example, Rule, Severity, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from amplint.rule import FileFacts, Fix, Span, Visit


_MEANT = {
    "float16": "float16",
    "half": "float16",
    "fp16": "float16",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "float32": "float32",
    "fp32": "float32",
}
"""The dtypes that strings name which a dtype is compared with."""


class PrecisionConflict(Rule):
    """A call asks for two precisions at once, or for one that the model it is given does not have.

    What it does
    ------------
    Reports `fp16=True` beside `bf16=True` in one call, and both enabled in one configuration dict; torch's FSDP
    `MixedPrecision` whose buffers are in 16 bit while its parameters stay in float32, also where the branches of an
    `if` choose the dtypes; and a model loaded in float16 that goes, without adapters, to a trainer whose arguments say
    `fp16=True` or `bf16=True`, or to an Accelerator of `mixed_precision="fp16"`; one in bfloat16 likewise, but for
    `bf16=True`. And a test of Lightning's precision
    for `16`, `"16"` or `"bf16"` in a file that nowhere has a long name such as `"16-mixed"` or a name of its own.
    And settings that are no dtype: a boolean or a string that torch gets as one, as by `(x and x != "auto") or
    torch.float16`, and a dtype compared with a string, which it never equals.
    `amplint preflight` reads YAML and JSON configurations too, and holds settings against the hardware.

    Why it is bad
    -------------
    The two precisions exclude each other and the framework raises, after the model was loaded. Buffers in 16 bit meet
    float32 parameters in the first norm. Mixed precision needs float32 weights: a scaler refuses the gradients of
    float16 ones. Lightning 2 calls mixed precision `"16-mixed"` and `"bf16-mixed"` and takes the short names as well,
    so what a test for `"16"` was to switch on stays off.

    How it shows
    ------------
    ```text
    ValueError: At most one of fp16 and bf16 can be True, but not both
    ValueError: Attempting to unscale FP16 gradients.
    NotImplementedError: "_amp_foreach_non_finite_check_and_unscale_cuda" not implemented for 'BFloat16'
    TypeError: empty(): argument 'dtype' must be torch.dtype, not bool
    ```

    Example
    -------
    ```python
    arguments = TrainingArguments("out", fp16=True, bf16=True)
    ```
    Use instead:
    ```python
    arguments = TrainingArguments("out", bf16=True)
    ```

    Fix safety
    ----------
    Unsafe: of `fp16=True, bf16=True` the fix keeps bf16, which GPUs before compute capability 8.0 compute slowly or not
    at all. A comparison with one short name becomes one with both, one of a dtype with its name one with the dtype. The
    others have no fix, since the model's loading and its trainer are both the author's choice.
    """

    code: ClassVar[str] = "AMP501"
    name: ClassVar[str] = "precision-conflict"
    severity: ClassVar[Severity] = Severity.WARNING
    evidence: ClassVar[Evidence] = Evidence.CITED
    of_weights = False
    tokens: ClassVar[tuple[str, ...]] = (
        *("fp16=True", "fp16 = True", "fp16_full_eval", '"fp16"', "'fp16'", "MixedPrecision", "mixed_precision="),
        *("float16", "bf16", "fp16"),
        *(f"precision{end}" for end in (" == ", ") == ", " != ", ") != ", " in ", ") in ", " not in ", ") not in ")),
    )
    context: ClassVar[tuple[str, ...]] = ("bf16", "bfloat16", "dtype", "from_pretrained", "MixedPrecision", "lightning")
    claims_failure = False
    fix: ClassVar[Applicability | None] = Applicability.UNSAFE

    bad: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
from transformers import TrainingArguments

arguments = TrainingArguments("out", fp16=True, bf16=True)  # expect
config = {"fp16": {"enabled": True}, "bf16": {"enabled": True}}  # expect
""",
            scenario="autocast-fp16",
        ),
    )
    good: ClassVar[tuple[Example, ...]] = (
        Example(
            """\
import torch
from torch.distributed.fsdp import MixedPrecision
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

config = {"fp16": {"enabled": False}, "bf16": {"enabled": True}}
precise_reduction = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, buffer_dtype=torch.float32)
compressed = MixedPrecision(param_dtype=torch.float32, reduce_dtype=torch.bfloat16)


def compare(fp16, bf16):
    return fp16 != bf16


both = compare(fp16=True, bf16=True)


def train(dataset, half):
    model = AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.float32)
    teacher = AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.float16)
    arguments = TrainingArguments("out", fp16=half, bf16=not half)
    return teacher, Trainer(model=model, args=arguments, train_dataset=dataset)
"""
        ),
    )

    def suspects(self, facts: FileFacts) -> Iterable[Suspect]:
        found = list(contradictions(facts))
        for test, short in short_names_alone(facts):
            message = f"tests for {short!r} alone, which Lightning 2 calls {ALIASES[short]!r}: test for both"
            found.append(Contradiction(test, message, ("autocast-bf16" if short == "bf16" else "autocast-fp16",)))
        named = facts.all_scenarios()
        strings: dict[ast.AST, tuple[str, ...]] = {}
        for compared, name in never_equal(facts):
            strings[compared] = names_in(compared)
            message = f"is never equal: `{ast.unparse(compared.left)}` is a dtype here, and {name!r} a string"
            found.append(Contradiction(compared, message, named))
        for one in found:
            scenarios = tuple(name for name in named if name in one.scenarios)
            if scenarios:
                span = facts.span(one.node)
                removed = facts.span(one.extra) if one.extra is not None else None
                data = removed or strings.get(one.node)
                yield Suspect(span, span, one.message, scenarios, ASSUMED, one.causes, data=data)
        for call, made, value in no_dtypes(facts):
            message = f"this can be {value!r}, which torch refuses as a dtype with a TypeError"
            cause = Cause(facts.path, facts.span(call), "given as the dtype here")
            yield Suspect(facts.span(made), facts.span(call), message, named, ASSUMED, (cause,))

    def visit_Call(self, node: cst.Call, suspect: Suspect, visit: Visit) -> None:
        removed: Span | None = suspect.data
        argument = next((a for a in node.args if removed is not None and visit.span(a.value) == removed), None)
        if argument is None:
            visit.report(suspect)
            return
        edit: Edit = visit.delete(argument)
        visit.report(suspect, visit.fix(Applicability.UNSAFE, "Keep bf16 alone", edit))

    def visit_Comparison(self, node: cst.Comparison, suspect: Suspect, visit: Visit) -> None:
        import libcst as cst

        operator, value = node.comparisons[0].operator, node.comparisons[0].comparator
        if isinstance(suspect.data, tuple):
            visit.report(suspect, _with_dtypes(node, suspect.data, visit))
            return
        words = "in" if isinstance(operator, cst.Equal) else "not in" if isinstance(operator, cst.NotEqual) else None
        known = isinstance(value, cst.SimpleString | cst.Integer) and visit.code(value)
        long = ALIASES.get(ast.literal_eval(known)) if known else None
        if words is None or long is None:
            visit.report(suspect)
            return
        both = f'{visit.code(node.left)} {words} ({visit.code(value)}, "{long}")'
        visit.report(suspect, visit.fix(Applicability.UNSAFE, "Test for both names", visit.replace(node, both)))


def _with_dtypes(node: cst.Comparison, names: tuple[str, ...], visit: Visit) -> Fix | None:
    """Compare a dtype with the dtypes that strings name, or None where one of them names no dtype."""
    import libcst as cst

    dtypes = list(dict.fromkeys(_MEANT.get(name) for name in names))
    if None in dtypes:
        return None
    torch, imports = visit.import_name("torch")
    equal = isinstance(node.comparisons[0].operator, cst.Equal | cst.In)
    spelled = [f"{torch}.{dtype}" for dtype in dtypes]
    if len(spelled) == 1:
        text = f"{visit.code(node.left)} {'==' if equal else '!='} {spelled[0]}"
    else:
        text = f"{visit.code(node.left)} {'in' if equal else 'not in'} ({', '.join(spelled)})"
    return visit.fix(Applicability.UNSAFE, "Compare with the dtype", *imports, visit.replace(node, text))
