"""Region holds the place where two executions diverge: the last values that agree, and the first that do not."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nbkit.trace.executions.execution import Result

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Piece:
    """Holds a result inside a region and its value; null where it was not kept."""

    result: Result
    value: Array | None


@dataclass(frozen=True)
class Region:
    """Holds what lies between the last results that agree and the first pair that does not.

    `left` and `right` are the values of that pair, the right one brought to the left one's shape where a relation says
    how (where they cannot be, their shapes differ); `local` is the right one computed from the left one's inputs, null
    where it cannot be computed. `left_inputs` and `right_inputs` are the results that the region reads and that agree
    (parameters among them), in the order in which they are read; `left_ops` and `right_ops` are the results made
    inside, in call order, the pair's last. `agreed` has further values that both have, by name on the left: what lies
    near in the dataflow, in case that a side has left out or taken another one.
    """

    left: Array
    right: Array
    local: Array | None = None
    kind: str = "op"  # of the pair, as in Result
    left_inputs: tuple[Piece, ...] = ()
    right_inputs: tuple[Piece, ...] = ()
    left_ops: tuple[Piece, ...] = ()
    right_ops: tuple[Piece, ...] = ()
    agreed: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """Names what a divergence is; `message` says it in a sentence, `explained` is the error left after applying it.

    `explained` is |right - applied(left)| over |right - left|, 2-norms: 0 is a kind that explains all of it. `at` are
    the result_ids of the left and the right one at which it lies, null where the kind does not say.
    """

    name: str
    message: str
    explained: float
    at: tuple[int | None, int | None] = (None, None)
