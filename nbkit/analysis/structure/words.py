"""Lists the kinds of ops (`nbkit.ops.kinds`) that structure is recognized from."""

from nbkit.ops.kinds import GRADIENT, PASSING

# What hands values on: their form or scale changes, or a mask or a dropout takes some.
TRANSPARENT = PASSING | {"scale", "dropout", "where", "isnan"}
# Of several things that these read, the last is what they hand on.
LAST_IS_VALUE = frozenset({"where"})
PARTS = frozenset({"slice", "split", "getitem", "indexselect"})
LOSSES = frozenset({"loss", "mseloss", "l1loss", "smoothl1loss", "huberloss", "binarycrossentropy", "ctcloss", "kldiv"})
COLLECTIVES = {"all_reduce", "reduce_to_one", "broadcast_from_one", "all_gather", "reduce_scatter", "all_to_all"}
COMMUNICATION = frozenset({*COLLECTIVES, "send", "receive"})
# Ops that read nothing and make a constant; another that reads nothing may receive an activation.
MAKERS = frozenset({"constant", "range", "eye", "empty", "scalartensor"})


def is_gradient(kind: str) -> bool:
    """Returns whether an op of this kind computes gradients."""
    return kind.endswith(GRADIENT)


def without_gradient(kind: str) -> str:
    """Returns the kind of the op whose gradient an op of this kind computes."""
    return kind.removesuffix(GRADIENT)
