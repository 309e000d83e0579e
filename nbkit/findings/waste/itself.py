"""Finds a model that is compared with itself, where a second model is expected."""

from collections.abc import Iterator, Sequence

from nbkit.findings.finding import Finding, rule
from nbkit.findings.waste.step import DRAWING, RecordedStep
from nbkit.ops.families import DIVIDES, ELEMENT_LOSSES, LOG_SOFTMAX, MULTIPLIES, PARTS, SOFTMAX, SUBTRACTS
from nbkit.ops.names import packet_of
from nbkit.step.reachable import reachable
from nbkit.step.step import Call

COMPARING = SUBTRACTS | DIVIDES | ELEMENT_LOSSES
DISTRIBUTIONS = SOFTMAX | LOG_SOFTMAX  # whose product a divergence adds up
ADVICE = (
    "Give the other side a model of its own, copy.deepcopy(model) before training, in eval mode and without gradients: "
    "a second name for a model is the same model."
)


@rule("hint", rank=70)
def compared_with_itself(step: RecordedStep) -> Iterator[Finding]:
    """Two forward passes of a model give equal values, and an op outside of it compares them: a reference or a teacher
    that is the model itself; not where actions are drawn from one of them, as in the first epoch of PPO.
    """
    origins, seen = _Origins(step), set[object]()
    for call in step.calls():
        if len(call.inputs) != 2 or not step.is_op[call.op_id] or not _compares(step, call):
            continue
        one, other = (origins.of(row) for row in call.inputs)
        if not origins.are_equal(one, other):
            continue
        first, second = (int(step.op_ids[row]) for row in (one, other))
        result, before = (_of_module(step, op, call.op_id) for op in (second, first))
        # An expression that is written twice, of one pass, is no second pass.
        if result is None or before is None or result == before:
            continue
        model = step.ops["model"].iloc[result]
        if model in seen or _is_drawn_from(step, (first, second, result, before)):
            continue
        seen.add(model)
        message = (
            f"{packet_of(step.names[call.op_id])} compares two results of {model} that are equal: two passes of one "
            "model, with the same inputs and parameters, where two models are expected"
        )
        finding = compared_with_itself.finding(message, ADVICE, evidence={"result_op_ids": [first, second]})
        yield step.finding(finding, [call.op_id])


def _compares(step: RecordedStep, call: Call) -> bool:
    """Returns whether an op gives how its two tensors differ."""
    name = packet_of(step.names[call.op_id])
    makers = [step.op_ids[maker] for row in call.inputs if (maker := step.makers[row]) >= 0]
    are_distributions = len(makers) == 2 and all(packet_of(step.names[one]) in DISTRIBUTIONS for one in makers)
    return name in COMPARING or (name in MULTIPLIES and are_distributions)


class _Origins:
    """Says what a tensor was made of by ops that take nothing else."""

    def __init__(self, step: RecordedStep) -> None:
        self.step, self.known = step, dict[int, int]()

    def of(self, row: int) -> int:
        """Returns the row in which an op of several tensors, or a part, gave what this one was made of; -1 for none."""
        step, passed, found = self.step, [], row
        while found not in self.known and (maker := int(step.makers[found])) >= 0:
            passed.append(found)
            op = int(step.op_ids[maker])
            inputs = step.inputs_of(op)
            if len(inputs) != 1 or packet_of(step.names[op]) in PARTS:
                found = maker
                break
            found = int(inputs[0])
        else:
            found = self.known.get(found, -1)
        self.known.update(dict.fromkeys(passed, found))
        return found

    def are_equal(self, one: int, other: int) -> bool:
        """Returns whether two ops of a model gave the same values in these rows, each by itself."""
        if one < 0 or other < 0:
            return False
        ops, places = self.step.op_ids[[one, other]], self.step.positions[[one, other]]
        firsts = self.step.firsts[ops]
        return bool(ops[0] != ops[1] and firsts[0] == firsts[1] >= 0 and places[0] == places[1])


def _of_module(step: RecordedStep, op: int, reader: int) -> int | None:
    """Returns the op, in a module that the reader is outside of, that an op's result was made of last; or the op."""

    def before(one: int) -> list[int]:
        makers = step.makers[step.inputs_of(one)]
        return sorted(step.op_ids[makers[makers >= 0]].tolist(), reverse=True)

    made_of = reachable([op], before)
    return next((one for one in made_of if step.in_module[one] and _is_outside(step, reader, one)), None)


def _is_outside(step: RecordedStep, op: int, result: int) -> bool:
    """Returns whether an op ahead runs outside of the module that gave a result, in one around it at most."""
    if step.ops["phase"].iloc[op] not in ("forward", "other"):
        return False
    (outer, module), models = step.ops["module"].iloc[[op, result]], step.ops["model"].iloc[[op, result]]
    is_around = isinstance(outer, str) and models.nunique() == 1
    return not is_around or (outer != module and f"{module}.".startswith(f"{outer}." if outer else ""))


def _is_drawn_from(step: RecordedStep, results: Sequence[int]) -> bool:
    """Returns whether something is drawn of what these ops gave: an action, a token."""

    def after(one: int) -> list[int]:
        rows = [row for made in step.rows(one).tolist() for row in step.readers.get(made, ())]
        return sorted(set(step.op_ids[rows].tolist()))

    made = (one for one in reachable(results, after) if one not in results)
    return any(packet_of(step.names[one]) in DRAWING for one in made)
