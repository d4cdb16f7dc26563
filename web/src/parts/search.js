// The search: a dialog that the key / opens, with results that the arrow keys choose.

import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { PAGES, link } from "../logic/address.js";
import { plural } from "../logic/figures.js";
import { found, items } from "../logic/search.js";
import { usePage, useWatch } from "../use.js";

export function Search() {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const pressed = (/** @type {KeyboardEvent} */ event) => {
      const { key, ctrlKey, metaKey, altKey } = event;
      const target = /** @type {Element | null} */ (event.target instanceof Element ? event.target : null);
      if (key !== "/" || ctrlKey || metaKey || altKey) return;
      // Where text is written, and in the questions of dialogs, the key is a letter.
      if (target?.closest("input:not([type=range]), textarea, select, dialog")) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  return html`<button type="button" class="theme" aria-keyshortcuts="/" onClick=${() => setOpen(true)}>Search <kbd>/</kbd></button>
    ${open && html`<${Finder} onClose=${() => setOpen(false)} />`}`;
}

/** @param {{onClose: () => void}} props */
function Finder({ onClose }) {
  const { board, address } = usePage();
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const configuration = useWatch("configuration").value?.configuration;
  const causes = useWatch("causes").value?.causes;
  const requests = useWatch("requests").value?.requests;
  const ended = useWatch("requests/ended").value?.requests;
  const { services, findings } = board;
  useEffect(() => dialog.current?.showModal(), []);
  const all = useMemo(
    () =>
      items({
        services,
        findings: findings?.findings ?? [],
        configuration,
        causes: causes ?? [],
        requests: requests ?? [],
        ended: ended ?? [],
        pages: PAGES,
      }),
    [services, findings, configuration, causes, requests, ended],
  );
  const { shown, more } = useMemo(() => found(all, text), [all, text]);
  const chosen = Math.min(at, shown.length - 1);
  const go = (/** @type {import("../logic/search.js").Item | undefined} */ item) => {
    if (!item) return;
    dialog.current?.close();
    location.hash = link(address, item.page, item.name);
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) {
      event.preventDefault();
      setAt((Math.max(0, chosen) + move + shown.length) % Math.max(1, shown.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      go(shown[chosen]);
    }
  };
  const state =
    text.trim() === ""
      ? "Services, servers, routes, causes, findings, requests, pages"
      : shown.length === 0
        ? "Nothing has this in its name."
        : more > 0
          ? `and ${plural(more, "more result")}`
          : plural(shown.length, "result");
  return html`<dialog ref=${dialog} class="search" onClose=${onClose} aria-label="Search">
    <input type="search" role="combobox" aria-label="Search" aria-expanded=${shown.length > 0} aria-controls="results" aria-autocomplete="list"
      aria-activedescendant=${shown[chosen] ? `result-${chosen}` : undefined} autocomplete="off" spellcheck=${false} autofocus
      placeholder="Name, address or request id" value=${text} onKeyDown=${pressed}
      onInput=${(/** @type {any} */ event) => (setText(event.currentTarget.value), setAt(0))} />
    <ul id="results" role="listbox" aria-label="Results">${shown.map(
      (item, place) => html`<li key=${place} id=${`result-${place}`} role="option" aria-selected=${place === chosen}
        onClick=${() => go(item)}><span class="kind">${item.kind}</span><span class="label">${item.label}</span><span class="soft">${item.detail}</span></li>`,
    )}</ul>
    <p class="soft" role="status">${state}</p>
  </dialog>`;
}
