"""Chooses the modules to checkpoint by mixed-integer linear programming (scipy's milp)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nbkit.capture.cost.fits.candidates import Candidate, Timeline
from nbkit.capture.cost.what_if.checkpointing import holders
from nbkit.errors import OptionError

SECONDS = 10.0  # for one solution
SLACK = 1e-6  # of a solution that is taken for the best one


class Choice:
    """Solves for the cheapest set of candidates that keeps a step within a memory, and for the smallest peak.

    `is_proven` tells whether all solutions so far are the best ones of the linear model.
    """

    def __init__(self, found: Sequence[Candidate], memory: Timeline) -> None:
        self.memory = memory
        self.flops = np.array([each.flops for each in found], float)
        self.moved = np.array([each.moved_bytes for each in found], float)
        self.nesting = _nesting([each.path for each in found])
        self.refused: list[np.ndarray] = []
        self.is_proven = True

    def refuse(self, chosen: np.ndarray) -> None:
        """Leaves a set out of all solutions to come."""
        self.refused.append(chosen)

    def cheapest(self, limit_bytes: int) -> np.ndarray | None:
        """Returns the set (N,) that adds the fewest FLOPs, of equal ones the one that moves the fewest bytes, and keeps
        the linear model within the limit; None if there is none.
        """
        if limit_bytes <= 0:
            return None
        is_over = self.memory.held_bytes > limit_bytes
        needed = (self.memory.held_bytes[is_over] - limit_bytes) / limit_bytes
        rows = [(self.memory.freed_bytes[is_over] / limit_bytes, needed, np.inf), *self._rules()]
        flops = self.flops / max(self.flops.max(initial=0), 1)
        best = self._solved(flops, rows)
        if best is None:
            return None
        rows.append((flops[None], -np.inf, flops @ best + SLACK))
        of_equal = self._solved(self.moved / max(self.moved.max(initial=0), 1), rows)
        return best if of_equal is None or self.flops @ of_equal > self.flops @ best else of_equal

    def smallest(self) -> np.ndarray | None:
        """Returns the set (N,) with the smallest peak in the linear model; None if all are refused."""
        held, freed, count = self.memory.held_bytes, self.memory.freed_bytes, len(self.flops)
        scale = max(float(held.max(initial=0)), 1.0)
        # One more unknown: the peak, above the memory of each region.
        rows: list[Any] = [(np.hstack([freed / scale, np.ones((len(held), 1))]), held / scale, np.inf)]
        rows += [(np.hstack([of, np.zeros((len(of), 1))]), low, high) for of, low, high in self._rules()]
        solution = self._solved(np.concatenate([np.zeros(count), [1.0]]), rows, free=1)
        return None if solution is None else solution[:count]

    def _rules(self) -> list[Any]:
        rows: list[Any] = [(self.nesting, -np.inf, 1.0)] if len(self.nesting) else []
        # One candidate at least is chosen otherwise than in each of these.
        return rows + [((1.0 - 2 * chosen)[None], 1.0 - chosen.sum(), np.inf) for chosen in self.refused]

    def _solved(self, costs: np.ndarray, rows: Sequence[Any], free: int = 0) -> np.ndarray | None:
        optimize = _scipy()
        is_whole = np.ones(len(costs))
        upper = np.ones(len(costs))
        if free:
            is_whole[-free:], upper[-free:] = 0, np.inf
        result = optimize.milp(
            costs,
            integrality=is_whole,
            bounds=optimize.Bounds(0, upper),
            constraints=[optimize.LinearConstraint(*row) for row in rows if len(row[0])],
            options={"time_limit": SECONDS, "mip_rel_gap": 0.0},
        )
        self.is_proven &= result.status in (0, 2)
        if result.x is None:
            return None
        solution: np.ndarray = np.where(is_whole > 0, np.round(result.x), result.x)
        return solution


def _nesting(paths: Sequence[str]) -> np.ndarray:
    """Returns a row (N,) for each path that holders of it stand in: of them and it one may be chosen."""
    numbers = {path: number for number, path in enumerate(paths)}
    rows = []
    for path in paths:
        above = [numbers[holder] for holder in holders(path) if holder in numbers]
        if above:
            row = np.zeros(len(paths))
            row[[*above, numbers[path]]] = 1
            rows.append(row)
    return np.array(rows).reshape(len(rows), len(paths))


def _scipy() -> Any:
    try:
        from scipy import optimize
    except ImportError as error:
        raise OptionError(
            "fits() chooses the modules to checkpoint with scipy, which is not installed; install nbkit-torch[solver]."
        ) from error
    return optimize
