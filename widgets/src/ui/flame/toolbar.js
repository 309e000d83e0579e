// The tool line: search with its result, and what is shown how.

import { debounced, h } from "../dom.js";

const PAUSE = 60;

/** Choices of the tool line: name in the state, label, values with their names. @type {[string, string, [string, string][]][]} */
const CHOICES = [
  ["group", "Group", [["none", "calls"], ["module", "by module"], ["op", "by op"], ["phase", "by phase"]]],
  ["order", "Order", [["time", "time order"], ["heavy", "left heavy"]]],
  ["clock", "Time", [["host", "host time"], ["device", "device time"]]],
  ["color", "Colour", [["phase", "phase"], ["family", "op family"], ["device", "device"], ["difference", "difference"]]],
];

export class Toolbar {
  /**
   * @param {{hidden: string[], onChange: (change: object) => void, onSearch: (text: string) => void, onStep: (step: number) => void,
   *   onFlip: () => void, onTable: () => void, onHelp: () => void, onLeave: () => void}} options `hidden`: choices that do not exist here
   */
  constructor(options) {
    this.options = options;
    this.typed = debounced(() => options.onSearch(this.search.value), PAUSE);
    this.search = h("input", {
      type: "search", class: "nb-search", placeholder: "Search (regex)", "aria-label": "Search frames", spellcheck: "false", autocomplete: "off",
      oninput: this.typed.later, onkeydown: (/** @type {KeyboardEvent} */ event) => this.keyed(event),
    });
    this.found = h("span", { class: "nb-found" });
    this.steps = h("span", { class: "nb-steps", hidden: true },
      button("‹", "Previous match", () => options.onStep(-1)), button("›", "Next match", () => options.onStep(1)));
    /** @type {Record<string, any>} */
    this.selects = {};
    const choices = CHOICES.map((choice) => this.select(choice));
    this.flip = button("Flame", "Root below instead of on top (i)", options.onFlip);
    this.table = button("Table", "The same data as a table (t)", options.onTable);
    this.help = button("?", "Keys", options.onHelp);
    this.help.setAttribute("aria-label", "Keys");
    this.element = h("div", { class: "nb-tools nb-flame-tools", role: "group", "aria-label": "Flame graph tools" },
      h("span", { class: "nb-search-box", role: "search" }, this.search, this.steps, this.found), ...choices, this.flip, this.table, this.help);
  }

  /** @param {[string, string, [string, string][]]} choice */
  select([name, label, values]) {
    const shown = values.filter(([value]) => !this.options.hidden.includes(value));
    const element = h("select", { "aria-label": label, title: label, onchange: () => this.options.onChange({ [name]: element.value }) },
      ...shown.map(([value, text]) => h("option", { value }, name === "color" ? `colour: ${text}` : text)));
    element.hidden = this.options.hidden.includes(name);
    this.selects[name] = element;
    return element;
  }

  /** @param {KeyboardEvent} event */
  keyed(event) {
    if (event.key === "Enter") {
      this.typed.now();
      this.options.onStep(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape" && this.search.value) {
      this.clear();
    } else if (event.key === "Escape" || event.key === "ArrowDown") {
      this.options.onLeave();
    } else {
      return event.stopPropagation();
    }
    event.preventDefault();
    event.stopPropagation();
  }

  clear() {
    this.search.value = "";
    this.typed.now();
  }

  /** @param {Record<string, any>} state */
  show(state) {
    for (const [name, element] of Object.entries(this.selects)) element.value = state[name];
    this.selects.clock.disabled = state.group === "none" && state.order === "time";
    this.flip.setAttribute("aria-pressed", String(state.isFlame));
    this.table.setAttribute("aria-pressed", String(state.isTable));
    this.help.setAttribute("aria-expanded", String(state.isHelp));
  }

  /** @param {string} text what the search found; "" without one @param {string} meaning what its figures are @param {boolean} hasMatches */
  showFound(text, meaning, hasMatches) {
    this.found.textContent = text;
    this.found.title = meaning;
    this.found.toggleAttribute("data-explained", meaning !== "");
    this.steps.hidden = !hasMatches;
  }

  destroy() {
    this.typed.cancel();
  }
}

/** @param {string} text @param {string} title @param {() => void} onclick */
function button(text, title, onclick) {
  const short = text.length === 1;
  return h("button", { type: "button", title, "aria-label": short ? title : null, onclick }, text);
}
