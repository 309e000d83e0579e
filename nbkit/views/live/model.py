"""WidgetModel is what a widget holds and answers, without a connection to a front end."""

from collections.abc import Mapping
from typing import Any, ClassVar

import traitlets

from nbkit.views.live.pieces import Pieces


class WidgetModel(traitlets.HasTraits):
    """Holds what a front end shows as traits with `sync`, and answers its messages.

    A widget of its own (`LiveWidget`) or one of several (`CompositeWidget`) carries it. `bundle` names the front end.
    """

    bundle: ClassVar[str]

    def static_views(self) -> Mapping[str, str]:
        """Returns text and HTML of the same by MIME type, for where no widget can be shown."""
        raise NotImplementedError

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Answers a message of the front end: here a piece of a trait that its host did not carry."""
        if not hasattr(self, "_pieces"):
            self._pieces = Pieces(self)
        return self._pieces.answer(message)
