// The colours: those of the system, or chosen by the reader. The choice is all that the page keeps in the browser.

export const THEMES = ["auto", "light", "dark"];
const KEY = "weir-theme";

/** The reader's choice. @returns {string} */
export function chosenTheme() {
  return document.documentElement.dataset.theme ?? "auto";
}

/** What is drawn: charts draw with colours of their own, and need to know. @returns {"light" | "dark"} */
export function shownTheme() {
  const chosen = chosenTheme();
  const dark = chosen === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : chosen === "dark";
  return dark ? "dark" : "light";
}

/** @param {string} theme */
export function chooseTheme(theme) {
  document.documentElement.dataset.theme = theme;
  dispatchEvent(new Event(KEY));
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Storage is switched off: the choice lasts until the page is closed.
  }
}

/** Applies the kept choice, before anything is drawn. */
export function restoreTheme() {
  let theme = null;
  try {
    theme = localStorage.getItem(KEY);
  } catch {
    // As above.
  }
  document.documentElement.dataset.theme = theme && THEMES.includes(theme) ? theme : "auto";
}

/** @param {() => void} listener @returns {() => void} */
export function onTheme(listener) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  addEventListener(KEY, listener);
  system.addEventListener("change", listener);
  return () => {
    removeEventListener(KEY, listener);
    system.removeEventListener("change", listener);
  };
}
