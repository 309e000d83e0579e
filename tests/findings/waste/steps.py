"""Records steps for the rules of waste, and gives what opaudit finds in them."""

import nbkit


def found(step):
    """Rule and severity of each finding of a step."""
    with nbkit.opaudit() as trace:
        step()
    return list(zip(trace.findings["rule"], trace.findings["severity"], strict=True))


def only(step):
    """The one finding of a step."""
    with nbkit.opaudit() as trace:
        step()
    [finding] = trace.findings.itertuples()
    return finding
