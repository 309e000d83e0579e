"""CompositeWidget shows several models in one widget: some hosts, such as marimo, show one at a time."""

from collections.abc import Mapping
from copy import copy
from typing import Any

import traitlets

from nbkit.trace.trace import Trace
from nbkit.views.live.model import WidgetModel
from nbkit.views.live.widget import ShownWidget, code
from nbkit.views.static_html.static_table import static_table
from nbkit.views.static_html.text import summary


class CompositeWidget(ShownWidget):
    """Shows HTML and, below it, models of one trace, one above the other; each front end is there once at most.

    A trait of a model is one of the widget, too, with the model's bundle before its name (`op_table_overview`), and
    its messages say which model they are of.
    """

    _esm = code("composite.js")
    _css = code("composite.css")
    html = traitlets.Unicode().tag(sync=True)
    parts = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(self, trace: Trace, html: str, *models: WidgetModel) -> None:
        # A copy, as display keeps its widgets by their trace: a widget that holds its own would keep it for ever.
        self._trace = trace.copy_with(trace.frames, trace.meta)
        self.models = models
        shared = {
            f"{model.bundle}_{name}": (model, name, trait)
            for model in models
            for name, trait in model.traits(sync=True).items()
        }
        self.add_traits(**{own: copy(trait) for own, (_, _, trait) in shared.items()})
        values = {own: getattr(model, name) for own, (model, name, _) in shared.items()}
        super().__init__(html=html, parts=[model.bundle for model in models], **values)
        self._links = [traitlets.link((model, name), (self, own)) for own, (model, name, _) in shared.items()]
        self.on_msg(self._reply)

    def static_views(self) -> dict[str, str]:
        """Returns text and HTML of the trace."""
        return {"text/plain": summary(self._trace), "text/html": static_table(self._trace)}

    def _reply(self, _: object, message: Mapping[str, Any], buffers: object) -> None:
        for model in self.models:
            if model.bundle == message["part"]:
                self.send({"part": model.bundle, "content": model.answer(message["content"])})
