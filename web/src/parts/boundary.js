// Keeps a mistake in one view from emptying the page.

import { Component } from "../../vendor/preact.js";
import { html } from "../html.js";

/** @typedef {{children?: any, whole?: boolean}} Props Whole: no other view is left. */

/** @extends {Component<Props, {failure: string | null}>} */
export class Boundary extends Component {
  /** @param {Props} props */
  constructor(props) {
    super(props);
    this.state = { failure: null };
  }

  /** @param {unknown} error */
  static getDerivedStateFromError(error) {
    return { failure: String(error) };
  }

  render() {
    if (this.state.failure == null) return this.props.children;
    return html`<section class="card" role="alert"><h1>This view could not be drawn</h1>
      <p>${this.state.failure}</p><p>${this.props.whole ? "" : "The other views still work. "}Reloading the page may help; please report it with the version of Weir.</p></section>`;
  }
}
