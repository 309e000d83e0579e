"""Defines what the rules of a training audit read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from nbkit.findings.dataflow.flow import Flow
from nbkit.step.step import Step


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


class Clip(NamedTuple):
    """Describes a clipping of gradients by norm; `scale` is the loss scale that they still had, null if unknown.

    `given` counts the parameters, and `whose` tells several such sets apart; `is_updated` says whether an optimizer
    updates any of them, and `has_others` that the norm was 0 while other parameters had gradients. `passes` counts the
    backward passes before it. `is_late`: an optimizer had read the gradients already, just as they were,
    and the next backward pass did not add to them.
    """

    step: int
    norm: float  # of the gradients, before
    most: float
    source: str | None
    source_text: str | None
    scale: float | None = None
    given: int = 1
    is_updated: bool = False
    has_others: bool = False
    whose: int = 0
    passes: int = 0
    is_late: bool = False


class Pass(NamedTuple):
    """Describes a backward pass: its ops, and `step` as in ops.

    `is_cleared`: it left gradients, and all were gone when the next pass began, though no optimizer had stepped.
    `creates_graph`: it was backward(create_graph=True).
    """

    ops: range
    step: int
    is_cleared: bool = False
    creates_graph: bool = False


class Closed(NamedTuple):
    """Describes a call of checkpoint(use_reentrant=True) of which no input requires a gradient: its ops, its line."""

    ops: range
    source: str
    text: str


class Schedule(NamedTuple):
    """Describes a scheduler that stepped so many `times` at one go, after each of so many steps of its optimizer.

    `early` says what comes too early by that, with {} where the number of times stands.
    """

    type: str
    early: str
    optimizer: str
    times: int
    steps: int
    source: str | None


class Made(NamedTuple):
    """Describes an optimizer that was made in the recording: its line, and how often it stepped.

    `updated` tells one set of parameters from another. `remembers`: it has averages of earlier gradients, and no other
    optimizer of these parameters took turns with it.
    """

    type: str
    source: str | None
    source_text: str | None
    updated: frozenset[int]
    steps: int = 0
    remembers: bool = True


class Targets(NamedTuple):
    """Describes the targets of a loss of classes: how many, and how many of them are ignore_index.

    `token` is the one that never counts wherever it stands, though it may be no padding: null if there is none;
    `inside` counts where it stands between tokens that count. `is_reduced`: the loss is one number.
    """

    op_id: int
    total: int
    ignored: int
    is_reduced: bool
    token: int | None = None
    inside: int = 0


class Blank(NamedTuple):
    """Describes a ctc_loss of whose `total` labels so many `are_blank`: the number that it takes for the blank."""

    op_id: int
    blank: int
    are_blank: int
    total: int


class Padded(NamedTuple):
    """Describes a lookup of `rows` texts whose padding stands at their ends: so many of `total` tokens are `padding`,
    and `at_end` texts end with it. `is_zero`: its row in the table is 0.
    """

    op_id: int
    rows: int
    at_end: int
    padding: int
    total: int
    is_zero: bool


class Again(NamedTuple):
    """Describes a step of an optimizer on gradients just as its step before had read them."""

    type: str
    step: int
    source: str | None
    source_text: str | None


class Misnamed(NamedTuple):
    """Describes parameters that were to be frozen by an `attribute` that freezes nothing, of themselves or a module."""

    model: str
    module: str
    attribute: str
    names: tuple[str, ...]


class Hooks(NamedTuple):
    """Holds how many hooks a module had at each step of an optimizer."""

    model: str
    module: str
    counts: Sequence[int]


class Average(NamedTuple):
    """Describes an average of a parameter in half precision, with the op that updates it.

    Of its elements so many are `off` the parameter by more than rounding, and so many of these `moved`.
    """

    model: str
    name: str
    dtype: str
    op_id: int
    moved: int
    off: int
    numel: int


class Copy(NamedTuple):
    """Describes two parameters that were equal when the recording began, and are no more; each was trained."""

    model: str
    name: str
    other_model: str
    other_name: str


class History(NamedTuple):
    """Describes the steps that an optimizer did with a parameter, in their order."""

    rates: tuple[float | None, ...]  # learning rates
    gradients: tuple[bool, ...]  # whether it had a gradient


@dataclass(frozen=True)
class Activation:
    """Describes a ReLU-like call in training mode: which units were 0 in every row.

    Units are the last dimension, and dimension 1 in `dead_channels`, which is null of two dimensions.
    """

    op_id: int
    dead_last: np.ndarray | None
    dead_channels: np.ndarray | None
    numel: int


@dataclass(frozen=True)
class Audit:
    """Holds the frames of a recorded training step, and what else was noted of it.

    `texts` has lines of code by source; `modes` says of (model, module, module_call) whether it was in training mode;
    `histories` are by (model, name); `alive` are the tensor_ids with a graph that something held at the end.
    """

    parameters: pd.DataFrame
    ops: pd.DataFrame
    tensors: pd.DataFrame
    modules: pd.DataFrame
    texts: Mapping[str, str]
    modes: Mapping[tuple[str, str, int], bool]
    skips: Sequence[Skip] = ()
    accumulations: Sequence[Accumulation] = ()
    activations: Sequence[Activation] = ()
    inner: frozenset[str] = frozenset()  # models that another one calls without holding them
    steps: int = 0  # optimizer steps that were done
    idle_steps: int = 0  # those of which no parameter of the optimizer had a gradient
    has_steps: bool = False  # optimizers step elsewhere, too: this is a part of what was watched
    optimizers: tuple[str, ...] = ()  # types of those that stepped
    made: Sequence[Made] = ()  # in the order of their first steps
    clips: Sequence[Clip] = ()
    copies: Sequence[Copy] = ()
    histories: Mapping[tuple[str, str], History] = field(default_factory=dict)
    alive: frozenset[int] = frozenset()
    unset_statistics: frozenset[tuple[str, str]] = frozenset()  # (model, module): a batch norm as it was made
    # Ops from one optimizer step to the next, at both of which torch's generator stood at the same place.
    repeated_draws: Sequence[range] = ()
    passes: Sequence[Pass] = ()
    closed: Sequence[Closed] = ()
    schedules: Sequence[Schedule] = ()
    # (model, name) of what was read as autocast had cast it before the last step, and the line of its block.
    stale_casts: Sequence[tuple[str, str]] = ()
    autocast_source: str | None = None
    averages: Sequence[Average] = ()
    targets: Sequence[Targets] = ()
    blanks: Sequence[Blank] = ()
    padded: Sequence[Padded] = ()
    again: Sequence[Again] = ()
    misnamed: Sequence[Misnamed] = ()
    foreign: Sequence[Accumulation] = ()  # to gradients that the step of another optimizer left
    error: str | None = None  # that ended the step
    hooks: Sequence[Hooks] = ()
    bypassed: frozenset[str] = frozenset()  # those that run past the DistributedDataParallel around them

    @cached_property
    def trained(self) -> pd.DataFrame:
        """Returns the parameters, each tensor once."""
        rows = self.parameters
        return rows[(rows["kind"] == "parameter") & rows["tied_with"].isna()].reset_index(drop=True)

    @cached_property
    def trainable(self) -> pd.DataFrame:
        """Returns the parameters that a step of their optimizer was to update."""
        rows = self.trained
        return rows[rows["requires_grad"] & (rows["optimizer_steps"].fillna(0) > 0)].reset_index(drop=True)

    @cached_property
    def step(self) -> Step:
        """Returns which op made, wrote and read what."""
        return Step(self.ops, self.tensors)

    @cached_property
    def flow(self) -> Flow:
        """Returns the dataflow between the ops."""
        return Flow(self.step, self.texts)

    @cached_property
    def has_backward(self) -> bool:
        """Returns whether a gradient was computed."""
        return bool((self.ops["phase"] == "backward").any())

    @cached_property
    def ran_before_step(self) -> bool:
        """Returns whether the recording holds ops of a forward or backward pass before its first optimizer step."""
        return bool(((self.ops["step"] == 0) & self.ops["phase"].isin(["forward", "backward"])).any())

    @cached_property
    def read(self) -> frozenset[tuple[str, str]]:
        """Returns the names of parameters that a forward op read, with their models."""
        forward = self.ops["phase"].isin(["forward", "other"]).to_numpy(dtype=bool)
        named = self.tensors[(self.tensors["role"] == "input") & self.tensors["name"].notna()]
        op_ids = named["op_id"].to_numpy()
        named, op_ids = named[forward[op_ids]], op_ids[forward[op_ids]]
        models = self.ops["model"].to_numpy(object)[op_ids]
        return frozenset(zip(models.tolist(), named["name"].tolist(), strict=True))


def at_line(audit: Audit, source: object) -> str:
    """Returns ' at train.py:7: `z = x.numpy()`' for a sentence; nothing where the line is not known."""
    if not isinstance(source, str):
        return ""
    text = audit.texts.get(source)
    return f" at {source}{f': `{text}`' if text else ''}"


def has_name(audit: Audit, rows: pd.DataFrame) -> np.ndarray:
    """Returns whether each of these parameters was read by a forward op, of its model or outside of all."""
    names = {name for _, name in audit.read}
    return np.array([name in names for name in rows["name"]], dtype=bool)
