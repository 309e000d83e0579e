"""write_page: the report of one trace, by the name it had first."""

from pathlib import Path

from nbkit.trace import Trace
from nbkit.views.report.opreport import opreport


def write_page(trace: Trace, path: str | Path, base: Trace | None = None) -> Path:
    """Write the report of one trace, as `opreport(trace, path=path, base=base)` does; its path."""
    return opreport(trace, path=path, base=base)
