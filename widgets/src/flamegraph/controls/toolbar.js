// The tool line: search with its result, and what is shown how.

import { button, h } from "../../shared/dom.js";
import { SearchField } from "../../shared/picture/search_field.js";

const PAUSE = 60;

/** Choices of the tool line: name in the state, label, values with their names. @type {[string, string, [string, string][]][]} */
const CHOICES = [
  ["group", "Group", [["none", "calls"], ["module", "by module"], ["op", "by op"], ["phase", "by phase"], ["sandwich", "callers, callees"]]],
  ["order", "Order", [["time", "time order"], ["heavy", "left heavy"]]],
  ["clock", "Time", [["host", "host time"], ["device", "device time"]]],
  ["color", "Color", [["phase", "phase"], ["family", "op family"], ["device", "device"], ["difference", "difference"]]],
];

export class Toolbar {
  /**
   * @param {{hidden: string[], onChange: (change: object) => void, onSearch: (text: string) => void, onStep: (step: number) => void,
   *   onFold: () => void, onFlip: () => void, onTable: () => void, onHelp: () => void, onLeave: () => void}} options `hidden`: choices that do not exist here
   */
  constructor(options) {
    this.options = options;
    this.search = new SearchField({ placeholder: "Search (regex)", label: "Search frames", pause: PAUSE, ...options });
    /** @type {Record<string, any>} */
    this.selects = {};
    const choices = CHOICES.map((choice) => this.select(choice));
    this.flip = button("Flame / icicle", "Root at the bottom (flame) or at the top (icicle) (i)", options.onFlip);
    this.fold = button("Merge layers", "Repeated layers as one, such as layers.* × 12 (m)", options.onFold);
    this.fold.hidden = options.hidden.includes("fold");
    this.table = button("Table", "The same data as a table (t)", options.onTable);
    this.help = button("?", "Keys", options.onHelp);
    this.element = h("div", { class: "nb-tools nb-flame-tools", role: "group", "aria-label": "Flame graph tools" },
      this.search.element, ...choices, this.fold, this.flip, this.table, this.help);
  }

  /** @param {[string, string, [string, string][]]} choice */
  select([name, label, values]) {
    const shown = values.filter(([value]) => !this.options.hidden.includes(value));
    const element = h("select", { "aria-label": label, title: label, onchange: () => this.options.onChange({ [name]: element.value }) },
      ...shown.map(([value, text]) => h("option", { value }, name === "color" ? `color: ${text}` : text)));
    element.hidden = this.options.hidden.includes(name);
    this.selects[name] = element;
    return element;
  }

  /** @param {Record<string, any>} state */
  show(state) {
    for (const [name, element] of Object.entries(this.selects)) element.value = state[name];
    // Grouped frames have no place in time: they stand in the order in which they were first called.
    this.selects.order.options[0].textContent = state.group === "none" ? "time order" : "first call first";
    const isSandwich = state.group === "sandwich";
    this.selects.order.disabled = this.flip.disabled = isSandwich;
    if (isSandwich) this.selects.order.value = "heavy";
    for (const option of this.selects.color.options) option.disabled = isSandwich && option.value === "difference";
    this.selects.clock.disabled = state.group === "none" && state.order === "time";
    this.fold.disabled = state.group === "none" && state.order === "time";
    this.fold.setAttribute("aria-pressed", String(state.isFolded && !this.fold.disabled));
    this.flip.setAttribute("aria-pressed", String(state.isFlame));
    this.table.setAttribute("aria-pressed", String(state.isTable));
    this.help.setAttribute("aria-expanded", String(state.isHelp));
  }

  destroy() {
    this.search.destroy();
  }
}
