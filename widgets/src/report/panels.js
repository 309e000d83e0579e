// The widgets of a report by name: what each draws, and the model that it draws from the data in the page.

import flamegraph from "../flamegraph.js";
import opTable from "../op_table.js";
import { flameStates } from "./flame_state.js";
import { opAnswers } from "./op_answers.js";
import { standInModel } from "./stand_in.js";
import { unpack } from "./unpack.js";

/** `selects` is the trait that holds what is selected. @type {Record<string, {selects: string, render: Function, modelOf: (packed: Uint8Array) => Promise<any>}>} */
export const PANELS = {
  flamegraph: {
    selects: "selected_op_id",
    render: flamegraph.render,
    modelOf: async (packed) => standInModel({ ...(await flameStates(packed)), selected_op_id: null, selection: null }),
  },
  op_table: {
    selects: "selected_op_id",
    render: opTable.render,
    async modelOf(packed) {
      const state = await unpack(packed);
      return standInModel({ overview: state.overview, selected_op_id: null, within: null }, opAnswers(state));
    },
  },
};
