// The notices of a table: what went wrong, why rows are not there yet, and the count that screen readers speak.

import { h } from "../shared/dom.js";
import { isDead, kernelStatus, waitingText } from "./kernel.js";

export class Notices {
  /** @param {any} model whose kernel answers */
  constructor(model) {
    this.model = model;
    this.status = h("div", { class: "nb-sr", role: "status", "aria-live": "polite" });
    this.problem = h("div", { class: "nb-problem", role: "alert", hidden: true });
    this.told = h("div", { class: "nb-told", role: "status", hidden: true });
    this.waiting = h("div", { class: "nb-waiting", role: "status", hidden: true });
  }

  /** Speaks a text without showing it. @param {string} text */
  speak(text) {
    this.status.textContent = text;
  }

  /** Shows how far a copy is, or what came of it; the next rows take it away. @param {string} text "" for nothing */
  tell(text) {
    this.told.textContent = text;
    this.told.hidden = !text;
  }

  /** Shows what went wrong and takes a notice of waiting away. @param {string} text "" for none */
  showProblem(text) {
    this.waiting.hidden = true;
    this.problem.textContent = text;
    this.problem.hidden = !text;
  }

  /** Says why rows are not there yet; an answer that comes takes it away. */
  showWaiting() {
    const status = kernelStatus(this.model);
    if (isDead(status)) return this.showProblem(waitingText(status));
    this.showProblem("");
    if (this.waiting.textContent !== waitingText(status)) this.waiting.textContent = waitingText(status);
    this.waiting.hidden = false;
  }
}
