"""Finds anomaly detection that was left on, by what autograd itself then runs for each gradient."""

import numpy as np

from nbkit.findings.finding import Finding
from nbkit.findings.time.step import TimedStep

# Of autograd's engine: nobody else calls _is_any_true right in one of its nodes.
NODE = "autograd::engine::evaluate_function"
CHECKS = ("isnan", "_is_any_true", "item")
ADVICE = (
    "Switch it off: torch.autograd.set_detect_anomaly(False), or take its `with` block away. To find a NaN, "
    "opcheck names the op where it begins."
)


def anomaly_mode(step: TimedStep) -> list[Finding]:
    """Returns a finding where torch looks for NaN in each gradient, because of torch.autograd.set_detect_anomaly."""
    in_nodes = np.array([str(name).startswith(NODE) for name in np.append(step.names, "")])[step.parent]
    asked = np.flatnonzero(step.named("_is_any_true") & in_nodes)
    if not len(asked):
        return []
    time_us = float(step.total_us[step.named(*CHECKS) & in_nodes].sum())
    message = (
        "Anomaly detection is on: torch keeps the Python stack of each forward op, whose time that makes longer, and "
        f"looks for NaN in {len(asked):,} gradients, which takes {step.share(time_us)}"
    )
    return [step.finding(Finding("anomaly_mode", "warning", message, ADVICE, effect_us=time_us), asked)]
