"""Correct models that nbkit has not been made with: what it says of them has to be nothing."""

from bench.families.by_hand import BY_HAND
from bench.families.transformers_models import TRANSFORMERS

FAMILIES = {**TRANSFORMERS, **BY_HAND}
