"""Right training steps of families and ways to train that no test has: what nbkit says of them has to be nothing."""

from bench.right import distributed, families, models, objectives  # noqa: F401
from bench.right.registry import STEPS

__all__ = ["STEPS"]
