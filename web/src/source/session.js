// The session by which the page authenticates. The token is exchanged for an HttpOnly cookie and a key. Browsers send a
// cookie to every port of a host, so the cookie alone gives no access: each request also carries the key, which is kept
// in localStorage, whose origin includes the port. The token itself is kept nowhere.

const PATH = "/ui/session";
const STORED = "weir-session";
const TIMEOUT_MS = 5000;

export class Session {
  /** @type {string | null} Used when the browser allows no storage: the session then lasts until the page is closed. */
  #unstored = null;

  /** @returns {string | null} */
  get key() {
    try {
      return localStorage.getItem(STORED) ?? this.#unstored;
    } catch {
      return this.#unstored;
    }
  }

  /** Headers that a request needs. @returns {Record<string, string>} */
  headers() {
    const key = this.key;
    return key == null ? {} : { "weir-session": key };
  }

  /** Forgets a key that was refused, unless another tab has stored a newer one.
   * @param {string | null} key */
  forget(key) {
    if (this.key !== key) return;
    this.#unstored = null;
    this.#discard();
  }

  #discard() {
    try {
      localStorage.removeItem(STORED);
    } catch {
      // Nothing was stored.
    }
  }

  /** Exchanges the token for a session.
   * @param {string} token @returns {Promise<string | null>} Why it failed, or null. */
  async signIn(token) {
    try {
      const answer = await this.#send("POST", { token });
      if (answer.ok) return this.#keep((await answer.json()).key);
      if (answer.status === 401) return "The token is wrong.";
      return `The balancer answered ${answer.status}.`;
    } catch {
      return "The admin API cannot be reached.";
    }
  }

  /** Ends the session, here in any case. @returns {Promise<string>} What to tell the reader. */
  async signOut() {
    const key = this.key;
    let said = "You are signed out.";
    try {
      const answer = await this.#send("DELETE", null);
      if (!answer.ok && answer.status !== 401)
        said = `The balancer answered ${answer.status}; this browser has forgotten the key.`;
    } catch {
      said = "The admin API cannot be reached; this browser has forgotten the key.";
    }
    this.forget(key);
    return said;
  }

  /** @param {unknown} key @returns {string | null} */
  #keep(key) {
    if (typeof key !== "string" || key === "") return "The balancer's answer contains no session.";
    this.#unstored = key;
    try {
      localStorage.setItem(STORED, key);
    } catch {
      // Kept above; an older key must not come before it.
      this.#discard();
    }
    return null;
  }

  /** @param {string} method @param {object | null} body */
  #send(method, body) {
    return fetch(PATH, {
      method,
      headers: { ...this.headers(), "weir-request": "1", ...(body && { "content-type": "application/json" }) },
      body: body && JSON.stringify(body),
      credentials: "same-origin",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  }
}
