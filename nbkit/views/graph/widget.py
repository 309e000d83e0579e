"""GraphView shows the interactive graph of a trace, folded to what a person can read."""

from collections.abc import Mapping
from typing import Any

import traitlets

from nbkit.graphs.overlay import By, Colored, How
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.graph.data import graph_data
from nbkit.views.live.model import WidgetModel
from nbkit.views.live.pieces import Ids, ids_in, inline
from nbkit.views.live.widget import LiveWidget, code
from nbkit.views.static_html.static_table import static_table
from nbkit.views.static_html.text import summary


class GraphModel(WidgetModel):
    """Holds what the graph shows, and what is selected in it."""

    bundle = "graph"
    graph = traitlets.Bytes().tag(sync=True, to_json=inline)
    selected_node_id = traitlets.Int(None, allow_none=True).tag(sync=True)
    selected_part_id = traitlets.Int(None, allow_none=True).tag(sync=True)
    selected_op_id = traitlets.Int(None, allow_none=True).tag(sync=True)
    selection = traitlets.Instance(dict, allow_none=True).tag(sync=True)

    def __init__(self, trace: Trace) -> None:
        # A copy, as display keeps its widgets by their trace: a widget that holds its own would keep it for ever.
        self._trace = Trace(checked_trace(trace).frames, trace.meta)
        super().__init__(graph=graph_data(trace))

    def static_views(self) -> dict[str, str]:
        """Returns the summary of the trace as text and as HTML."""
        return {"text/plain": summary(self._trace), "text/html": static_table(self._trace)}

    def selected_ids(self) -> Ids | None:
        """Returns the op ids in the selected part, in call order; None if no part is selected."""
        if self.selection is None:
            return None
        return ids_in(self.selection)

    @traitlets.validate("selected_node_id", "selected_part_id", "selected_op_id")
    def _known(self, proposal: Mapping[str, Any]) -> int | None:
        row: int | None = proposal["value"]
        name = proposal["trait"].name.removeprefix("selected_").removesuffix("_id")
        frame = self._trace.frames.get(f"{name}s")
        count = 0 if frame is None else len(frame)
        if row is not None and not 0 <= row < count:
            raise traitlets.TraitError(f"There is no {name} {row}; this trace has {count} {name}s.")
        return row


class GraphView(GraphModel, LiveWidget):
    """The graphs of a trace as a widget: parts that open, down to single ops, with the tensors between them.

    What is selected is `selected_node_id` or `selected_part_id`, in Python and in the picture alike; of a graph of a
    recorded step also `selected_op_id`, the op that the node stands for. `selection` holds what the selected part is
    called, its module, and the ids of the ops in it, which `selected_ids` gives as an array.

    Of `opgraph(a, against=b)` both graphs stand side by side: what is selected in one is shown and selected in the
    other, and what only one of them has, or has in another shape or dtype, is marked in both.
    """

    _esm = code("graph.js")
    _css = code("graph.css")

    def color_by(
        self,
        frame: Colored | None,
        column: str | None = None,
        *,
        how: How | None = None,
        by: By | None = None,
    ) -> "GraphView":
        """Colors the boxes by a column of any frame, in place, as `Trace.color_by` does; None takes that away.

        Returns the widget itself. Raises OptionError.
        """
        self._trace = self._trace.color_by(frame, column, how=how, by=by)
        self.graph = graph_data(self._trace)
        return self
