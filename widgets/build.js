// Builds each widget into nbkit/views/static: one ES module and one style sheet, without anything loaded at run time.
import { build } from "esbuild";

await build({
  entryPoints: ["src/op_table.js", "src/op_table.css", "src/diff_table.js", "src/diff_table.css", "src/flamegraph.js", "src/flamegraph.css"],
  outdir: "../nbkit/views/static",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
});
