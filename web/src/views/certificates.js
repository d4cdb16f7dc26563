// Certificates of listeners, when they expire, and how renewal goes.

import { html } from "../html.js";
import { date, duration, moment } from "../logic/figures.js";
import { expiry, fromFiles } from "../logic/certificates.js";
import { usePage, useWatch } from "../use.js";
import { Rows } from "../parts/rows.js";
import { State } from "../parts/mark.js";
import { Unavailable } from "../parts/unavailable.js";

/** @typedef {import("../logic/certificates.js").Certificate} Certificate */
/** @typedef {import("../api.js").AcmeCertificate} AcmeCertificate */

export function CertificatesView() {
  const { board } = usePage();
  const { value, error } = useWatch("configuration");
  const files = fromFiles(value?.configuration);
  const acme = board.status?.acme;
  return html`<h1>Certificates</h1>
    <${Unavailable} path="configuration" why=${error} />
    ${
      acme &&
      html`<section class="card" aria-labelledby="acme"><h2 id="acme">By ACME <span>${acme.directory}</span></h2>
      ${!acme.running && html`<p class="warning">The thread that renews certificates does not run: nothing is renewed.</p>`}
      <${Rows} rows=${acme.certificates} caption="Certificates by ACME" keyOf=${(/** @type {AcmeCertificate} */ one) => one.names.join()}
        columns=${acmeColumns(board.now)} detail=${failure} /></section>`
    }
    <section class="card" aria-labelledby="files"><h2 id="files">From files <span>in force since the last reload</span></h2>
      <${Rows} rows=${files} caption="Certificates from files" keyOf=${(/** @type {Certificate} */ one) => one.listener + one.chain} columns=${fileColumns(board.now)}
        empty=${value ? "No listener has a certificate from a file." : error == null ? "Loading…" : "Certificates from files are not known."} /></section>`;
}

/** @param {number} now @returns {TableColumn<Certificate>[]} */
function fileColumns(now) {
  return [
    {
      title: "Names",
      kind: "text",
      cell: (one) => one.names.join(", ") || one.subject,
      order: (one) => one.names.join(),
    },
    {
      title: "State",
      cell: (one) => html`<${State} condition=${expiry(one.notAfter, now)} />`,
      order: (one) => one.notAfter ?? 0,
    },
    {
      title: "Expires",
      cell: (one) => (one.notAfter == null ? "–" : date(one.notAfter)),
      order: (one) => one.notAfter ?? 0,
    },
    {
      title: "Left",
      number: true,
      cell: (one) => (one.notAfter == null ? "–" : one.notAfter > now ? duration(one.notAfter - now) : "expired"),
      order: (one) => one.notAfter ?? 0,
    },
    { title: "Listener", kind: "opt", cell: (one) => one.listener, order: (one) => one.listener },
    { title: "Issuer", kind: "opt text", cell: (one) => one.issuer },
    { title: "File", kind: "opt mono", cell: (one) => one.chain },
  ];
}

/** @param {number} now @returns {TableColumn<AcmeCertificate>[]} */
function acmeColumns(now) {
  const at = (/** @type {string | null} */ time) => (time == null ? null : Date.parse(time));
  return [
    { title: "Names", kind: "text", cell: (one) => one.names.join(", "), order: (one) => one.names.join() },
    {
      title: "State",
      cell: (one) =>
        html`<${State} condition=${
          one.failure ? { level: "bad", word: "failed", why: one.failure.what } : expiry(at(one.not_after), now)
        } />`,
    },
    { title: "Expires", cell: (one) => (one.not_after == null ? "not issued yet" : date(Date.parse(one.not_after))) },
    {
      title: "Next attempt",
      kind: "opt",
      cell: (one) => (one.next_attempt == null ? "–" : moment(Date.parse(one.next_attempt), now)),
    },
    { title: "Ordered by", kind: "opt", cell: (one) => one.ordered_by ?? "–" },
    { title: "Renewal time set by", kind: "opt", cell: (one) => (one.renewal_by_authority ? "the authority" : "Weir") },
  ];
}

/** @param {AcmeCertificate} one */
function failure({ failure }) {
  return (
    failure &&
    html`<span>${failure.what} (${failure.count} times)${failure.refused.map((refusal) => html`<div>${refusal.name}: ${refusal.why}</div>`)}</span>`
  );
}
