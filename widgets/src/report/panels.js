// The widgets of a report by name: what each draws, and the model that it draws from the data in the page.

import flamegraph from "../flamegraph.js";
import { flameStates } from "./flame_state.js";
import { standInModel } from "./stand_in.js";

/** @type {Record<string, {render: Function, modelOf: (packed: Uint8Array) => Promise<any>}>} */
export const PANELS = {
  flamegraph: {
    render: flamegraph.render,
    modelOf: async (packed) => standInModel({ ...(await flameStates(packed)), selected_op_id: null, selection: null }),
  },
};
