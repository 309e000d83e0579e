"""Has torch's own compiler bisector find what of torch.compile is at fault."""

import io
from contextlib import nullcontext, redirect_stdout
from typing import Any, NamedTuple
from unittest.mock import patch

import torch

from nbkit.capture.operators.bisect.trials import Trials

NOTHING: frozenset[Any] = frozenset()
NOT_CALLED = (
    "Nothing was found: the step does not call torch.compile. Call it inside the step: torch's bisector chooses the "
    "backend where a function is compiled, and compiled code that is there already stays as it is."
)


class CompilerPart(NamedTuple):
    """Names a backend of torch.compile, or a part of one, and the how many-th of its uses is at fault."""

    op: str
    call: int | None
    module: str | None = None
    phase: str = "other"
    source: str | None = None
    op_id: int | None = None


def compiler_trials(trials: Trials) -> tuple[list[CompilerPart], str]:
    """Returns what of torch.compile is at fault, and the verdict."""
    from torch._inductor.compiler_bisector import CompilerBisector

    is_called = False
    compiled = torch.compile

    def noted(*args: Any, **kwargs: Any) -> Any:
        nonlocal is_called
        is_called = True
        return compiled(*args, **kwargs)

    def passes() -> bool:
        torch._dynamo.reset()
        parts = (CompilerBisector.get_backend(), CompilerBisector.get_subsystem())
        return trials.run(": ".join(filter(None, parts)), NOTHING, nullcontext())

    try:
        with patch.object(torch, "compile", noted), redirect_stdout(io.StringIO()):
            result = CompilerBisector.do_bisect(passes)
    finally:
        torch._dynamo.reset()
    if not is_called:
        return [], NOT_CALLED
    if result is None:
        return [], "The step passes with each backend of torch.compile: its result differs from run to run."
    part = ": ".join(filter(None, (result.backend, result.subsystem)))
    if result.backend == "eager":
        return [CompilerPart(part, None)], "The step fails also when torch.compile hands every op to torch as it is."
    info = f": {' '.join(result.debug_info.split())}" if result.debug_info else ""
    return [CompilerPart(part, result.bisect_number)], f"The step fails from {part} of torch.compile on{info}."
