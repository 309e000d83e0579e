// Copying text, also where the page has no clipboard of its own (plain http, old browsers).

/** Tells whether `text` is in the clipboard now. @param {string} text @param {HTMLTextAreaElement} area holds the text, to be selected if nothing else helps */
export async function copyText(text, area) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    area.focus({ preventScroll: true });
    area.select();
    return document.execCommand("copy");
  }
}
