"""Names ops as optime does with the torch at hand: that of torch 2.6 leaves the overload out."""

from nbkit.compat.torch_versions import NAMES_OVERLOADS


def timed_name(op):
    return op if NAMES_OVERLOADS else op.rpartition(".")[0]
