"""Which inputs a result is made of: of an op on lists of tensors, those that stand where it stands."""

from nbkit.capture.replay.copies import tensors_in
from nbkit.capture.replay.reference import Call


def input_numels(call: Call, place: int, count: int) -> list[int]:
    """Numbers of elements of the tensors that the result at a place, one of `count`, is made of."""
    values = [*call.args, *call.kwargs.values()]
    lists = [list(tensors_in(value)) for value in values if isinstance(value, list | tuple)]
    lengths = {len(one) for one in lists if one}
    each = lengths.pop() if len(lengths) == 1 else 0
    if each and count % each == 0:
        lists = [one[place % each : place % each + 1] for one in lists]
    single = [one for value in values if not isinstance(value, list | tuple) for one in tensors_in(value)]
    return [one.numel() for one in (*single, *(one for some in lists for one in some))]
