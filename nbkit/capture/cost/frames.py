"""Builds the frames of a step's cost from what was noted while it ran."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.capture.cost.op_costs import OpCost, OpCosts
from nbkit.capture.cost.saved_tensors import Saved
from nbkit.capture.cost.storages import BUFFER, PARAMETER, Storages
from nbkit.capture.frames.tensor_rows import sizes_text
from nbkit.schema import COSTS, MEMORY, SAVED, STORAGES, TEXT


def costs_frame(counted: OpCosts, ops: pd.DataFrame, op_ids: np.ndarray) -> pd.DataFrame:
    """Returns the frame `costs`; rows of ops that the filters left out are dropped."""
    ids = op_ids[np.array(counted.slots, np.int64)]
    noted = pd.DataFrame(counted.costs, columns=OpCost._fields)[ids >= 0]
    of_ops = ops.iloc[ids[ids >= 0]]
    flops = noted["flops"].astype("Int64")
    moved = (noted["read_bytes"] + noted["written_bytes"]).to_numpy(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        intensity = flops.astype("Float64").to_numpy(np.float64, na_value=np.nan) / moved
    return COSTS.frame(
        {
            "op_id": ids[ids >= 0],
            **{name: of_ops[name].array for name in ("op", "model", "module", "phase", "device")},
            "dtype": pd.array([_dtype_name(dtype) for dtype in noted["dtype"]], dtype=TEXT),
            "flops": flops.array,
            "elementwise_flops": noted["elementwise_flops"].astype("Int64").array,
            "read_bytes": noted["read_bytes"].to_numpy(np.int64),
            "written_bytes": noted["written_bytes"].to_numpy(np.int64),
            "intensity": np.where(np.isfinite(intensity), intensity, np.nan),
            "communication_bytes": noted["communication_bytes"].astype("Int64").array,
        }
    )


def _dtype_name(dtype: Any) -> str | None:
    return None if dtype is None else str(dtype).removeprefix("torch.")


class _Owners:
    """Finds the op of a slot of the recording."""

    def __init__(self, ops: pd.DataFrame, op_ids: np.ndarray) -> None:
        self.ops, self.op_ids = ops, op_ids

    def ids(self, slots: npt.ArrayLike) -> np.ndarray:
        """Returns the op_id of each slot, -1 where there is none."""
        places = np.asarray(slots, dtype=np.int64).reshape(-1)
        is_known = (places >= 0) & (places < len(self.op_ids))
        ids = self.op_ids[np.where(is_known, places, -1)] if len(self.op_ids) else np.full(len(places), -1)
        found: np.ndarray = np.where(is_known, ids, -1)
        return found

    def last_before(self, slots: npt.ArrayLike) -> np.ndarray:
        """Returns the op_id of each slot, and where it has none that of the nearest one before it."""
        filled = pd.Series(self.op_ids).where(lambda ids: ids >= 0).ffill().fillna(-1).to_numpy(np.int64)
        return _Owners(self.ops, filled).ids(np.minimum(slots, len(filled) - 1))

    def texts(self, ids: np.ndarray, name: str) -> Any:
        """Returns a column of the ops, null where the id is -1."""
        if not len(self.ops):
            return pd.array([None] * len(ids), dtype=TEXT)
        return self.ops[name].iloc[np.maximum(ids, 0)].where(ids >= 0).array


def _nullable(ids: np.ndarray) -> Any:
    return pd.Series(ids, dtype="Int64").mask(ids < 0).array


def memory_frames(storages: Storages, ops: pd.DataFrame, op_ids: np.ndarray) -> dict[str, pd.DataFrame]:
    """Returns the frames `storages` and `memory`."""
    owners, every = _Owners(ops, op_ids), storages.all
    made = owners.ids([held.made for held in every])
    freed = owners.last_before([-1 if held.freed is None else held.freed - 1 for held in every])
    held_frame = STORAGES.frame(
        {
            "allocation_id": np.arange(len(every)),
            "kind": pd.array([held.kind for held in every], dtype=TEXT),
            "size_bytes": np.array([held.nbytes for held in every], np.int64),
            "device": pd.array([held.device for held in every], dtype=TEXT),
            "op_id": _nullable(made),
            **{name: owners.texts(made, name) for name in ("op", "module", "phase")},
            "freed_op_id": _nullable(freed),
        }
    )
    return {"storages": held_frame, "memory": _memory(storages, owners, held_frame)}


def _memory(storages: Storages, owners: _Owners, held: pd.DataFrame) -> pd.DataFrame:
    # What was there before comes first, whenever the step met it.
    events = np.array(storages.events, np.int64).reshape(-1, 3)
    events = events[np.argsort(events[:, 0] >= 0, kind="stable")]
    events = events[[storages.all[number].nbytes > 0 for number in events[:, 1]]]
    # A release is told by the op that comes next.
    ids = owners.last_before(events[:, 0] - (events[:, 2] < 0))
    delta = held["size_bytes"].to_numpy()[events[:, 1]] * events[:, 2]
    devices = held["device"].iloc[events[:, 1]].reset_index(drop=True)
    starts = owners.ops["start_us"].to_numpy() if len(owners.ops) else np.zeros(1)
    return MEMORY.frame(
        {
            "op_id": _nullable(ids),
            "time_us": np.where(ids >= 0, starts[np.maximum(ids, 0)], 0.0),
            "device": devices.array,
            "delta_bytes": delta,
            "allocated_bytes": pd.Series(delta).groupby(devices).cumsum().astype("Int64").array,
            "allocation_id": pd.Series(events[:, 1], dtype="Int64").array,
        }
    )


def saved_frame(rows: Sequence[Saved], ops: pd.DataFrame, op_ids: np.ndarray) -> pd.DataFrame:
    """Returns the frame `saved`."""
    owners = _Owners(ops, op_ids)
    savers, producers = (owners.ids(slots) for slots in ([of.saver for of in rows], [of.storage.made for of in rows]))
    stays = np.array([of.is_parameter or of.storage.kind in (PARAMETER, BUFFER) for of in rows], bool)
    numbers = np.array([of.storage.number for of in rows], np.int64)
    sizes = np.array([of.storage.nbytes for of in rows], np.int64)
    is_new = ~stays & ~pd.Series(numbers).duplicated().to_numpy(bool)
    return SAVED.frame(
        {
            "saver_op_id": _nullable(savers),
            "saver_module": owners.texts(savers, "module"),
            "producer_op_id": _nullable(producers),
            "producer_op": owners.texts(producers, "op"),
            "producer_module": owners.texts(producers, "module"),
            "allocation_id": numbers,
            "dtype": pd.array([_dtype_name(of.dtype) for of in rows], dtype=TEXT),
            "shape": pd.array([sizes_text(of.shape) for of in rows], dtype=TEXT),
            "view_bytes": np.array([of.view_bytes for of in rows], np.int64),
            "storage_bytes": sizes,
            "new_bytes": np.where(is_new, sizes, 0),
            "is_parameter": stays,
        }
    )
