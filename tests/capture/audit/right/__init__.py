"""Training steps that are right, though each looks like a mistake that opaudit names."""

from tests.capture.audit.right import gradients, models, optimizers  # noqa: F401
from tests.capture.audit.right.shared import CASES

__all__ = ["CASES"]
