"""A stand-in for hosts such as VS Code and Colab: no message above 8 MB, and binary data carried or lost."""

import base64
import json
from typing import Any

from ipywidgets.widgets.widget import _remove_buffers
from playwright.sync_api import Page

from nbkit.views.live.widget import STATIC
from tests.browser.exposed import expose

MOST_BYTES = 8_000_000
HTML = "<!doctype html><html lang='en'><title>host</title><main id='host'></main></html>"
STAND_IN = """async ([source, css, state]) => {
  document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
  const listeners = {};
  const fire = (event, ...values) => (listeners[event] ?? []).forEach((listener) => listener(...values));
  let unsaved = {};
  // Of a message from Python the JSON comes, and the buffers where the host carries them.
  const filled = ([data, paths, buffers]) => {
    buffers.forEach((text, place) => {
      const path = paths[place];
      const inside = path.slice(0, -1).reduce((value, name) => value[name], data);
      inside[path.at(-1)] = new DataView(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
    });
    return data;
  };
  const take = (messages) => {
    for (const { method, data } of JSON.parse(messages)) {
      const content = filled(data);
      if (method === "custom") { fire("msg:custom", content, []); continue; }
      const isNew = (name) => JSON.stringify(state[name]) !== JSON.stringify(content[name]);
      const changed = Object.keys(content).filter(isNew);
      Object.assign(state, content);
      changed.forEach((name) => fire(`change:${name}`));
    }
  };
  window.model = {
    get: (name) => state[name],
    set: (name, value) => {
      if (state[name] === value) return;
      state[name] = unsaved[name] = value;
      fire(`change:${name}`);
    },
    on: (event, listener) => (listeners[event] ??= []).push(listener),
    off: (event, listener) => { listeners[event] = (listeners[event] ?? []).filter((other) => other !== listener); },
    // JSON makes an empty object of a DataView: that is how binary data get lost on the way to Python.
    save_changes: async () => {
      const saved = JSON.stringify(unsaved);
      unsaved = {};
      take(await window.toPython("update", saved));
    },
    send: async (content) => take(await window.toPython("custom", JSON.stringify(content))),
  };
  state = filled(state);
  window.listenerCount = () => Object.values(listeners).flat().length;
  window.take = take;
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  window.cleanUp = await module.default.render({ model: window.model, el: document.getElementById("host") });
}"""


class LimitedHost:
    """Shows a widget on a page as such a host would; `sizes` are the bytes of each message that went to the page."""

    def __init__(self, page: Page, widget: Any, bundle: str, *, has_buffers: bool) -> None:
        self.page, self.widget, self.has_buffers = page, widget, has_buffers
        self.sizes: list[int] = []
        self.sent: list[dict[str, Any]] = []
        widget._send = self._note  # what ipywidgets gives its comm
        widget.comm = Connected()
        page.set_content(HTML)
        expose(page, "toPython", self._receive)
        state = {name: value for name, value in widget.get_state().items() if name not in ("_esm", "_css", "layout")}
        code = [(STATIC / f"{bundle}.{kind}").read_text(encoding="utf-8") for kind in ("js", "css")]
        page.evaluate(STAND_IN, [*code, self._carried(state, sum(map(len, code)))])

    def tell(self) -> None:
        """Sends the page what Python has changed."""
        self.page.evaluate("(messages) => window.take(messages)", self._outgoing())

    def _carried(self, data: Any, more: int = 0) -> list[Any]:
        rest, paths, buffers = _remove_buffers(data)
        size = len(json.dumps(rest)) + sum(map(len, buffers)) + more
        assert size <= MOST_BYTES, f"The host ends the connection over a message of {size:,} bytes."
        self.sizes.append(size)
        carried = buffers if self.has_buffers else []
        return [rest, paths, [base64.b64encode(each).decode() for each in carried]]

    def _note(self, message: dict[str, Any], buffers: Any = None) -> None:
        if message["method"] == "custom":
            self.sent.append({"method": "custom", "data": self._carried(message["content"])})
        elif message["method"] == "update":
            names = {*message["state"], *(path[0] for path in message["buffer_paths"])}
            state = self.widget.get_state(names)
            self.sent.append({"method": "update", "data": self._carried(state)})

    def _receive(self, method: str, text: str) -> str:
        data = json.loads(text)
        if method == "update":
            self.widget.set_state(data)
        else:
            self.widget._handle_custom_msg(data, [])
        return self._outgoing()

    def _outgoing(self) -> str:
        messages, self.sent = self.sent, []
        return json.dumps(messages)


class Connected:
    """A comm that only says that there is one."""

    comm_id, kernel = "stand-in", True

    def on_msg(self, callback: object) -> None:
        """Hears nothing: the page calls the widget."""

    def send(self, *values: object, **more: object) -> None:
        """Sends nothing: what the widget would send is noted before."""

    def close(self, *values: object, **more: object) -> None:
        """Ends nothing."""
