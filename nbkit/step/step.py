"""Step holds the ops and tensors of a recording, and says which op made, wrote and read what."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import starmap
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from nbkit.step.decode import cells_in, sizes_of

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Call(NamedTuple):
    """Holds an op that tensors go into or come out of, and the rows of `tensors` of both roles."""

    op_id: int
    inputs: list[int]
    outputs: list[int]


class Tensor(NamedTuple):
    """Describes a tensor that an op reads or gives; a row of `tensors`."""

    row: int
    op_id: int
    role: str
    position: int
    tensor_id: int
    memory: int
    dtype: str
    shape: tuple[int, ...]  # -1 where a size is not known
    numel: int
    name: str | None  # of a parameter or buffer


@dataclass(frozen=True, eq=False)
class Step:
    """Holds the frames ops and tensors of one recording; each array has an entry per row of tensors.

    What is derived of them is computed when it is first asked for, so that frames are not to be changed in place.
    """

    ops: pd.DataFrame
    tensors: pd.DataFrame

    @cached_property
    def op_ids(self) -> Ints:
        return self.tensors["op_id"].to_numpy(np.int64)

    @cached_property
    def tensor_ids(self) -> Ints:
        return self.tensors["tensor_id"].to_numpy(np.int64)

    @cached_property
    def is_output(self) -> Flags:
        return (self.tensors["role"] == "output").to_numpy(bool)

    @cached_property
    def positions(self) -> Ints:
        return self.tensors["position"].to_numpy(np.int64)

    @cached_property
    def requires_grad(self) -> Flags:
        return self.tensors["requires_grad"].to_numpy(bool)

    @cached_property
    def sizes(self) -> Ints:
        """Returns the bytes of each tensor; 0 where they are not known."""
        return self.tensors["size_bytes"].to_numpy(np.int64, na_value=0)

    @cached_property
    def memory(self) -> Ints:
        """Returns the number of each tensor's memory, shared by views.

        A tensor without a storage of its own (a sparse one) has a negative number, which no other tensor has.
        """
        storages = self.tensors["storage_id"].to_numpy(np.int64, na_value=-1)
        return np.where(storages < 0, -1 - self.tensor_ids, storages)

    @cached_property
    def is_written(self) -> Flags:
        """Returns which rows are outputs that their op wrote; a view, a new tensor on an input's memory, is not."""
        is_alias, was_input = self._is_read(self.memory), self._is_read(self.tensor_ids)
        return self.is_output & (was_input | ~is_alias)

    @cached_property
    def makers(self) -> Ints:
        """Returns the row in which the last earlier op gave that tensor; -1 where it was there before.

        An in-place op reads what the op before it gave, and is itself the maker for what follows.
        """
        return self._last_before(self.is_output, self.tensor_ids)

    @cached_property
    def writers(self) -> Ints:
        """Returns the row in which the last earlier op wrote to that memory, through whatever view; -1 for none."""
        return self._last_before(self.is_written, self.memory)

    @cached_property
    def sources(self) -> Ints:
        """Returns the row of the maker, or of the writer where that is later; -1 where both are none."""
        op_ids = np.append(self.op_ids, -1)
        return np.where(op_ids[self.writers] > op_ids[self.makers], self.writers, self.makers)

    @cached_property
    def readers(self) -> dict[int, list[int]]:
        """Returns the rows of inputs by the row of their maker."""
        found: dict[int, list[int]] = defaultdict(list)
        rows = np.flatnonzero(~self.is_output & (self.makers >= 0))
        for row, maker in zip(rows.tolist(), self.makers[rows].tolist(), strict=True):
            found[maker].append(row)
        return found

    def records(self) -> list[Tensor]:
        """Returns the rows of tensors one by one."""
        columns = {name: cells_in(self.tensors[name]) for name in Tensor._fields if name in self.tensors}
        columns |= {"row": [*range(len(self.tensors))], "memory": self.memory.tolist()}
        columns["shape"] = list(map(sizes_of, columns["shape"]))
        return [*starmap(Tensor, zip(*map(columns.__getitem__, Tensor._fields), strict=True))]

    def calls(self) -> Iterator[Call]:
        """Yields the ops with tensors, in call order."""
        order = np.lexsort((self.is_output, self.op_ids))
        op_ids, rows = self.op_ids[order], order.tolist()
        starts = np.flatnonzero(np.diff(op_ids, prepend=-1))
        ends = np.append(starts, len(order))[1:]
        made_before = np.append(0, np.cumsum(self.is_output[order]))
        middles = ends - (made_before[ends] - made_before[starts])
        columns = op_ids[starts], starts, middles, ends
        for op_id, start, middle, end in zip(*(column.tolist() for column in columns), strict=True):
            yield Call(op_id, rows[start:middle], rows[middle:end])

    def rows(self, op_id: int) -> Ints:
        """Returns the rows of one op; none where no tensor goes into it or comes out of it."""
        return self._order[slice(*np.searchsorted(self.op_ids, [op_id, op_id + 1], sorter=self._order))]

    def inputs_of(self, op_id: int) -> Ints:
        """Returns the rows that one op reads."""
        rows = self.rows(op_id)
        return rows[~self.is_output[rows]]

    @cached_property
    def _order(self) -> Ints:
        """Returns the rows in call order: as recorded they stand in it."""
        return np.argsort(self.op_ids, kind="stable")

    @property
    def _span(self) -> int:
        """Returns a number above every op_id, by which a key and an op_id become one number."""
        return int(self.op_ids.max(initial=0)) + 1

    def _is_read(self, key: Ints) -> Flags:
        """Returns which rows have the key of an input of their op."""
        pairs = key * self._span + self.op_ids
        return np.asarray(pd.Index(pairs).isin(pairs[~self.is_output]))  # by hash, where numpy sorts

    def _last_before(self, is_made: Flags, key: Ints) -> Ints:
        """Returns for each row the last of those made with its key by an earlier op; -1 where there is none."""
        pairs = key * self._span + self.op_ids
        made = np.flatnonzero(is_made)
        made = made[np.argsort(pairs[made], kind="stable")]
        found = np.append(made, -1)[np.searchsorted(pairs[made], pairs) - 1]
        return np.where((found >= 0) & (key[found] == key), found, -1)
