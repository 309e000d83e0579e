"""What Jupyter gets of a widget: its live view with twins that need none."""

from collections.abc import Mapping
from typing import Any

Bundle = tuple[dict[str, Any], dict[str, Any]]


def with_twins(bundle: Bundle | None, twins: Mapping[str, str]) -> Bundle | None:
    """The widget's own data and metadata with `twins` by MIME type; null where the widget has no view to show."""
    if bundle is None:
        return None
    data, metadata = bundle
    return {**data, **twins}, metadata
