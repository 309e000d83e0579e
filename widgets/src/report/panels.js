// The widgets of a report by name: what each draws, and the model that it draws from the data in the page.

import diffTable from "../diff_table/diff_table.js";
import flamegraph from "../flamegraph/flamegraph.js";
import graph from "../graph/graph.js";
import opTable from "../op_table/op_table.js";
import { NONE } from "../graph/data/selection.js";
import { alignmentAnswers } from "./answers/alignment_answers.js";
import { diffAnswers } from "./answers/diff_answers.js";
import { flameStates } from "./flame_state.js";
import { opAnswers } from "./answers/op_answers.js";
import { standInModel } from "./stand_in.js";
import { unpack } from "../shared/unpack.js";

/**
 * What a panel is drawn from: the model of its widget, and what was packed.
 *
 * @typedef {{model: any, state: any}} Source
 * @typedef {{selects: string, render: Function, source: (packed: Uint8Array, sources: Record<string, Source>) => Promise<Source>}} Panel
 */

/** `selects` is the trait that holds what is selected in a widget. @type {Record<string, Panel>} */
export const PANELS = {
  flamegraph: {
    selects: "selected_op_id",
    render: flamegraph.render,
    async source(packed, { op_table: ops }) {
      const state = await flameStates(packed, ops.state);
      return { state, model: standInModel({ ...state, selected_op_id: null, selection: null, selected_range: null }) };
    },
  },
  op_table: {
    selects: "selected_op_id",
    render: opTable.render,
    async source(packed) {
      const state = await unpack(packed);
      return { state, model: standInModel({ overview: state.overview, selected_op_id: null, within: null }, opAnswers(state)) };
    },
  },
  graph: {
    selects: "selected_node_id",
    render: graph.render,
    async source(packed) {
      return { state: null, model: standInModel({ graph: packed, ...NONE }) };
    },
  },
  alignment_table: {
    selects: "selected_row",
    render: diffTable.render,
    async source(packed) {
      const state = await unpack(packed);
      return { state, model: standInModel({ overview: state.overview, selected_row: null }, alignmentAnswers(state)) };
    },
  },
  diff_table: {
    selects: "selected_row",
    render: diffTable.render,
    async source(packed) {
      const state = await unpack(packed);
      return { state, model: standInModel({ overview: state.overview, selected_row: null }, diffAnswers(state)) };
    },
  },
};
