"""Faults as they happen when a model is ported, each planted in one place of a pair that was right."""

from tests.align_cases.faults import attention, feed_forward, norms, positions, weights
from tests.align_cases.faults.fault import FAULTS, KINDS, Fault

__all__ = ["FAULTS", "KINDS", "Fault", "attention", "feed_forward", "norms", "positions", "weights"]
