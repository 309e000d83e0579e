"""A page with the built diff table and op table on stand-in models, linked by the real Python side."""

import json
from typing import Any

from playwright.sync_api import Locator, Page

from nbkit.trace.trace import Trace
from nbkit.views.diff_table.widget import DiffTable
from nbkit.views.linking import link_differences
from nbkit.views.live.widget import STATIC
from nbkit.views.op_table.widget import OpTable
from tests.browser.exposed import expose

HTML = """<!doctype html><html lang='en'><title>differences</title>
<main><div id='diff'></div><div id='table'></div></main></html>"""
TRAITS = {"diff": "selected_row", "table": "selected_op_id"}
# A model sends what a widget saves to Python, and takes over what that changed in either widget.
STAND_IN = """async ([name, source, css, state]) => {
  document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
  const listeners = {};
  const fire = (event, ...values) => (listeners[event] ?? []).forEach((listener) => listener(...values));
  let unsaved = {};
  const model = {
    get: (trait) => state[trait],
    set: (trait, value) => {
      if (state[trait] === value) return;
      state[trait] = unsaved[trait] = value;
      fire(`change:${trait}`, value);
    },
    on: (event, listener) => (listeners[event] ??= []).push(listener),
    off: (event, listener) => { listeners[event] = (listeners[event] ?? []).filter((other) => other !== listener); },
    save_changes: async () => {
      const saved = Object.entries(unsaved);
      unsaved = {};
      for (const [trait, value] of saved) await window.saveToKernel(name, trait, value);
      for (const [widget, trait, value] of await window.stateOfKernel()) window.models[widget].take(trait, value);
    },
    take: (trait, value) => { if (state[trait] !== value) { state[trait] = value; fire(`change:${trait}`, value); } },
    send: async (message) => {
      fire("msg:custom", JSON.parse(await window.askKernel(name, JSON.stringify(message))));
    },
  };
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  (window.models ??= {})[name] = model;
  (window.cleanUps ??= {})[name] = await module.default.render({ model, el: document.getElementById(name) });
}"""


class DiffPage:
    """Both widgets of a trace on a page; `differences` and `table` are their Python sides."""

    def __init__(self, page: Page, trace: Trace, *, is_grouped: bool = False) -> None:
        self.page, self.sizes = page, list[int]()
        self.differences, self.table = DiffTable(trace), OpTable(trace)
        link_differences(self.differences, self.table)
        page.set_content(HTML)
        expose(page, "askKernel", self._answer)
        expose(page, "saveToKernel", lambda name, trait, value: setattr(self._widget(name), trait, value))
        expose(
            page,
            "stateOfKernel",
            lambda: [[name, trait, getattr(self._widget(name), trait)] for name, trait in TRAITS.items()],
        )
        self._open("diff", "diff_table", {"overview": self.differences.overview, "selected_row": None})
        self._open("table", "op_table", {"overview": self.table.overview, "within": None, "selected_op_id": None})
        page.locator("#diff .nb-count").filter(has_text=" in ").wait_for()
        if not is_grouped:
            page.locator("#diff").get_by_label("Group by").select_option("no groups")
            page.locator("#diff .nb-grid[role='grid']").wait_for()

    def _widget(self, name: str) -> Any:
        return self.differences if name == "diff" else self.table

    def _open(self, name: str, bundle: str, state: dict[str, Any]) -> None:
        files = [(STATIC / f"{bundle}.{kind}").read_text(encoding="utf-8") for kind in ("js", "css")]
        self.page.evaluate(STAND_IN, [name, *files, state])

    def _answer(self, name: str, text: str) -> str:
        answer = json.dumps(self._widget(name).source.answer(json.loads(text)), ensure_ascii=False)
        self.sizes.append(len(answer.encode()))
        return answer

    @property
    def diff(self) -> Locator:
        return self.page.locator("#diff")

    @property
    def detail(self) -> Locator:
        return self.page.get_by_role("region", name="Selected difference")

    def row(self, place: int) -> Locator:
        """The row at a place of the list, from 0."""
        return self.diff.locator(f".nb-body .nb-row[aria-rowindex='{place + 3}']:visible")

    def column(self, name: str, count: int) -> list[str]:
        """The texts of the first rows of a column; what is missing reads 'null'."""
        cells = [self.row(place).locator(f"[data-name='{name}']") for place in range(count)]
        return [cell.inner_text().removeprefix("—").strip() for cell in cells]

    def wait_for_count(self, text: str) -> None:
        self.diff.locator(".nb-count strong", has_text=text).wait_for()

    def wait_for_plots(self) -> None:
        """Until all three plots of the detail are drawn."""
        self.detail.locator(".nb-plot > svg").nth(2).wait_for(state="attached", timeout=60_000)

    def slider(self, label: str) -> Locator:
        return self.page.get_by_role("slider", name=f"Least {label}")
