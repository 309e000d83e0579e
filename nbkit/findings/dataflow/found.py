"""Found is what a rule of the dataflow says of one op."""

from typing import Any, NamedTuple

from nbkit.findings.dataflow.flow import Op
from nbkit.findings.finding import Severity


class Found(NamedTuple):
    """Holds what a rule says of one op, before equal ones are put together."""

    rule: str
    severity: Severity
    message: str
    advice: str
    op: Op
    evidence: dict[str, Any]
