"""A page with the built alignment table on a stand-in model, whose questions the real kernel code answers."""

import json

from playwright.sync_api import Locator, Page

from nbkit.trace.trace import Trace
from nbkit.views.alignment.widget import AlignmentTable
from nbkit.views.live.widget import STATIC
from tests.browser.diff_page import STAND_IN
from tests.browser.exposed import expose

HTML = "<!doctype html><html lang='en'><title>alignment</title><main id='pairs'></main></html>"


class AlignmentPage:
    """The alignment table of a trace on a page; `table` is its Python side, `sizes` the bytes of each answer."""

    def __init__(self, page: Page, trace: Trace) -> None:
        self.page, self.table, self.sizes = page, AlignmentTable(trace), list[int]()
        page.set_content(HTML)
        expose(page, "askKernel", lambda name, text: self._answer(text))
        expose(page, "saveToKernel", lambda name, trait, value: setattr(self.table, trait, value))
        expose(page, "stateOfKernel", lambda: [["pairs", "selected_row", self.table.selected_row]])
        code = [(STATIC / f"diff_table.{kind}").read_text(encoding="utf-8") for kind in ("js", "css")]
        page.evaluate(STAND_IN, ["pairs", *code, {"overview": self.table.overview, "selected_row": None}])
        page.locator(".nb-count").filter(has_text="rows").wait_for()

    def _answer(self, text: str) -> str:
        answer = json.dumps(self.table.source.answer(json.loads(text)), ensure_ascii=False)
        self.sizes.append(len(answer.encode()))
        return answer

    @property
    def detail(self) -> Locator:
        return self.page.get_by_role("region", name="Selected pair")

    @property
    def selected(self) -> Locator:
        return self.page.locator(".nb-row[aria-selected='true']")

    def cell(self, place: int, name: str) -> Locator:
        """A cell of the row at a place of the list, from 0."""
        return self.page.locator(f".nb-body .nb-row[aria-rowindex='{place + 3}']:visible [data-name='{name}']")

    def count(self) -> Locator:
        return self.page.locator(".nb-count strong")
