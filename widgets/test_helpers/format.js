// Writes numbers as the report does, for the test on Python's side: stdin and stdout are JSON of lists by format.

import { readFileSync } from "node:fs";
import { count, fixed, general, roundedTo } from "../src/shared/numbers.js";
import { change, dataSize, duration, flops, share } from "../src/shared/units.js";
import { metric } from "../src/report/answers/diff_detail.js";

/** @type {Record<string, (value: number) => string | number>} */
const FORMATS = {
  duration, change, data_size: dataSize, flops, share, count,
  fixed: (value) => fixed(value, 1), metric, statistic: (value) => general(value, 4),
  rounded: (value) => roundedTo(value, 4),
};

const asked = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(Object.fromEntries(Object.entries(asked).map(([name, values]) => [name, values.map(FORMATS[name])]))));
