// Splits text/event-stream into events, as pieces of it arrive. Lines end with LF or CRLF. No network.

/** @typedef {{event: string, data: string}} ServerEvent */

export class EventParser {
  #lengthMax;
  #rest = "";
  #event = "";
  /** @type {string[]} */
  #data = [];
  #length = 0;

  /** @param {number} lengthMax The most characters that are kept for one event. */
  constructor(lengthMax) {
    this.#lengthMax = lengthMax;
  }

  /** The events that a piece of text completes. Throws a RangeError when an event is too long.
   * @param {string} text @returns {ServerEvent[]} */
  push(text) {
    const lines = text.split("\n");
    lines[0] = this.#rest + lines[0];
    this.#rest = lines.pop() ?? "";
    /** @type {ServerEvent[]} */
    const events = [];
    for (const ended of lines) {
      const line = ended.endsWith("\r") ? ended.slice(0, -1) : ended;
      if (line !== "") {
        this.#take(line);
        continue;
      }
      if (this.#data.length > 0) events.push({ event: this.#event || "message", data: this.#data.join("\n") });
      this.#event = "";
      this.#data = [];
      this.#length = 0;
    }
    if (this.#length + this.#rest.length > this.#lengthMax) throw new RangeError("an event is too long");
    return events;
  }

  /** Takes a line of an event. Comments, ids and retry times are not needed.
   * @param {string} line */
  #take(line) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "event") this.#event = value;
    if (name !== "data") return;
    this.#data.push(value);
    this.#length += value.length;
  }
}
