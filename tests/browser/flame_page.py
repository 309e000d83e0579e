"""A page with the built flame graph on a stand-in model, and made-up traces to show on it."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Locator, Page

STATIC = Path(__file__).parents[2] / "nbkit" / "views" / "static"
HTML = "<!doctype html><html lang='en'><title>flame graph</title><main id='host'></main></html>"
INTEGERS = ("parent", "track", "op", "module", "phase", "level", "device", "source", "shapes")
FLOATS = ("start", "total", "self", "device_self", "flops", "bytes")
TEXTS = ("op", "module", "phase", "level", "device", "source", "shapes")
# The stand-in has what the module uses of an anywidget model; bytes arrive as DataView, as they do in a notebook.
STAND_IN = """async ([source, css, state]) => {
  document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
  const decode = (value) => {
    if (Array.isArray(value)) return value.map(decode);
    if (value === null || typeof value !== "object") return value;
    if ("base64" in value) {
      return new DataView(Uint8Array.from(atob(value.base64), (letter) => letter.charCodeAt(0)).buffer);
    }
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, decode(part)]));
  };
  const listeners = {};
  state = decode(state);
  window.model = {
    saves: 0,
    get: (name) => state[name],
    set: (name, value) => {
      if (state[name] === value) return;
      state[name] = value;
      [...(listeners[`change:${name}`] ?? [])].forEach((listener) => listener(value));
    },
    on: (name, listener) => (listeners[name] ??= []).push(listener),
    off: (name, listener) => { listeners[name] = (listeners[name] ?? []).filter((other) => other !== listener); },
    save_changes: () => { window.model.saves += 1; },
  };
  window.decodeState = decode;
  if (state.make) state.flame = window.makeFlame(state.make);
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  window.listenerCount = () => Object.values(listeners).flat().length;
  window.module = module.default;
  window.cleanUp = await module.default.render({ model: window.model, el: document.getElementById("host") });
}"""
# A trace of any size: a tree of up to eleven levels and six children, in order of start.
MAKE_FLAME = """window.makeFlame = (count) => {
  const integers = ["parent", "track", "op", "module", "phase", "level", "device", "source", "shapes"];
  const floats = ["start", "total", "self", "device_self", "flops", "bytes"];
  const columns = {};
  for (const name of integers) columns[name] = new Int32Array(count);
  for (const name of floats) columns[name] = new Float64Array(count);
  let seed = 7;
  const random = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 4294967296;
  let next = 0;
  const add = (parent, start, total, depth, share) => {
    const me = next++;
    columns.parent[me] = parent; columns.start[me] = start; columns.total[me] = columns.self[me] = total;
    columns.op[me] = depth === 0 ? 0 : 1 + Math.floor(random() * 59);
    columns.module[me] = depth < 3 ? -1 : Math.floor(start / 1e5) % 40;
    columns.phase[me] = start < 4e6 ? 0 : start < 9e6 ? 1 : 2;
    columns.source[me] = columns.shapes[me] = -1; columns.flops[me] = columns.bytes[me] = columns.device_self[me] = NaN;
    if (parent >= 0) columns.self[parent] -= total;
    let left = share - 1;
    let at = start;
    for (let child = 0; child < 6 && left > 0 && depth < 11; child += 1) {
      const part = child === 5 ? left : Math.min(left, Math.ceil((left / (6 - child)) * (0.6 + 0.8 * random())));
      const width = (total * 0.97 * part) / (share - 1);
      left -= add(me, at, width * (0.85 + 0.15 * random()), depth + 1, part);
      at += width;
    }
    return next - me;
  };
  add(-1, 0, 1e7, 0, count);
  for (; next < count; next += 1) columns.parent[next] = -1;
  const ops = ["mm", "addmm", "add", "mul", "gelu", "native_layer_norm", "_softmax", "copy_", "view", "embedding"];
  const op = ["step", ...Array.from({ length: 59 }, (_, index) => `aten.${ops[index % 10]}.v${index / 10 >> 0}`)];
  const module = Array.from({ length: 40 }, (_, index) => `Model.blocks.${index >> 1}.${index % 2 ? "att" : "mlp"}`);
  const strings = { op, module,
    phase: ["forward", "backward", "optimizer"], level: ["aten"], device: ["cpu"], source: [], shapes: [] };
  return { title: `${count} frames`, count, complete: true, strings, columns,
    tracks: [{ name: "thread 0", kind: "host" }], memory: null, notes: [] };
};"""

# Where motion is unwelcome nothing moves, so that the next frame shows what was done; elsewhere movements end first.
COLOR = """async ([fraction, y]) => {
  const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (!isStill) await new Promise((done) => setTimeout(done, 260));
  for (let frame = 0; frame < (isStill ? 3 : 1); frame += 1) await new Promise(requestAnimationFrame);
  const canvas = document.querySelector(".nb-flame-canvas");
  const at = [Math.round(canvas.width * fraction), Math.round((y * canvas.width) / canvas.clientWidth)];
  const [r, g, b] = canvas.getContext("2d").getImageData(...at, 1, 1).data;
  return "#" + [r, g, b].map((part) => part.toString(16).padStart(2, "0")).join("");
}"""


@dataclass(frozen=True)
class Node:
    """One row of a made-up trace; children run one after the other from its start on."""

    op: str
    total: float
    children: tuple["Node", ...] = ()
    level: str = "aten"
    phase: str = "forward"
    track: int = 0
    start: float | None = None
    texts: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)


def node(op: str, total: float, *children: Node, **others: Any) -> Node:
    """A row; module, device, source and shapes are texts of it, flops, bytes and device_self numbers."""
    texts = {name: others.pop(name) for name in ("module", "device", "source", "shapes") if name in others}
    numbers = {name: others.pop(name) for name in ("flops", "bytes", "device_self") if name in others}
    return Node(op, total, children, texts=texts, numbers=numbers, **others)


def flame(*roots: Node, tracks: tuple[tuple[str, str], ...] = (("thread 0", "host"),), **others: Any) -> dict[str, Any]:
    """The `flame` state of a trace of these rows."""
    rows: list[tuple[int, float, Node]] = []
    at = 0.0
    for root in roots:
        start = at if root.start is None else root.start
        _add(rows, -1, start, root)
        at = start + root.total
    strings: dict[str, list[str]] = {name: [] for name in TEXTS}
    columns: dict[str, list[float]] = {name: [] for name in (*INTEGERS, *FLOATS)}
    for parent, start, row in rows:
        for name, value in _values(parent, start, row, strings).items():
            columns[name].append(value)
    return {
        "title": "a step",
        "count": len(rows),
        "complete": True,
        "strings": strings,
        "tracks": [{"name": name, "kind": kind} for name, kind in tracks],
        "columns": {name: encoded(values, "<i4" if name in INTEGERS else "<f8") for name, values in columns.items()},
        "memory": None,
        "notes": [],
        **others,
    }


def _add(rows: list[tuple[int, float, Node]], parent: int, start: float, row: Node) -> None:
    waiting = [(parent, start, row)]
    while waiting:
        parent, start, row = waiting.pop()
        rows.append((parent, start, row))
        children = []
        for child in row.children:
            children.append((len(rows) - 1, start if child.start is None else child.start, child))
            start += child.total
        waiting += reversed(children)


def _values(parent: int, start: float, row: Node, strings: dict[str, list[str]]) -> dict[str, float]:
    texts = {"op": row.op, "phase": row.phase, "level": row.level, **row.texts}
    indices = {name: _index(strings[name], texts[name]) if name in texts else -1 for name in TEXTS}
    self_time = row.total - sum(child.total for child in row.children)
    numbers = {"flops": np.nan, "bytes": np.nan, "device_self": np.nan, **row.numbers}
    return {
        **indices,
        "parent": parent,
        "track": row.track,
        "start": start,
        "total": row.total,
        "self": self_time,
        **numbers,
    }


def _index(texts: list[str], text: str) -> int:
    if text not in texts:
        texts.append(text)
    return texts.index(text)


def encoded(values: Any, dtype: str) -> dict[str, str]:
    return {"base64": base64.b64encode(np.asarray(values, dtype=dtype).tobytes()).decode()}


def plain(value: Any) -> Any:
    """A state as JSON data, bytes as the page's stand-in takes them."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def unknown_noise() -> dict[str, Any]:
    """The `difference` state of single recordings; what takes 1.2 times as long, by 1 % of all time, is colored."""
    return {"repeats": [1, 1], "notes": [], "single_factor": 1.2, "single_share": 0.01, "views": {}}


