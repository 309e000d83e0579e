"""OpTable: the interactive op table of a trace; rows are paged from the kernel, never held in widget state."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from nbkit.trace import Trace
from nbkit.views.op_source import OpSource

STATIC = Path(__file__).parent / "static"


class OpTable(anywidget.AnyWidget):
    """The op table as a widget; `selected_op_id` is the op that is selected, in Python and in the table alike."""

    _esm = STATIC / "op_table.js"
    _css = STATIC / "op_table.css"
    overview = traitlets.Dict().tag(sync=True)
    selected_op_id = traitlets.Int(None, allow_none=True).tag(sync=True)

    def __init__(self, trace: Trace) -> None:
        self.source = OpSource(trace)
        super().__init__(overview=self.source.overview())
        self.on_msg(self._reply)

    def _reply(self, _: object, message: Mapping[str, Any], buffers: object) -> None:
        self.send(self.source.answer(message))

    @traitlets.validate("selected_op_id")
    def _known_op(self, proposal: Mapping[str, Any]) -> int | None:
        op_id: int | None = proposal["value"]
        n_ops = len(self.source.trace.ops)
        if op_id is not None and not 0 <= op_id < n_ops:
            raise traitlets.TraitError(f"There is no op {op_id}; the ids of this trace are 0 to {n_ops - 1}.")
        return op_id
