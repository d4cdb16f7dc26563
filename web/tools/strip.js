// What a balancer leaves out of the files that it embeds: lines that are only comments. Empty lines replace them, so that
// line numbers in the browser's console are those of the sources. crates/dashboard/build.rs has the same rule.

/** @param {string} text @param {boolean} script Whether `//` begins a comment. */
export function withoutComments(text, script) {
  let inside = false;
  return text
    .split("\n")
    .map((line) => {
      const own = line.trim();
      // Code may follow a comment in its line: "/** @type {Row} */ (one)".
      if (own.startsWith("/*") && (!own.includes("*/") || own.endsWith("*/"))) inside = true;
      const comment = inside || (script && own.startsWith("//"));
      if (own.endsWith("*/")) inside = false;
      return comment ? "" : line;
    })
    .join("\n");
}
