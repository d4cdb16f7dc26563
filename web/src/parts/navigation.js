// The list of pages.

import { html, useEffect, useRef } from "../html.js";
import { PAGES, link } from "../logic/address.js";
import { isSerious } from "../logic/findings.js";
import { usePage } from "../use.js";
import { Mark } from "./mark.js";

export function Navigation() {
  const { board, address } = usePage();
  const current = address.page === "service" ? "services" : address.page;
  const serious = (board.findings?.findings ?? []).filter(isSerious);
  const level = serious.some((one) => one.severity === "critical") ? "bad" : "warn";
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    // On a narrow screen the list scrolls sideways.
    const here = /** @type {HTMLElement | null} */ (list.current?.querySelector("[aria-current]") ?? null);
    if (list.current && here) list.current.scrollLeft = here.offsetLeft - list.current.offsetLeft - 80;
  }, [current]);
  return html`<nav aria-label="Pages"><b>Weir</b><ul ref=${list}>${PAGES.map(
    (page) => html`<li>
    <a href=${link(address, page)} aria-current=${page === current ? "page" : undefined}>
      <span>${page[0].toUpperCase() + page.slice(1)}</span>
      ${page === "findings" && serious.length > 0 && html`<span class=${"state " + level}><${Mark} kind=${level} />${serious.length}</span>`}
    </a></li>`,
  )}</ul></nav>`;
}
