"""LiveWidget shows one model in a front end of its own; ShownWidget is what all widgets bring where they are shown."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import anywidget
import traitlets

from nbkit.views.live.model import WidgetModel
from nbkit.views.live.outputs import show, static_first
from nbkit.views.static_html.front_end import has_live_front_end
from nbkit.views.static_html.mimebundle import Bundle, with_static_views

STATIC = Path(__file__).parents[1] / "static"


def code(name: str) -> str:
    """Reads a file of the bundle, as text: of a Path anywidget ties each widget to the file, and keeps it for ever."""
    return (STATIC / name).read_text(encoding="utf-8")


class ShownWidget(anywidget.AnyWidget):
    """Shows itself below its static view, and as that where no widget can be shown."""

    # The class of its static view, which the front end hides.
    static_class = traitlets.Unicode().tag(sync=True)

    @traitlets.default("static_class")
    def _own_class(self) -> str:
        return f"nbkit-{uuid4().hex}"

    def static_views(self) -> Mapping[str, str]:
        """Returns text and HTML of the same by MIME type."""
        raise NotImplementedError

    def show(self, static: Mapping[str, Any]) -> None:
        """Shows a static view and the widget as outputs of the cell that runs."""
        bundle = super()._repr_mimebundle_()
        if bundle is not None:
            show(self.static_class, static, bundle)

    @property
    def _ipython_display_(self) -> Callable[[], None] | None:
        return (lambda: self.show(self.static_views())) if has_live_front_end() and self.comm is not None else None

    def _display_(self) -> Any:
        """Returns what marimo shows, which asks for it by this name: the static view, and the widget below it."""
        marimo = sys.modules.get("marimo")
        if marimo is None:
            return self
        first = static_first(self.static_class, self.static_views()["text/html"])
        return marimo.vstack([marimo.Html(first), marimo.ui.anywidget(self)], gap=0)

    def _repr_mimebundle_(self, **options: Any) -> Bundle | None:
        """Returns the widget, and text and HTML of the same where no widget can be shown."""
        return with_static_views(super()._repr_mimebundle_(**options), self.static_views())


class LiveWidget(WidgetModel, ShownWidget):
    """Connects a model with its front end; a widget derives from its model first, then from this."""

    def __init__(self, *args: Any, **traits: Any) -> None:
        super().__init__(*args, **traits)
        self.on_msg(self._reply)

    def _reply(self, _: object, message: Mapping[str, Any], buffers: object) -> None:
        self.send(self.answer(message))