def known_noise(*frames: tuple[int, float, float, float], notes: tuple[str, ...] = ()) -> dict[str, Any]:
    """That of ten repeats of both: row, usual time, change and noise of merged calls by host time."""
    row, *times = zip(*frames, strict=True)
    integers = {"row": row, "up": [0] * len(row), "own": [0] * len(row)}
    columns = {name: encoded(values, "<i4") for name, values in integers.items()}
    columns |= {name: encoded(values, "<f8") for name, values in zip(("usual", "change", "noise"), times, strict=True)}
    view = {"count": len(row), "columns": columns}
    return {**unknown_noise(), "repeats": [10, 10], "notes": list(notes), "views": {"none host": view}}


def training_step(factor: float = 1.0, *, renamed: bool = False) -> dict[str, Any]:
    """A step of a model of two blocks; `factor` stretches an op of the second block, `renamed` has another op there."""
    return flame(node("step", 5_000 + 480 * (factor - 1), *_blocks(factor, renamed), *_rest(), level="range"))


def _blocks(factor: float, renamed: bool) -> Iterator[Node]:
    for index in range(2):
        path = f"Net.blocks.{index}"
        time = 480.0 * (factor if index else 1)
        name = "aten.tanh.default" if renamed and index else "aten.gelu.default"
        linear = node("aten.linear.default", 420, _mm(400, f"{path}.att"), module=f"{path}.att")
        attention = node("Attention", 460, linear, level="module", module=f"{path}.att")
        gelu = node(name, time, module=f"{path}.mlp", shapes="[[2, 8, 64]]")
        mlp = node("Mlp", time + 40, gelu, level="module", module=f"{path}.mlp")
        yield node("Block", time + 520, attention, mlp, level="module", module=path)


