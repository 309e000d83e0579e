"""A page with a composite widget, statement and parts, on a stand-in model that the real Python side answers."""

import json

from playwright.sync_api import Page

from nbkit.views.live.composite import CompositeWidget
from nbkit.views.live.widget import STATIC
from tests.browser.exposed import expose
from tests.browser.linked_page import STAND_IN

HTML = "<!doctype html><html lang='en'><title>composite</title><main><div id='whole'></div></main></html>"


class CompositePage:
    """A composite widget whose parts hold no binary data, on a page."""

    def __init__(self, page: Page, widget: CompositeWidget) -> None:
        self.page, self.widget = page, widget
        page.set_content(HTML)
        expose(page, "askKernel", self._ask)
        expose(page, "saveToKernel", self._save)
        names = ["html", "parts", *(name for name in widget.keys if name.startswith(tuple(widget.parts)))]
        files = [(STATIC / f"composite.{kind}").read_text(encoding="utf-8") for kind in ("js", "css")]
        page.evaluate(STAND_IN, ["whole", *files, {name: getattr(widget, name) for name in names}])

    def _ask(self, text: str) -> str:
        message = json.loads(text)
        (model,) = (model for model in self.widget.models if model.bundle == message["part"])
        return json.dumps({"part": model.bundle, "content": model.answer(message["content"])})

    def _save(self, _: str, text: str) -> str:
        """Sets what the page saved; what that changed in Python comes back."""
        saved, before = json.loads(text), self._selected()
        for name, value in saved:
            setattr(self.widget, name, value)
        after = self._selected()
        known = before | dict(saved)
        return json.dumps([["whole", name, after[name]] for name in after if after[name] != known[name]])

    def _selected(self) -> dict[str, object]:
        return {name: getattr(self.widget, name) for name in self.widget.keys if "_selected_" in name}
