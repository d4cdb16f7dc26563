// What the live source uses of a browser, replaced for tests: fetch, storage, visibility, timers.

const page = { hidden: false, changed: /** @type {() => void} */ (() => {}) };
/** @type {Map<string, string>} */
const stored = new Map();
const intervals = /** @type {NodeJS.Timeout[]} */ ([]);
const real = globalThis.setInterval;

/** @typedef {{status: number, body?: any, headers?: Record<string, string>, stream?: ReadableStream<Uint8Array>}} Answer Status 0: no connection. */

export const browser = {
  stored,
  asked: /** @type {string[]} */ ([]),
  /** @type {(path: string, init: any) => Answer} */
  respond: () => ({ status: 200, body: {} }),
  /** @param {boolean} hidden */
  hide(hidden) {
    page.hidden = hidden;
    page.changed();
  },
  /** Forgets the sources of the test before. */
  reset() {
    intervals.splice(0).forEach((timer) => clearInterval(timer));
    stored.clear();
    browser.asked = [];
    browser.respond = () => ({ status: 200, body: {} });
  },
};

Object.assign(globalThis, {
  document: {
    get hidden() {
      return page.hidden;
    },
    addEventListener(/** @type {string} */ _name, /** @type {() => void} */ listener) {
      page.changed = listener;
    },
  },
  localStorage: {
    getItem: (/** @type {string} */ key) => stored.get(key) ?? null,
    setItem: (/** @type {string} */ key, /** @type {string} */ value) => stored.set(key, value),
    removeItem: (/** @type {string} */ key) => stored.delete(key),
  },
  setInterval: (/** @type {() => void} */ call, /** @type {number} */ ms) => {
    const timer = real(call, ms);
    intervals.push(timer);
    return timer;
  },
  fetch: async (/** @type {string} */ path, /** @type {any} */ init) => {
    browser.asked.push(`${init.method ?? "GET"} ${path}`);
    const { status, body, headers = {}, stream } = browser.respond(path, init);
    if (status === 0) throw new TypeError("no connection");
    const reader = stream?.getReader();
    // As in a browser, a read ends with an error when the request is aborted.
    const aborted = new Promise((_, reject) =>
      init.signal?.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError"))),
    );
    aborted.catch(() => {});
    return {
      status,
      ok: status < 300,
      headers: new Headers(headers),
      json: async () => body,
      body: reader && { getReader: () => ({ read: () => Promise.race([reader.read(), aborted]) }) },
    };
  },
});

/** Waits until something holds, at most 15 s: a busy machine reads more slowly, and rests longer after it.
 * @param {() => boolean} holds */
export async function until(holds) {
  for (let turn = 0; turn < 750 && !holds(); turn += 1) await wait(20);
}

export const wait = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A stream of events that a test writes. */
export function pipe() {
  const { readable, writable } = new TransformStream();
  const writer = writable.getWriter();
  const encoder = new TextEncoder();
  const send = (/** @type {string} */ text) => void writer.write(encoder.encode(text)).catch(() => {});
  return {
    readable,
    send,
    /** @param {string} event @param {unknown} data */
    event: (event, data) => send(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
    end: () => void writer.close().catch(() => {}),
  };
}
