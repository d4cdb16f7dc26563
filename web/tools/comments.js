// Compares the tokens of every script with and without the lines that strip.js takes for comments, and fails if they
// differ: its rule knows lines, not the language, and a line of a template literal may look like a comment.

import { readFileSync } from "node:fs";
import { SyntaxKind } from "typescript/unstable/ast";
import { createScanner } from "typescript/unstable/ast/scanner";
import { served } from "./manifest.js";
import { withoutComments } from "./strip.js";

/** After these a slash divides; after any other token it begins a regular expression. */
const OPERANDS = new Set([
  SyntaxKind.ThisKeyword,
  SyntaxKind.NumericLiteral,
  SyntaxKind.StringLiteral,
  SyntaxKind.NoSubstitutionTemplateLiteral,
  SyntaxKind.TemplateTail,
  SyntaxKind.CloseParenToken,
  SyntaxKind.CloseBracketToken,
  SyntaxKind.CloseBraceToken,
]);

/** The tokens of a script, each with its line.
 * @param {string} text @returns {string[]} */
function tokens(text) {
  const scanner = createScanner(true, undefined, text);
  /** @type {string[]} */
  const found = [];
  /** Open braces; true: a template literal goes on after it. @type {boolean[]} */
  const braces = [];
  let operand = false;
  let line = 1;
  let counted = 0;
  for (let kind = scanner.scan(); kind !== SyntaxKind.EndOfFile; kind = scanner.scan()) {
    const slash = kind === SyntaxKind.SlashToken || kind === SyntaxKind.SlashEqualsToken;
    if (slash && !operand) kind = scanner.reScanSlashToken();
    if (kind === SyntaxKind.CloseBraceToken && braces.pop()) kind = scanner.reScanTemplateToken(false);
    if (kind === SyntaxKind.OpenBraceToken) braces.push(false);
    if (kind === SyntaxKind.TemplateHead || kind === SyntaxKind.TemplateMiddle) braces.push(true);
    const start = scanner.getTokenStart();
    line += text.slice(counted, start).split("\n").length - 1;
    counted = start;
    if (kind === SyntaxKind.Unknown || scanner.isUnterminated()) throw new Error(`line ${line} has no known token`);
    found.push(`${line}: ${scanner.getTokenText()}`);
    // A word such as `from` is a keyword in some places only.
    operand = OPERANDS.has(kind) || scanner.isIdentifier();
  }
  return found;
}

let failed = false;
for (const { path, url, own } of served()) {
  if (!own || !path.endsWith(".js")) continue;
  const text = readFileSync(url, "utf8");
  const [whole, rest] = [tokens(text), tokens(withoutComments(text, true))];
  const at = whole.findIndex((token, place) => token !== rest[place]);
  if (at < 0 && whole.length === rest.length) continue;
  failed = true;
  console.error(`${path}: without its comments, another token follows line ${whole[at] ?? "at the end"}`);
}
process.exit(failed ? 1 : 0);
