"""Defines what the rules of a training audit read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Skip:
    """Describes a step that a GradScaler skipped; `step` as in ops."""

    step: int
    optimizer: str
    scale: float | None


@dataclass(frozen=True)
class Accumulation:
    """Describes how a backward pass added to a gradient that was there before, and a step used the sum.

    `is_earlier`: what was there came from before the recording, so that it may have been no step's.
    """

    model: str
    name: str
    op_id: int
    is_earlier: bool


@dataclass(frozen=True)
class Audit:
    """Holds the frames of a recorded training step, and what else was noted of it.

    `texts` has lines of code by source; `modes` says of (model, module, module_call) whether it was in training mode.
    """

    parameters: pd.DataFrame
    ops: pd.DataFrame
    tensors: pd.DataFrame
    modules: pd.DataFrame
    texts: Mapping[str, str]
    modes: Mapping[tuple[str, str, int], bool]
    skips: Sequence[Skip] = ()
    accumulations: Sequence[Accumulation] = ()
    inner: frozenset[str] = frozenset()  # models that another one calls without holding them
    steps: int = 0  # optimizer steps that were done
    idle_steps: int = 0  # those of which no parameter of the optimizer had a gradient

    @cached_property
    def trained(self) -> pd.DataFrame:
        """Returns the parameters, each tensor once."""
        rows = self.parameters
        return rows[(rows["kind"] == "parameter") & rows["tied_with"].isna()].reset_index(drop=True)

    @cached_property
    def has_backward(self) -> bool:
        """Returns whether a gradient was computed."""
        return bool((self.ops["phase"] == "backward").any())

    @cached_property
    def read(self) -> frozenset[tuple[str, str]]:
        """Returns the names of parameters that a forward op read, with their models."""
        forward = self.ops["phase"].isin(["forward", "other"]).to_numpy(dtype=bool)
        named = self.tensors[(self.tensors["role"] == "input") & self.tensors["name"].notna()]
        op_ids = named["op_id"].to_numpy()
        named, op_ids = named[forward[op_ids]], op_ids[forward[op_ids]]
        models = self.ops["model"].to_numpy(object)[op_ids]
        return frozenset(zip(models.tolist(), named["name"].tolist(), strict=True))


def has_name(audit: Audit, rows: pd.DataFrame) -> np.ndarray:
    """Returns whether each of these parameters was read by a forward op, of its model or outside of all."""
    names = {name for _, name in audit.read}
    return np.array([name in names for name in rows["name"]], dtype=bool)
