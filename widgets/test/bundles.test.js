// The built bundles as a host takes them: anywidget prefers an export `render` to the default, which then never runs.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const STATIC = new URL("../../nbkit/views/static/", import.meta.url);
const BUNDLES = readdirSync(STATIC).filter((name) => name.endsWith(".js") && name !== "report.js");

for (const name of BUNDLES) {
  test(`${name} exports its default and nothing else`, async () => {
    const module = await import(`data:text/javascript,${encodeURIComponent(readFileSync(new URL(name, STATIC), "utf8"))}`);
    assert.deepEqual(Object.keys(module), ["default"]);
    assert.deepEqual(Object.keys(module.default), ["render"]);
  });
}
