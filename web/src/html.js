// Preact and htm under one name, so that views have a single import.
//
// Names, paths and findings come from clients and configurations. All text and all labels of the page are made here, so
// this is the one place that makes characters visible which would mislead a reader.

import { h } from "../vendor/preact.js";
import htm from "../vendor/htm.js";
import { visible } from "./logic/figures.js";

export { render, Fragment } from "../vendor/preact.js";
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";

/** Attributes that are read as text. */
const LABELS = ["title", "aria-label", "placeholder"];

/** @param {any} type @param {any} props @param {any[]} children */
function element(type, props, ...children) {
  if (typeof type === "string" && props) {
    for (const name of LABELS) if (typeof props[name] === "string") props[name] = visible(props[name]);
  }
  return h(type, props, ...children.map(shown));
}

/** @param {any} child @returns {any} */
function shown(child) {
  if (typeof child === "string") return visible(child);
  return Array.isArray(child) ? child.map(shown) : child;
}

export const html = htm.bind(element);
