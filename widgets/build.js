// Builds each widget into nbkit/views/static: one ES module and one style sheet, without anything loaded at run time.
import { build } from "esbuild";

await build({
  entryPoints: ["op_table", "diff_table", "flamegraph", "graph", "composite", "report"].flatMap(
    (name) => ["js", "css"].map((type) => ({ in: `src/${name}/${name}.${type}`, out: name })),
  ),
  outdir: "../nbkit/views/static",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
});
