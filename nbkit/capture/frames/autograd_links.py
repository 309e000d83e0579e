"""Links forward and backward: finds the forward op that an autograd node was made for."""

import numpy as np

Integers = np.ndarray


def forward_ops(
    nodes: Integers, copies_slices: np.ndarray, sequences: Integers, forward: Integers, first: int
) -> Integers:
    """Returns the row of the forward op of each autograd node, -1 where the node is older than the recording.

    torch's counter gives every node a number when it is made, and a node is made right before its op is dispatched: the
    op's reading of the counter is one more. So the op of node n is the first whose reading exceeds n. The one kind made
    after its op, on an in-place write through a view, is CopySlices: there it is the last op whose reading does not.
    Source: torch/csrc/autograd/function.h (sequence_nr), torch/csrc/autograd/variable.cpp (rebase_history).

    `sequences` are the readings of the ops in rows `forward`, both in call order; `first` is the reading at the start.
    """
    match = np.where(
        copies_slices, np.searchsorted(sequences, nodes, "right") - 1, np.searchsorted(sequences, nodes, "right")
    )
    valid = (nodes >= first) & (match >= 0) & (match < len(sequences))
    rows = np.full(len(nodes), -1, dtype=np.int64)
    rows[valid] = forward[match[valid]]
    return rows
