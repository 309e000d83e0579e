// The live part of a report: draws traces as they come near the window, and lets links select in them.

import { TraceSection } from "./trace_section.js";

/** How far from the window the widgets of a trace are drawn already. */
const AHEAD = "800px";

/** @param {Document} page */
export function startReport(page) {
  const traces = new Map([...page.querySelectorAll(".nbkit-trace")].map((element) => [element.id, new TraceSection(element)]));
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      traces.get(target.id)?.draw();
    }
  }, { rootMargin: AHEAD });
  for (const { element } of traces.values()) observer.observe(element);
  page.addEventListener("click", ({ target }) => {
    const link = /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest("a[data-value]"));
    if (link) traces.get(link.dataset.trace ?? "")?.select(link.dataset.widget ?? "", Number(link.dataset.value));
  });
}
