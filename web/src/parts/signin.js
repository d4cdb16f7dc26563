// Asks for the admin API's token and exchanges it for a session. The token is not kept.

import { html, useState } from "../html.js";
import { usePage } from "../use.js";

export function SignIn() {
  const { source, board } = usePage();
  const [state, setState] = useState({ busy: false, failure: "" });
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    const input = event.currentTarget.elements.token;
    setState({ busy: true, failure: "" });
    const failure = await source.signIn?.(input.value);
    input.value = "";
    setState({ busy: false, failure: failure ?? "" });
  };
  return html`<section class="card signin"><h1>Sign in</h1>
    <p>This balancer's admin API requires a token: the content of its <code>token_file</code>.</p>
    ${board.connection.why && html`<p role="status">${board.connection.why}</p>`}
    <form onSubmit=${submit}>
      <label>Token<input name="token" type="password" autocomplete="current-password" required autofocus /></label>
      <button class="main" disabled=${state.busy}>${state.busy ? "Working…" : "Sign in"}</button>
      ${state.failure && html`<p class="warning" role="alert">${state.failure}</p>`}
    </form></section>`;
}
