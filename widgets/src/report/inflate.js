// Bytes as Python's zlib packed them.

/** What was packed. @param {Uint8Array} packed @returns {Promise<Uint8Array>} */
export async function inflated(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
