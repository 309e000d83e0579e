"""The graph view in headless Chromium against its budgets: opening it folded, and expanding each of its levels.

Run from the root: `python bench/views/graph_view.py [PATH ...]`. Without a path made-up graphs are measured: a
training step of 32 layers with 10,000 ops, and 10,000 and 100,000 ops in one line; with paths what nbkit.load() reads
from them. Every time is taken in the page, until the pixels are there: reading one of them back ends a measurement.
"""

import argparse
import base64
import time
from typing import Any

import nbkit
from bench.harness import chromium
from bench.harness.chromium import report
from nbkit.trace.trace import Trace
from nbkit.views.graph.data import graph_data
from nbkit.views.live.widget import STATIC
from tests.support.fake_graphs import chain_graph, training_graph

OPEN_MS, EXPAND_MS = 1000.0, 300.0
SIZE = {"width": 1400, "height": 900}
# A graph, from its packed bytes to its pixels.
OPEN = """async ([source, css, packed]) => {
  document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const model = { get: (name) => (name === "graph" ? new DataView(bytes.buffer) : null), set() {}, on() {}, off() {},
    save_changes() {} };
  window.readBack = () => document.querySelector(".nb-graph-canvas").getContext("2d").getImageData(0, 0, 1, 1);
  window.drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
    window.readBack(); done(); })));
  const start = performance.now();
  await module.default.render({ model, el: document.getElementById("host") });
  window.readBack();
  return performance.now() - start; }"""
# Each closed line of the outline once, from the top: how long until it is open and drawn, and how deep it is.
EXPAND = """async (most) => { const times = []; const met = new Set();
  const pane = document.querySelector(".nb-graph-outline");
  while (times.length < most) {
    const rows = [...document.querySelectorAll("[role=treeitem][aria-expanded=false]")];
    const row = rows.find((one) => !met.has(one.dataset.row + one.title));
    if (!row) { if (pane.scrollTop + pane.clientHeight >= pane.scrollHeight - 1) break;
      pane.scrollTop += pane.clientHeight; await window.drawn(); continue; }
    met.add(row.dataset.row + row.title);
    const start = performance.now();
    row.querySelector(".nb-twist").click();
    document.querySelector(".nb-graph-stage").getBoundingClientRect();
    await new Promise(requestAnimationFrame);
    window.readBack();
    times.push({ ms: performance.now() - start, title: row.title }); }
  return times; }"""
WHEEL = """async (steps) => { const times = []; const stage = document.querySelector(".nb-graph-stage");
  const { left, top } = stage.getBoundingClientRect();
  for (let step = 0; step < steps; step += 1) {
    stage.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, ctrlKey: true,
      deltaY: step % 8 < 4 ? 60 : -60, clientX: left + 300, clientY: top + 200 }));
    const start = await new Promise((done) => requestAnimationFrame(() => done(performance.now())));
    window.readBack(); times.push(performance.now() - start); }
  return times; }"""
SEARCH = """async (text) => { const input = document.querySelector(".nb-search"); input.value = text;
  const start = performance.now();
  input.dispatchEvent(new Event("input"));
  input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  await new Promise(requestAnimationFrame); window.readBack(); return performance.now() - start; }"""
CHOOSE = """async (graph) => { const select = document.querySelector("select[aria-label=Graph]");
  select.value = graph; const start = performance.now(); select.dispatchEvent(new Event("change"));
  await new Promise(requestAnimationFrame); window.readBack(); return performance.now() - start; }"""
HTML = "<!doctype html><html lang='en'><title>graph</title><main id='host'></main></html>"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a dump or trace; made-up graphs without one")
    parser.add_argument("--levels", type=int, default=60, help="how many levels are expanded (default: 60)")
    options = parser.parse_args()
    traces = {path: nbkit.load(path) for path in options.paths} or made_up()
    with chromium.browser() as browser:
        for name, trace in traces.items():
            page = browser.new_page(viewport=SIZE)
            page.emulate_media(reduced_motion="reduce")
            page.set_content(HTML)
            measure(page, name, trace, options.levels)
            page.close()


def made_up() -> dict[str, Trace]:
    return {
        "training step of 32 layers": training_graph(32, 8),
        "10,000 ops in one line": chain_graph(10_000),
        "100,000 ops in one line": chain_graph(100_000),
    }


def measure(page: Any, name: str, trace: Trace, levels: int) -> None:
    start = time.perf_counter()
    packed = graph_data(trace)
    packing_ms = 1e3 * (time.perf_counter() - start)
    sizes = f"{len(trace.nodes):,} nodes, {len(trace.edges):,} edges, {len(packed) / 1024:,.0f} KiB"
    print(f"{name}: {sizes}, packed in {packing_ms:,.0f} ms")
    files = [(STATIC / f"graph.{kind}").read_text(encoding="utf-8") for kind in ("js", "css")]
    text = base64.b64encode(packed).decode("ascii")
    report("opened, folded", [page.evaluate(OPEN, [*files, text])], OPEN_MS)
    graphs = trace.nodes["graph"].unique().tolist()
    for graph in graphs:
        if graph != graphs[0]:
            report(f"changed to {graph}", [page.evaluate(CHOOSE, graph)], OPEN_MS)
        opened = page.evaluate(EXPAND, levels)
        report(f"expanded, {len(opened)} levels", [one["ms"] for one in opened], EXPAND_MS, max)
        report("zoom frame, all of them open", page.evaluate(WHEEL, 24))
        report("search and first match", [page.evaluate(SEARCH, text) for text in ("mm", "add", "nowhere")])


if __name__ == "__main__":
    main()
