import assert from "node:assert/strict";
import { test } from "node:test";
import { colored, selfByCategory } from "../../src/flamegraph/views/colors.js";
import { FAMILIES, familyOf } from "../../src/flamegraph/views/families.js";
import { CATEGORIES, deviceCategories, HUES } from "../../src/shared/picture/palette.js";
import { Views } from "../../src/flamegraph/views/views.js";
import { pathText, step, traceOf } from "../../test_helpers/trace.js";

const CALLS = { order: "time", group: "none", clock: "host", color: "phase" };
/** Machado, Oliveira and Fernandes 2009: what people without long- or medium-wave cones see. */
const BLINDNESS = {
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
};

/** @param {string} color */
function linear(color) {
  return [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
}

const luminance = (/** @type {number[]} */ [r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;

/** @param {string} one @param {string} other */
function contrast(one, other) {
  const [low, high] = [luminance(linear(one)), luminance(linear(other))].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** CIE L*a*b* of a linear color. @param {number[]} rgb */
function lab([r, g, b]) {
  const [x, y, z] = [0.4124 * r + 0.3576 * g + 0.1805 * b, luminance([r, g, b]), 0.0193 * r + 0.1192 * g + 0.9505 * b];
  const [fx, fy, fz] = [x / 0.95047, y, z / 1.08883].map((part) => (part > 0.008856 ? Math.cbrt(part) : 7.787 * part + 16 / 116));
  return [116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)];
}

/** How different two colors look to somebody, as CIE 1976 distance. @param {string} one @param {string} other @param {number[][]} sight */
function distance(one, other, sight) {
  const seen = [one, other].map((color) => sight.map((row) => Math.min(Math.max(row.reduce((sum, factor, index) => sum + factor * linear(color)[index], 0), 0), 1)));
  const [a, b] = seen.map(lab);
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

test("every fill has 3:1 against light and dark pages and 4.5:1 below black text", () => {
  for (const [name, color] of Object.entries(HUES)) {
    for (const page of ["#ffffff", "#111111", "#161616"]) assert.ok(contrast(color, page) >= 3, `${name} on ${page}`);
    assert.ok(contrast(color, "#000000") >= 4.5, `text on ${name}`);
  }
});

test("categories differ in their pattern or, for color-blind eyes too, in their color", () => {
  const palettes = { ...CATEGORIES, device: deviceCategories(["cpu", "cuda:0", "cuda:1", "cuda:2", "cuda:3"]) };
  for (const [name, categories] of Object.entries(palettes)) {
    for (const [sightName, sight] of Object.entries(BLINDNESS)) {
      categories.forEach((one, index) => {
        for (const other of categories.slice(0, index)) {
          const isClear = one.pattern !== other.pattern || distance(one.color, other.color, sight) >= 15;
          assert.ok(isClear, `${name}: ${one.label} and ${other.label} under ${sightName}`);
        }
      });
    }
  }
});

test("ops belong to families by their names", () => {
  const found = Object.entries({
    "aten.mm.default": "matmul", "aten.addmm.default": "matmul", "torch.nn.functional.linear": "matmul", "ampere_sgemm_128x64_tn": "matmul",
    "aten._scaled_dot_product_flash_attention.default": "attention", "aten.convolution.default": "convolution", "aten.native_layer_norm.default": "normalization",
    "aten.gelu.default": "elementwise", "aten.add_.Tensor": "elementwise", "aten._foreach_addcdiv_.ScalarList": "elementwise", "aten.normal_.default": "elementwise",
    "aten._softmax.default": "reduction", "aten.nll_loss_forward.default": "reduction", "aten.embedding.default": "indexing", "aten.transpose.int": "copy and layout",
    "aten.t.default": "copy and layout", "Memcpy HtoD (Pinned -> Device)": "copy and layout", "c10d.allreduce_.default": "communication", "ncclDevKernel_AllReduce": "communication",
    MmBackward0: "autograd", "torch.optim.AdamW.step": "module or block", "autograd::engine::evaluate_function: MulBackward0": "autograd", cudaLaunchKernel: "device driver", "mylib.thing.default": "other",
  });
  for (const [op, family] of found) assert.equal(FAMILIES[familyOf(op, "aten")], family, op);
  assert.deepEqual([FAMILIES[familyOf("Linear", "module")], FAMILIES[familyOf("step", "range")]], ["module or block", "module or block"]);
  assert.deepEqual(CATEGORIES.family.slice(0, -1).map(({ label }) => label), FAMILIES);
});

test("rows are colored by phase and device; an unknown phase is other, no device its own category", () => {
  const trace = traceOf([{ op: "a", total: 1, phase: "backward", device: "cpu" }, { op: "b", total: 1, phase: "strange" }]);
  const { frames } = new Views(trace, null).view(CALLS);
  const labels = (/** @type {string} */ by) => {
    const { codes, categories } = colored(trace, frames, by);
    return [...codes].map((code) => categories[code].label);
  };
  assert.deepEqual([labels("phase"), labels("device")], [["backward", "other"], ["cpu", "no device"]]);
});

test("a frame that holds several categories says so", () => {
  const views = new Views(step(), null);
  const choice = { ...CALLS, group: "module" };
  const view = views.view(choice);
  const { codes, categories } = views.colors(view, choice);
  const labels = Object.fromEntries(Array.from(codes, (code, frame) => [pathText(view.frames, frame), categories[code].label]));
  assert.deepEqual([labels.blocks, labels["blocks>0"], labels["blocks>1"], labels["blocks>0>backward"]], ["several", "several", "forward", "backward"]);
  const { time } = selfByCategory(view.frames, codes, categories.length);
  assert.deepEqual([time[0], time[1]], [75, 25]);
});
