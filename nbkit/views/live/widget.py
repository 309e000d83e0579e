"""LiveWidget shows one model in a front end of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget

from nbkit.views.live.model import WidgetModel
from nbkit.views.static_html.mimebundle import Bundle, with_static_views

STATIC = Path(__file__).parents[1] / "static"


class LiveWidget(WidgetModel, anywidget.AnyWidget):
    """Connects a model with its front end; a widget derives from its model first, then from this."""

    def __init__(self, *args: Any, **traits: Any) -> None:
        super().__init__(*args, **traits)
        self.on_msg(self._reply)

    def _repr_mimebundle_(self, **options: Any) -> Bundle | None:
        """Returns the widget, and text and HTML of the same where no widget can be shown."""
        return with_static_views(super()._repr_mimebundle_(**options), self.static_views())

    def _reply(self, _: object, message: Mapping[str, Any], buffers: object) -> None:
        self.send(self.answer(message))
