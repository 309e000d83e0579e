"""A page with the built op table on a stand-in model, whose questions the real kernel code answers."""

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page

from nbkit.trace.trace import Trace
from nbkit.views.op_table.widget import OpTable
from tests.browser.exposed import expose

STATIC = Path(__file__).parents[2] / "nbkit" / "views" / "static"
HTML = "<!doctype html><html lang='en'><title>op table</title><main id='host'></main></html>"
# The stand-in has what the module uses of an anywidget model: get, set, on, off, save_changes, send.
STAND_IN = """async ([source, css, state]) => {
  document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
  const listeners = {};
  const fire = (name, value) => (listeners[name] ?? []).forEach((listener) => listener(value));
  const model = {
    get: (name) => state[name],
    set: (name, value) => { if (state[name] !== value) { state[name] = value; fire(`change:${name}`, value); } },
    on: (name, listener) => (listeners[name] ??= []).push(listener),
    off: (name, listener) => { listeners[name] = (listeners[name] ?? []).filter((other) => other !== listener); },
    save_changes: () => window.saveToKernel(state.selected_op_id),
    send: async (message) => {
      const answer = await window.askKernel(JSON.stringify(message));
      if (answer) fire("msg:custom", JSON.parse(answer));
    },
  };
  const blob = new Blob([source], { type: "text/javascript" });
  const module = await import(URL.createObjectURL(blob));
  window.model = model;
  window.receive = (answer) => fire("msg:custom", JSON.parse(answer));
  window.listenerCount = () => Object.values(listeners).flat().length;
  window.cleanUp = await module.default.render({ model, el: document.getElementById("host") });
}"""


class TablePage:
    """The op table of a trace on a page; `table` is the widget's Python side, `sizes` the bytes of each answer."""

    def __init__(self, page: Page, trace: Trace) -> None:
        self.page = page
        self.table = OpTable(trace)
        self.sizes: list[int] = []
        self.is_kernel_alive = True
        self.unanswered: list[str] = []
        page.set_content(HTML)
        expose(page, "askKernel", self._answer)
        expose(page, "saveToKernel", lambda op_id: setattr(self.table, "selected_op_id", op_id))
        state = {"overview": self.table.overview, "selected_op_id": self.table.selected_op_id}
        page.evaluate(STAND_IN, [_static("op_table.js"), _static("op_table.css"), state])
        page.locator(".nb-count").filter(has_text="ops").wait_for()

    def _answer(self, text: str) -> str | None:
        if not self.is_kernel_alive:
            self.unanswered.append(text)
            return None
        answer = json.dumps(self.table.source.answer(json.loads(text)), ensure_ascii=False)
        self.sizes.append(len(answer.encode()))
        return answer

    def answer_late(self) -> None:
        """Answer what was asked while the kernel did not."""
        self.is_kernel_alive = True
        for text in self.unanswered:
            self.page.evaluate("(answer) => window.receive(answer)", self._answer(text))

    def select_from_python(self, op_id: int | None) -> None:
        self.table.selected_op_id = op_id
        self.page.evaluate("(op_id) => window.model.set('selected_op_id', op_id)", op_id)

    def rows(self) -> Locator:
        return self.page.locator(".nb-body .nb-row:visible")

    def row(self, place: int) -> Locator:
        """The row at a place of the list, from 0."""
        return self.page.locator(f".nb-body .nb-row[aria-rowindex='{place + 3}']:visible")

    def column(self, name: str, count: int) -> list[str]:
        """The texts of the first rows of a column; what is missing reads 'null'."""
        cells = [self.row(place).locator(f"[data-name='{name}']") for place in range(count)]
        return [cell.inner_text().removeprefix("—").strip() for cell in cells]

    def wait_for_count(self, text: str) -> None:
        self.page.locator(".nb-count strong", has_text=text).wait_for()

    def header(self, label: str) -> Locator:
        return self.page.get_by_role("columnheader", name=label, exact=True)

    def filter(self, label: str) -> Locator:
        return self.page.get_by_label(f"Filter {label}", exact=True)

    def focused(self) -> dict[str, Any]:
        """What has the focus: role, row index, column and text."""
        script = """() => { const at = document.activeElement; const row = at.closest("[role=row]");
          const role = at.getAttribute("role") ?? at.tagName.toLowerCase();
          return { role, row: row?.getAttribute("aria-rowindex") ?? null,
                   column: at.getAttribute("data-column"), text: at.textContent }; }"""
        found: dict[str, Any] = self.page.evaluate(script)
        return found


def _static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")
