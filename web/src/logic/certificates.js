// Certificates of listeners, from the configuration in force. No DOM.

import { duration } from "./figures.js";

/** @typedef {{listener: string, chain: string, names: string[], subject: string, issuer: string, notAfter: number | null}} Certificate */

const DAY_MS = 86_400_000;
const SOON_MS = 14 * DAY_MS;
const LAST_MS = 3 * DAY_MS;

/** @param {any} configuration @returns {Certificate[]} The next to expire first. */
export function fromFiles(configuration) {
  /** @type {Certificate[]} */
  const all = [];
  for (const listener of configuration?.listeners ?? []) {
    for (const one of listener.tls?.certificates ?? []) {
      if (one.acme) continue;
      all.push({
        listener: listener.name,
        chain: one.chain ?? "",
        names: one.names ?? [],
        subject: one.subject ?? "",
        issuer: one.issuer ?? "",
        notAfter: one.not_after_unix_s == null ? null : one.not_after_unix_s * 1000,
      });
    }
  }
  return all.sort((a, b) => (a.notAfter ?? Infinity) - (b.notAfter ?? Infinity));
}

/** @param {number | null} notAfter @param {number} now @returns {Condition} */
export function expiry(notAfter, now) {
  if (notAfter == null) return { level: "warn", word: "unknown", why: "Its expiry is not known." };
  const left = notAfter - now;
  if (left <= 0) return { level: "bad", word: "expired", why: `It expired ${duration(-left)} ago.` };
  if (left < LAST_MS) return { level: "bad", word: "expires", why: `It expires in ${duration(left)}.` };
  if (left < SOON_MS) return { level: "warn", word: "expires soon", why: `It expires in ${duration(left)}.` };
  return { level: "fine", word: "valid", why: `It is valid for another ${duration(left)}.` };
}
