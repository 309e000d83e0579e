"""Makes what Jupyter gets of a widget: its live view, and static views that need none."""

from collections.abc import Mapping
from typing import Any

from nbkit.views.static_html.front_end import is_headless

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
Bundle = tuple[dict[str, Any], dict[str, Any]]


def with_static_views(bundle: Bundle | None, fallbacks: Mapping[str, str]) -> Bundle | None:
    """Adds `fallbacks` by MIME type to the widget's own data and metadata; null where the widget has no view.

    In a notebook that runs headless the fallbacks are all: nbconvert drops them for a view whose state it has stored.
    """
    if bundle is None:
        return None
    data, metadata = bundle
    shown = {name: value for name, value in data.items() if name != WIDGET_VIEW or not is_headless()}
    return {**shown, **fallbacks}, metadata
