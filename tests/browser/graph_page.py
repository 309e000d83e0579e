"""A page with the built graph on a stand-in model."""

import base64

from playwright.sync_api import Locator, Page

from nbkit.trace.trace import Trace
from nbkit.views.graph.data import graph_data
from nbkit.views.live.widget import STATIC

HTML = "<!doctype html><html lang='en'><title>graph</title><main id='host'></main></html>"
# The stand-in has what the module uses of an anywidget model; bytes arrive as DataView, as they do in a notebook.
STAND_IN = """async ([source, css, graph]) => {
  document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
  const bytes = Uint8Array.from(atob(graph), (letter) => letter.charCodeAt(0));
  const state = { graph: new DataView(bytes.buffer), selected_node_id: null, selected_part_id: null,
    selected_op_id: null, selection: null };
  const listeners = {};
  window.model = {
    get: (name) => state[name],
    set: (name, value) => {
      if (state[name] === value) return;
      state[name] = value;
      [...(listeners[`change:${name}`] ?? [])].forEach((listener) => listener(value));
    },
    on: (name, listener) => (listeners[name] ??= []).push(listener),
    off: (name, listener) => { listeners[name] = (listeners[name] ?? []).filter((other) => other !== listener); },
    save_changes: () => {},
  };
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  window.listenerCount = () => Object.values(listeners).flat().length;
  window.module = module.default;
  window.cleanUp = await module.default.render({ model: window.model, el: document.getElementById("host") });
}"""


class GraphPage:
    """The graph of a trace on a page."""

    def __init__(self, page: Page, trace: Trace) -> None:
        self.page = page
        page.set_content(HTML)
        files = [(STATIC / f"graph.{kind}").read_text(encoding="utf-8") for kind in ("js", "css")]
        page.evaluate(STAND_IN, [*files, base64.b64encode(graph_data(trace)).decode("ascii")])
        self.stage = page.get_by_role("application")
        self.status = page.get_by_role("status")
        self.search = page.get_by_role("searchbox")
        self.tree = page.get_by_role("tree")

    def row(self, name: str) -> Locator:
        """The line of the outline that begins with a name."""
        return self.tree.get_by_role("treeitem").filter(has_text=name).first

    def names(self) -> list[str]:
        """What the outline shows, from the top."""
        return self.tree.locator(".nb-graph-name").all_inner_texts()

    def fold(self) -> None:
        """Closes all parts; the picture has the focus and shows all of it."""
        self.stage.focus()
        self.press("c", "0")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def get(self, trait: str) -> object:
        return self.page.evaluate("(name) => window.model.get(name)", trait)
