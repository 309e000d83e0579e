// The search field of a picture: its keys, what it found, and the steps to the matches before and after.

import { button, debounced, h } from "../dom.js";

export class SearchField {
  /**
   * @param {{placeholder: string, label: string, pause: number, onSearch: (text: string) => void, onStep: (step: number) => void, onLeave: () => void}} options
   *   `pause`: milliseconds without a key after which the search runs
   */
  constructor(options) {
    this.options = options;
    this.typed = debounced(() => options.onSearch(this.input.value), options.pause);
    this.input = h("input", {
      type: "search", class: "nb-search", placeholder: options.placeholder, "aria-label": options.label, spellcheck: "false", autocomplete: "off",
      oninput: this.typed.later, onkeydown: (/** @type {KeyboardEvent} */ event) => this.keyed(event),
    });
    this.matches = h("span", { class: "nb-found" });
    this.steps = h("span", { class: "nb-steps", hidden: true }, button("‹", "Previous match", () => options.onStep(-1)), button("›", "Next match", () => options.onStep(1)));
    this.element = h("span", { class: "nb-search-box", role: "search", "aria-label": options.label }, this.input, this.steps, this.matches);
  }

  /** @param {KeyboardEvent} event */
  keyed(event) {
    if (event.key === "Enter") {
      this.typed.now();
      this.options.onStep(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape" && this.input.value) {
      this.clear();
    } else if (event.key === "Escape" || event.key === "ArrowDown") {
      this.options.onLeave();
    } else {
      return event.stopPropagation();
    }
    event.preventDefault();
    event.stopPropagation();
  }

  focus() {
    this.input.focus();
  }

  clear() {
    this.input.value = "";
    this.typed.now();
  }

  /** @param {string} text what the search found; "" without one @param {boolean} hasMatches @param {string} [meaning] what its figures are */
  showMatches(text, hasMatches, meaning = "") {
    this.matches.textContent = text;
    this.matches.title = meaning;
    this.matches.toggleAttribute("data-explained", meaning !== "");
    this.steps.hidden = !hasMatches;
  }

  destroy() {
    this.typed.cancel();
  }
}
