// plotly.js from the kernel's own installation, fetched when the first plot is drawn and once for a page.

const KEY = Symbol.for("nbkit.plotly");

/** The library; `fetchPart` gives one part of it, deflated, and how many there are. @param {(part: number) => Promise<any>} fetchPart @returns {Promise<any>} */
export function loadPlotly(fetchPart) {
  const page = /** @type {any} */ (globalThis);
  page[KEY] ??= fetchAll(fetchPart).then(evaluated);
  // A page that could not load it may do so at the next try.
  page[KEY].catch(() => (page[KEY] = undefined));
  return page[KEY];
}

/** @param {(part: number) => Promise<any>} fetchPart */
async function fetchAll(fetchPart) {
  const parts = [];
  let total = 1;
  while (parts.length < total) {
    const answer = await fetchPart(parts.length);
    if (!answer) throw new Error("the kernel did not answer");
    total = answer.parts;
    parts.push(answer.buffers[0]);
  }
  const stream = new Blob(parts).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

/** @param {string} source */
async function evaluated(source) {
  const before = /** @type {any} */ (globalThis).Plotly;
  // The file is a UMD module, which takes a `module` where there is one.
  const text = `const module = { exports: {} };\n${source}\nexport default module.exports;`;
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  try {
    return (await import(url)).default;
  } finally {
    URL.revokeObjectURL(url);
    // It also makes itself a global, which is the page's own business.
    if (before === undefined) delete (/** @type {any} */ (globalThis).Plotly);
    else /** @type {any} */ (globalThis).Plotly = before;
  }
}
