// The configuration in force, with every default filled in, as a tree to open and to search.

import { html, useState } from "../html.js";
import { usePage, useWatch } from "../use.js";
import { Unavailable } from "../parts/unavailable.js";
import { titleOf, matches } from "../logic/tree.js";

export function ConfigurationView() {
  const { board } = usePage();
  const { value, error } = useWatch("configuration");
  const [filter, setFilter] = useState("");
  const wanted = filter.trim().toLowerCase();
  return html`<h1>Configuration</h1>
    <p class="lead">Number ${board.status?.generation ?? "–"}, as Weir uses it, with every default filled in. Secrets are not shown.</p>
    <${Unavailable} path="configuration" why=${error} />
    <section class="card" aria-label="Configuration in force">
      ${
        !value
          ? html`<p class="empty">${error == null ? "Loading…" : "The configuration is not known."}</p>`
          : html`
        <div class="filter"><input type="search" value=${filter} placeholder="Find a key or value" aria-label="Find a key or value"
          onInput=${(/** @type {any} */ event) => setFilter(event.currentTarget.value)} /></div>
        <div class="tree"><${Members} value=${value.configuration} wanted=${wanted} /></div>`
      }
    </section>`;
}

/** @param {{value: Record<string, any> | any[], wanted: string}} props */
function Members({ value, wanted }) {
  return html`<ul>${Object.entries(value).map(([name, member]) => {
    const label = titleOf(name, member);
    // What is inside a match is shown as a whole; elsewhere only the way to matches.
    const here = wanted !== "" && label.toLowerCase().includes(wanted);
    if (wanted && !here && !matches(member, wanted)) return null;
    return html`<li key=${name}><${Member} label=${label} member=${member} wanted=${here ? "" : wanted} open=${wanted !== ""} /></li>`;
  })}</ul>`;
}

/** @param {{label: string, member: any, wanted: string, open: boolean}} props */
function Member({ label, member, wanted, open }) {
  const [opened, setOpened] = useState(false);
  if (member === null || typeof member !== "object" || Object.keys(member).length === 0) {
    const text = member === null ? "not set" : typeof member === "object" ? "none" : String(member);
    return html`<span class="key-name">${label}</span> <span class=${member === null ? "soft" : "mono"}>${text}</span>`;
  }
  const many = Array.isArray(member) ? ` (${member.length})` : "";
  // Members are drawn when they are opened: a configuration may have thousands.
  return html`<details open=${open || opened} onToggle=${(/** @type {any} */ event) => setOpened(event.currentTarget.open)}>
    <summary>${label}<span class="soft">${many}</span></summary>
    ${(open || opened) && html`<${Members} value=${member} wanted=${wanted} />`}
  </details>`;
}
