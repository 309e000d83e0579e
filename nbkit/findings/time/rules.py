"""Runs all rules of where a timed step could save time."""

from collections.abc import Callable, Mapping

import pandas as pd

from nbkit.findings.finding import Finding, findings_frame, line_texts
from nbkit.findings.time.anomaly_mode import anomaly_mode
from nbkit.findings.time.attention import attention
from nbkit.findings.time.cases import Measure
from nbkit.findings.time.copies import copies
from nbkit.findings.time.line_loops import line_loops
from nbkit.findings.time.losses import losses
from nbkit.findings.time.norms import norms
from nbkit.findings.time.optimizer import single_tensor_optimizers
from nbkit.findings.time.outside_ops import data_loading, python_code, silence
from nbkit.findings.time.python_loop import module_loops
from nbkit.findings.time.scalar_reads import scalar_reads
from nbkit.findings.time.step import Forwards, TimedStep
from nbkit.findings.time.subnormals import Look, subnormals

RULES: tuple[Callable[[TimedStep], list[Finding]], ...] = (
    data_loading,
    python_code,
    silence,
    scalar_reads,
    copies,
    attention,
    norms,
    losses,
    module_loops,
    line_loops,
    single_tensor_optimizers,
    anomaly_mode,
)


def time_findings(
    frames: Mapping[str, pd.DataFrame],
    measure: Measure | None = None,
    *,
    is_slowed: bool = False,
    forwards: Forwards | None = None,
    look: Look | None = None,
) -> pd.DataFrame:
    """Returns what takes time of a step that could be saved, in the order of its ops, from `ops` and `lines`.

    `measure` runs what could take the place of ops: what saves little is then no finding. `is_slowed` says that others
    recorded the step, whose times are then not told. `look` looks at the state of optimizers.
    """
    texts = line_texts(frames.get("lines"))
    step = TimedStep(frames["ops"], texts, measure=measure, is_slowed=is_slowed, forwards=forwards or {})
    found = [finding for rule in RULES for finding in rule(step)] if len(step.ops) > 1 else []
    found += subnormals(step, look) if look is not None else []
    return findings_frame(sorted(found, key=lambda finding: -1 if finding.op_id is None else finding.op_id))
