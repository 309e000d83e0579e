// What an exported page needs to have the notebook's tables without a kernel.

export { diffAnswers } from "./diff_answers.js";
export { linkTables } from "./link.js";
export { opAnswers } from "./op_answers.js";
export { standInModel } from "./stand_in.js";
export { unpack } from "./unpack.js";
