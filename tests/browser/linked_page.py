"""A page with the built flame graph and op table on stand-in models, linked by the real Python side."""

import base64
import json
from typing import Any

from playwright.sync_api import Locator, Page

from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.widget import FlameGraph
from nbkit.views.linking import link
from nbkit.views.live.widget import STATIC
from nbkit.views.op_table.widget import OpTable
from tests.browser.exposed import expose

HTML = """<!doctype html><html lang='en'><title>linked</title>
<main><div id='flame'></div><div id='table'></div></main></html>"""
CHOSEN = ("selection", "selected_range")
TRAITS = {"flame": ("selected_op_id", *CHOSEN), "table": ("selected_op_id", "within")}
# A model sends what a widget saves to Python, and takes over what that changed in either widget.
STAND_IN = """async ([name, source, css, state]) => {
  document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
  const listeners = {};
  const fire = (event, value) => (listeners[event] ?? []).forEach((listener) => listener(value));
  const toJson = (value) => value?.ids ? { ...value, ids: [...new Int32Array(value.ids.buffer)] } : value;
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
      const saved = Object.entries(unsaved).map(([trait, value]) => [trait, toJson(value)]);
      unsaved = {};
      const changes = await window.saveToKernel(name, JSON.stringify(saved));
      for (const [widget, trait, value] of JSON.parse(changes)) window.models[widget].take(trait, value);
    },
    take: (trait, value) => { state[trait] = value; fire(`change:${trait}`, value); },
    send: async (message) => fire("msg:custom", JSON.parse(await window.askKernel(JSON.stringify(message)))),
  };
  for (const [column, text] of Object.entries(state.flame?.columns ?? {}))
    state.flame.columns[column] = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  (window.models ??= {})[name] = model;
  await module.default.render({ model, el: document.getElementById(name) });
}"""


def drag_range(page: Page, flame: Locator, start: float, end: float) -> None:
    """Drags along the time axis of a flame graph in time order, from one fraction of its width to another."""
    stage = flame.get_by_role("tree", name="Frames")
    stage.scroll_into_view_if_needed()
    box = stage.bounding_box()
    assert box is not None
    left, right = (box["x"] + box["width"] * share for share in (start, end))
    page.mouse.move(left, box["y"] + 9)
    page.mouse.down()
    page.mouse.move(right, box["y"] + 9, steps=4)
    page.mouse.up()


class LinkedPage:
    """Both widgets of a trace on a page; `flame` and `table` are their Python sides."""

    def __init__(self, page: Page, trace: Trace) -> None:
        self.page, self.flame, self.table = page, FlameGraph(trace), OpTable(trace)
        link(self.flame, self.table)
        page.set_content(HTML)
        expose(page, "askKernel", lambda text: json.dumps(self.table.source.answer(json.loads(text))))
        expose(page, "saveToKernel", self._save)
        columns = {name: base64.b64encode(data).decode() for name, data in self.flame.flame["columns"].items()}
        flame = {**self.flame.flame, "columns": columns, "memory": None}
        chosen = dict.fromkeys(TRAITS["flame"])
        self._open("flame", "flamegraph", {"flame": flame, "base": None, **chosen})
        self._open("table", "op_table", {"overview": self.table.overview, "within": None, "selected_op_id": None})

    def _open(self, name: str, bundle: str, state: dict[str, Any]) -> None:
        files = [(STATIC / f"{bundle}.{kind}").read_text(encoding="utf-8") for kind in ("js", "css")]
        self.page.evaluate(STAND_IN, [name, *files, state])

    def _save(self, name: str, text: str) -> str:
        """Set what a widget saved; the traits that differ from what its front end knows, as JSON."""
        widget, saved = getattr(self, name), dict(json.loads(text))
        before = self._state() | {(name, trait): value for trait, value in saved.items()}
        for trait in filter(saved.get, CHOSEN):
            ids = saved[trait]["ids"]
            saved[trait]["ids"] = b"".join(op_id.to_bytes(4, "little") for op_id in ids)
        with widget.hold_trait_notifications():
            for trait, value in saved.items():
                setattr(widget, trait, value)
        after = self._state()
        # What was chosen has bytes; back comes only that it is cleared.
        is_told = {key: key[1] not in CHOSEN or after[key] is None for key in after}
        changed = [[*key, after[key]] for key in after if is_told[key] and after[key] != before[key]]
        return json.dumps(changed)

    def _state(self) -> dict[tuple[str, str], Any]:
        return {
            (name, trait): getattr(getattr(self, name), trait) for name, traits in TRAITS.items() for trait in traits
        }

    def ops(self) -> list[str]:
        """The ops that the table shows."""
        return self.page.locator("#table .nb-body .nb-row:visible [data-name='op']").all_inner_texts()

    def count(self, text: str) -> Locator:
        return self.page.locator("#table .nb-count strong", has_text=text)

    def drag_range(self, start: float, end: float) -> None:
        """Drags a range of time in the flame graph from one fraction of its width to another."""
        drag_range(self.page, self.page.locator("#flame"), start, end)

    def choose_frame(self, name: str) -> None:
        """Select a frame by its name in the flame graph's own table."""
        if self.page.get_by_role("region", name="Frames as a table").is_hidden():
            self.page.locator("#flame").get_by_role("button", name="Table", exact=True).click()
        self.page.get_by_role("region", name="Frames as a table").get_by_role("button", name=name).first.click()
