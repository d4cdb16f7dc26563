// Names and matches in the tree of the configuration. No DOM.

/** What stands for a member: its key, or the name of an element of a list.
 * @param {string} key @param {any} member */
export function titleOf(key, member) {
  if (!/^\d+$/.test(key)) return key;
  const name = member?.name ?? member?.address ?? member?.service ?? member?.chain;
  return typeof name === "string" ? name : `#${Number(key) + 1}`;
}

/** Whether a key or value inside contains the text, which is in lower case.
 * @param {any} value @param {string} wanted @returns {boolean} */
export function matches(value, wanted) {
  if (value === null) return false;
  if (typeof value !== "object") return String(value).toLowerCase().includes(wanted);
  return Object.entries(value).some(
    ([key, member]) => titleOf(key, member).toLowerCase().includes(wanted) || matches(member, wanted),
  );
}
