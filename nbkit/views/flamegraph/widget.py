"""FlameGraph shows a trace as an interactive flame graph, also as the difference to another trace."""

from collections.abc import Mapping
from typing import Any

import traitlets

from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.difference import flame_states
from nbkit.views.flamegraph.held import with_stack_timeline
from nbkit.views.flamegraph.static_view import changes_html, flame_html, flame_text
from nbkit.views.live.model import WidgetModel
from nbkit.views.live.pieces import Ids, ids_in, inline
from nbkit.views.live.widget import LiveWidget, code


class FlameGraphModel(WidgetModel):
    """Holds what the flame graph shows, and what is selected in it."""

    bundle = "flamegraph"
    flame = traitlets.Dict().tag(sync=True, to_json=inline)
    base = traitlets.Instance(dict, allow_none=True).tag(sync=True, to_json=inline)
    difference = traitlets.Instance(dict, allow_none=True).tag(sync=True, to_json=inline)
    selected_op_id = traitlets.Int(None, allow_none=True).tag(sync=True)
    selection = traitlets.Instance(dict, allow_none=True).tag(sync=True)
    selected_range = traitlets.Instance(dict, allow_none=True).tag(sync=True)

    def __init__(self, trace: Trace, base: Trace | None = None) -> None:
        trace = with_stack_timeline(checked_trace(trace))
        base = None if base is None else with_stack_timeline(checked_trace(base, "base"))
        # Copies, as display keeps its widgets by their trace: a widget that holds its own would keep it for ever.
        self._trace = Trace(trace.frames, trace.meta, trace.captured)
        self._base = None if base is None else Trace(base.frames, base.meta)
        super().__init__(**flame_states(trace, base))

    def static_views(self) -> dict[str, str]:
        """Returns the slowest frames as text, and the picture as HTML."""
        return {"text/plain": flame_text(self._trace, self._base), "text/html": self._html()}

    def _html(self) -> str:
        if self._base is None:
            return flame_html(self._trace)
        states = {"flame": self.flame, "base": self.base, "difference": self.difference}
        return changes_html(self._trace, self._base, states)

    def selected_ids(self) -> Ids | None:
        """Returns the op ids inside the selected frame, in call order; None if no frame is selected."""
        return None if self.selection is None else self.known_ids(self.selection)

    def ids_in_range(self) -> Ids | None:
        """Returns the op ids with a part in the selected range of time, in call order; None if none is selected."""
        return None if self.selected_range is None else self.known_ids(self.selected_range)

    def known_ids(self, chosen: Mapping[str, Any]) -> Ids:
        """Returns the op ids of a selection or a range that this flame graph has, in call order."""
        ids = ids_in(chosen)
        known: Ids = ids[(ids >= 0) & (ids < self.flame["count"])]
        return known

    @traitlets.validate("selected_op_id")
    def _known_op(self, proposal: Mapping[str, Any]) -> int | None:
        op_id: int | None = proposal["value"]
        if op_id is not None and not 0 <= op_id < self.flame["count"]:
            raise traitlets.TraitError(f"There is no op {op_id}; this flame graph has {self.flame['count']} ops.")
        return op_id


class FlameGraph(FlameGraphModel, LiveWidget):
    """The flame graph as a widget; with `base` it shows what is slower, faster, added or removed against that trace.

    If both were recorded with repeats (`nbkit.optime(repeats=10)`, `%%optime -r 10`), a frame is slower or faster only
    if its time changed by more than their noise explains; otherwise the widget says that the noise is not known.

    `selected_op_id` is the op whose frame is marked, in Python and in the graph alike. `selection` holds the label and
    the op ids of all that is inside the selected frame, which `selected_ids` gives as an array. `selected_range` is the
    selected range of time, from `from_us` to `to_us`, in microseconds on the axis of `start_us`, with its label and the
    op ids of the calls with a part in it, which `ids_in_range` gives as an array. Setting it to None clears the range.
    """

    _esm = code("flamegraph.js")
    _css = code("flamegraph.css")
