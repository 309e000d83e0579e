// Requests to the kernel: each has an id of its view, and an answer to one that was replaced is dropped.

/**
 * @typedef {{kind: string, id: string, message?: string, [name: string]: any}} Answer
 */

/**
 * Makes a requester for one view. `ask(topic, message)` replaces what the same topic still waits for; its promise resolves
 * with the answer, however late, with null if it was replaced meanwhile, and rejects on an error answer. A busy kernel
 * answers late: every `patience` ms without an answer, `onWait` is called, until no request is open any more.
 * @param {(message: object) => void} send
 * @param {{name: string, patience?: number, onWait?: () => void}} options
 */
export function createRequests(send, { name, patience = 1_500, onWait = () => {} }) {
  /** @type {Map<string, {topic: string, done: (answer: Answer | null) => void, fail: (error: Error) => void}>} */
  const open = new Map();
  let count = 0;

  /** @param {string} topic */
  function drop(topic) {
    for (const [id, request] of open) {
      if (request.topic === topic) {
        open.delete(id);
        request.done(null);
      }
    }
  }

  return {
    /** @param {string} topic @param {object} message @returns {Promise<Answer | null>} */
    ask(topic, message) {
      drop(topic);
      const id = `${name}-${++count}`;
      return new Promise((resolve, reject) => {
        const timer = setInterval(onWait, patience);
        open.set(id, {
          topic,
          done: (answer) => (clearInterval(timer), resolve(answer)),
          fail: (error) => (clearInterval(timer), reject(error)),
        });
        send({ ...message, id });
      });
    },

    /** Takes an answer; those to other views and to dropped requests pass by. @param {Answer} answer */
    receive(answer) {
      const request = open.get(answer.id);
      if (!request) return;
      open.delete(answer.id);
      if (answer.kind === "error") request.fail(new Error(answer.message));
      else request.done(answer);
    },

    /** Drops every open request. */
    close() {
      for (const request of new Set([...open.values()].map(({ topic }) => topic))) drop(request);
    },

    get waiting() {
      return open.size;
    },
  };
}
