"""LiveFigure: a plotly figure with a static view, for pages and viewers that do not draw plotly's own data."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from plotly.graph_objects import Figure as PlotlyFigure

from nbkit.errors import OptionError
from nbkit.views.static_html.figure_svg import figure_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class LiveFigure(PlotlyFigure):  # type: ignore[misc]  # plotly has no types
    """The figure; as the value of a cell it brings its static view as SVG beside what plotly's renderer makes of it."""

    # A copy that plotly makes of a figure has its data alone.
    _draw: "Callable[[], Figure] | None" = None
    # Plotly's loads its code from a CDN, and would be preferred to the static view.
    _repr_html_ = None

    def with_static_view(self, draw: "Callable[[], Figure]") -> Self:
        """Returns the figure itself, for which `draw` makes the static one when it is shown."""
        self._draw = draw
        return self

    def static(self) -> "Figure":
        """Returns the same picture as a figure of matplotlib, for papers. Raises OptionError for a copy of a figure."""
        if self._draw is None:
            raise OptionError("This is a copy of nbkit's figure, which has no static view; plot it again.")
        return self._draw()

    @property
    def _ipython_display_(self) -> Callable[[], None] | None:
        """Shows the figure as plotly does, without a static view; nothing where its renderer fills cells."""
        window: Callable[[], None] = super()._ipython_display_
        return None if super()._repr_mimebundle_() else window

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> dict[str, Any]:
        live: dict[str, Any] = super()._repr_mimebundle_(*args, **options)
        if self._draw is None:
            return live
        return {
            "image/svg+xml": figure_svg(self._draw()),
            "text/plain": str(self.layout.title.text).replace("<br>", ": "),
            **live,
        }
