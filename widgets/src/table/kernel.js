// The kernel as the notebook's front end knows it, and what to say while it owes an answer.

const BUSY = "Waiting for the kernel, which is busy. The rows come as soon as it is free.";
// A busy kernel is called idle by older JupyterLabs once it has answered the debugger (jupyterlab issue 10701), and 4.6
// was seen to do so on a loaded machine.
const SILENT = "Still waiting for the kernel. It may be busy with another cell; if it was restarted, run this cell again.";
const UNKNOWN = "Waiting for the kernel. It may be busy with other cells; the rows come as soon as it is free.";
const DEAD = "The kernel no longer runs, so the table has no more rows to show. Start it and run the cell again.";
/** @type {Record<string, string>} */
const SENTENCES = { busy: BUSY, starting: BUSY, restarting: BUSY, autorestarting: BUSY, idle: SILENT, dead: DEAD, terminating: DEAD };

/** Returns the status of the model's kernel in Jupyter's words; "unknown" where the host does not tell. @param {any} model */
export function kernelStatus(model) {
  return String(model.widget_manager?.kernel?.status ?? "unknown");
}

/** Returns why an answer is not there yet. @param {string} status */
export function waitingText(status) {
  return SENTENCES[status] ?? UNKNOWN;
}

/** Tells whether waiting is of no use. @param {string} status */
export function isDead(status) {
  return SENTENCES[status] === DEAD;
}
