// Requests to the admin API, with the session's key.

/** @typedef {import("./session.js").Session} Session */

export const API = "/api/v1/";
const TIMEOUT_MS = 5000;
/** A reload or an upgrade takes longer than a read. */
const ACT_TIMEOUT_MS = 20_000;

/** The balancer answered, but not with what was asked for. */
export class Refused extends Error {}
/** The balancer requires a token, or the session has ended. */
export class SignedOut extends Error {}

export class Api {
  #session;
  #signedOut;

  /** @param {Session} session @param {(key: string | null) => void} signedOut Called with the key that was refused. */
  constructor(session, signedOut) {
    this.#session = session;
    this.#signedOut = signedOut;
  }

  /** Reads a path. Throws Refused, SignedOut, or what fetch throws.
   * @param {string} path @returns {Promise<any>} */
  async read(path) {
    const answer = await this.#send(path, { headers: { accept: "application/json" }, cache: "no-store" }, TIMEOUT_MS);
    if (answer.status === 401) throw new SignedOut();
    const body = await json(answer);
    if (answer.ok && body != null) return body;
    throw new Refused(body?.message ?? `the balancer answered ${answer.status} to ${API}${path}`);
  }

  /** Changes something.
   * @param {string} path @param {object | null} body @returns {Promise<Outcome>} */
  async act(path, body) {
    try {
      const answer = await this.#post(path, body);
      const value = await json(answer);
      return { ok: answer.ok, message: value?.message ?? (answer.ok ? "" : `The balancer answered ${answer.status}.`) };
    } catch (error) {
      const why = isTimeout(error) ? `No answer within ${ACT_TIMEOUT_MS / 1000} s` : "The admin API cannot be reached";
      return { ok: false, message: `${why}; it is not known whether the change took effect.` };
    }
  }

  /** Asks what a change would do. @param {string} path @param {object} body */
  async preview(path, body) {
    try {
      const answer = await this.#post(path, { ...body, dry_run: true });
      return answer.ok ? await json(answer) : null;
    } catch {
      return null;
    }
  }

  /** @param {string} path @param {object | null} body */
  #post(path, body) {
    const headers = { "weir-request": "1", ...(body && { "content-type": "application/json" }) };
    return this.#send(path, { method: "POST", headers, body: body && JSON.stringify(body) }, ACT_TIMEOUT_MS);
  }

  /** @param {string} path @param {RequestInit & {headers: Record<string, string>}} init @param {number} timeoutMs */
  async #send(path, init, timeoutMs) {
    const key = this.#session.key;
    const answer = await fetch(API + path, {
      ...init,
      headers: { ...this.#session.headers(), ...init.headers },
      credentials: "same-origin",
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (answer.status === 401) this.#signedOut(key);
    return answer;
  }
}

/** The body of an answer; null if it is not JSON.
 * @param {Response} answer @returns {Promise<any>} */
async function json(answer) {
  try {
    return await answer.json();
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** @param {unknown} error */
function isTimeout(error) {
  return error instanceof DOMException && error.name === "TimeoutError";
}

/** Why a read failed, for a person, and whether there was no answer at all.
 * @param {unknown} error @returns {{why: string, answered: boolean}} */
export function explained(error) {
  if (error instanceof Refused) return { why: error.message, answered: true };
  const why = isTimeout(error) ? `No answer within ${TIMEOUT_MS / 1000} s.` : "The admin API cannot be reached.";
  return { why, answered: false };
}