def _mm(total: float, module: str) -> Node:
    numbers = {"flops": 2.0e9, "bytes": 4096.0}
    return node("aten.mm.default", total, module=module, source="net.py:12", shapes="[[2, 64], [64, 64]]", **numbers)


def _rest() -> Iterator[Node]:
    backward = node("MmBackward0", 1_500, replace(_mm(1_400, "Net.blocks.0.att"), phase="backward"), phase="backward")
    yield node("torch.autograd.backward", 1_700, backward, level="api", phase="backward")
    yield node("torch.optim.AdamW.step", 600, node("aten.add_.Tensor", 200, phase="optimizer"), phase="optimizer")


class FlamePage:
    """The flame graph of a state on a page."""

    def __init__(self, page: Page, state: dict[str, Any] | int, **others: Any) -> None:
        self.page = page
        page.set_content(HTML)
        page.evaluate(MAKE_FLAME)
        flame_state = {"make": state} if isinstance(state, int) else {"flame": state}
        difference = None if others.get("base") is None else unknown_noise()
        shown = {"flame": None, "base": None, "difference": difference, "selected_op_id": None, "selection": None}
        full = {**shown, **flame_state, **others}
        page.evaluate(STAND_IN, [_static("flamegraph.js"), _static("flamegraph.css"), full])
        page.locator(".nbkit-flamegraph").wait_for()

    @property
    def stage(self) -> Locator:
        return self.page.get_by_role("tree", name="Frames")

    @property
    def status(self) -> Locator:
        return self.page.get_by_role("status")

    @property
    def search(self) -> Locator:
        return self.page.get_by_role("searchbox", name="Search frames")

    @property
    def range(self) -> Locator:
        return self.page.get_by_role("region", name="Selected range")

    @property
    def place(self) -> Locator:
        return self.page.locator(".nb-flame-place")

    @property
    def tip(self) -> Locator:
        return self.page.locator(".nb-tip")

    def press(self, *keys: str) -> None:
        self.stage.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def choose(self, label: str, option: str) -> None:
        self.page.get_by_label(label, exact=True).select_option(label=option)

    def crumbs(self) -> list[str]:
        return self.page.get_by_role("navigation", name="Zoom").get_by_role("listitem").all_inner_texts()

    def point(self, fraction: float, row: int) -> dict[str, float]:
        """The place on the stage of a fraction of its width and a row, from 0."""
        box = self.stage.bounding_box()
        assert box is not None
        return {"x": box["width"] * fraction, "y": 18 + 18 * row + 9}

    def click(self, fraction: float, row: int) -> None:
        self.stage.click(position=self.point(fraction, row))  # type: ignore[arg-type]

    def hover(self, fraction: float, row: int) -> None:
        self.stage.hover(position=self.point(fraction, row))  # type: ignore[arg-type]

    def drag(self, start: float, end: float, row: int) -> None:
        """Drags the pointer along a row from one fraction of the width to another."""
        box = self.stage.bounding_box()
        assert box is not None
        height = box["y"] + self.point(0, row)["y"]
        self.page.mouse.move(box["x"] + box["width"] * start, height)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + box["width"] * end, height, steps=4)
        self.page.mouse.up()

    def color(self, fraction: float, row: int) -> str:
        """The color of the canvas there, near the upper edge of the row, where no label is."""
        return str(self.page.evaluate(COLOR, [fraction, 18 + 18 * row + 3]))

    def settle(self) -> None:
        """Waits until movements have ended and what they drew is on the page."""
        self.page.evaluate("new Promise((done) => setTimeout(() => requestAnimationFrame(done), 260))")

    def table(self) -> list[list[str]]:
        rows = self.page.locator(".nb-flame-table tbody tr")
        return [row.locator("th, td").all_inner_texts() for row in rows.all()]

    def range_sums(self, by: str) -> list[list[str]]:
        rows = self.page.get_by_role("region", name=f"Range by {by}").locator("tbody tr")
        return [row.locator("th, td").all_inner_texts() for row in rows.all()]

    def selected_range(self) -> dict[str, Any] | None:
        script = """() => { const found = window.model.get("selected_range");
          return found && { ...found, ids: Array.from(new Int32Array(found.ids.buffer)) }; }"""
        result: dict[str, Any] | None = self.page.evaluate(script)
        return result

    def selection(self) -> dict[str, Any]:
        script = """() => { const found = window.model.get("selection");
          const ids = found && Array.from(new Int32Array(found.ids.buffer));
          const op = window.model.get("selected_op_id");
          return { label: found?.label ?? null, ids, op, saves: window.model.saves }; }"""
        result: dict[str, Any] = self.page.evaluate(script)
        return result

    def select_from_python(self, op_id: int | None) -> None:
        self.page.evaluate("(op_id) => window.model.set('selected_op_id', op_id)", op_id)


def _static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")
