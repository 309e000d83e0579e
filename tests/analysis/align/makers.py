"""Makes small executions by hand: a list of (name, op, sources, array), op null of inputs."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from nbkit.trace.executions.execution import Array, Collector, Execution, Recompute, Result
from nbkit.trace.executions.values import Values

Step = tuple[str, str | None, Sequence[str], Array]
Ops = Mapping[str, Callable[..., Array]]
# Ops that an execution of made arrays runs again.
OPS: Ops = {"Add": np.add, "Mul": np.multiply, "Tanh": np.tanh, "Neg": np.negative}


def execution(
    *steps: Step, outputs: Sequence[str] = (), ops: Ops | None = None, values: Values | None = None
) -> Execution:
    """Returns the execution of the steps in their order; without outputs given, the last result is the output.

    A name with a dot and without an op is a parameter's; the op Constant makes a constant. With `ops`, it runs again.
    """
    collector, numbers = Collector(values), dict[str, int]()
    for name, op, sources, array in steps:
        is_constant, op = op == "Constant", None if op == "Constant" else op
        kind = "constant" if is_constant else "op" if op else "parameter" if "." in name else "input"
        read = tuple(numbers[source] for source in sources)
        call = len(numbers) if op else None
        result = Result(0, kind, name, str(array.dtype), array.shape, call=call, sources=read, op=op)
        numbers[name] = collector.add(result, array)
    results = tuple(collector.results)
    named = outputs or [name for name, *_ in steps[-1:]]
    again = None if ops is None else recomputing(results, collector, ops)
    return Execution("made", "test", results, {name: numbers[name] for name in named}, collector.values, again)


def recomputing(results: Sequence[Result], collector: Collector, ops: Ops) -> Recompute:
    """Returns what computes the results once more."""

    def recompute(given: Mapping[int, Array], wanted: Sequence[int]) -> dict[int, Array]:
        made: dict[int, Array] = {}
        for result in results:
            if result.op:
                read = [given.get(one, made[one]) for one in result.sources]
                made[result.result_id] = ops[result.op](*read)
            else:
                made[result.result_id] = collector.values.get(result.result_id)  # type: ignore[assignment]
        return {number: made[number] for number in wanted}

    return recompute


def numbers(seed: int, *shape: int) -> Array:
    """Returns normal float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
