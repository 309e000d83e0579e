"""OpTable: the interactive op table of a trace; rows are paged from the kernel, never held in widget state."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import numpy.typing as npt
import traitlets

from nbkit.trace import Trace
from nbkit.views import units
from nbkit.views.mimebundle import Bundle, with_twins
from nbkit.views.names import shown
from nbkit.views.op_source import OpSource
from nbkit.views.static_table import static_table
from nbkit.views.text import summary

STATIC = Path(__file__).parent / "static"


class OpTable(anywidget.AnyWidget):
    """The op table as a widget; `selected_op_id` is the op that is selected, in Python and in the table alike.

    `within` is the label of the ops that the table is limited to (by `show_within`), and a version that is new for
    each set of them; null is all ops, and the table sets it so when its filters are cleared.
    """

    _esm = STATIC / "op_table.js"
    _css = STATIC / "op_table.css"
    overview = traitlets.Dict().tag(sync=True)
    selected_op_id = traitlets.Int(None, allow_none=True).tag(sync=True)
    within = traitlets.Instance(dict, allow_none=True).tag(sync=True)

    def __init__(self, trace: Trace) -> None:
        self.source = OpSource(trace)
        super().__init__(overview=self.source.overview())
        self.on_msg(self._reply)

    def _repr_mimebundle_(self, **options: Any) -> Bundle | None:
        """The widget, and text and HTML of the same where no widget can be shown."""
        trace = self.source.trace
        twins = {"text/plain": summary(trace), "text/html": static_table(trace)}
        return with_twins(super()._repr_mimebundle_(**options), twins)

    def show_within(self, label: str, op_ids: npt.NDArray[np.int64]) -> None:
        """Limit the table to these ops, under a label."""
        self.source.limit_to(op_ids)
        text = f"{shown(label, 80)} ({units.counted(len(op_ids), 'op')})"
        self.within = {"label": text, "version": self.source.version}

    def show_all(self) -> None:
        """Show all ops again; other filters stay."""
        self.within = None

    def _reply(self, _: object, message: Mapping[str, Any], buffers: object) -> None:
        self.send(self.source.answer(message))

    @traitlets.observe("within")
    def _cleared(self, change: Mapping[str, Any]) -> None:
        if change["new"] is None:
            self.source.limit_to(None)

    @traitlets.validate("selected_op_id")
    def _known_op(self, proposal: Mapping[str, Any]) -> int | None:
        op_id: int | None = proposal["value"]
        n_ops = len(self.source.trace.ops)
        if op_id is not None and not 0 <= op_id < n_ops:
            raise traitlets.TraitError(f"There is no op {op_id}; the ids of this trace are 0 to {n_ops - 1}.")
        return op_id
