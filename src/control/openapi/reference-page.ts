import type { Reply } from "../../edge/replies/error-reply.ts";
import { operationErrors } from "./operation-errors.ts";
import { fieldRows, type FieldRow } from "./field-rows.ts";
import type { OperationDescription } from "../operation/operation.ts";

/** All operations on one HTML page, without scripts. */
export function referencePage(operations: readonly OperationDescription[]): Reply {
  const resources = [...new Set(operations.map(({ resource }) => resource))];
  const styleDigest = new Bun.CryptoHasher("sha256").update(style).digest("base64");
  const sections = resources.map((resource) =>
    writeResource(
      resource,
      operations.filter((operation) => operation.resource === resource),
    ),
  );
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sluice admin API</title>
<style>${style}</style>
</head>
<body>
<header>
<h1>Sluice admin API</h1>
<p>JSON over HTTP. Scripts send <code>Authorization: Bearer slc-mgt_...</code>; browsers have a
session and send <code>x-csrf-token</code> with each change. Times are ISO 8601 in UTC. Every change
takes an <code>Idempotency-Key</code>. The same as
<a href="/admin/v1/openapi.json">OpenAPI 3.1</a>.</p>
</header>
<nav aria-label="Resources"><ul>${resources.map(writeLink).join("")}</ul></nav>
<main>${sections.join("\n")}</main>
</body>
</html>
`;
  const headers = {
    "content-type": "text/html; charset=utf-8",
    // Allows only the page's own style.
    "content-security-policy":
      `default-src 'none'; style-src 'sha256-${styleDigest}'; base-uri 'none'; ` +
      "form-action 'none'; frame-ancestors 'none'",
  };
  return { status: 200, headers, body: html };
}

function writeLink(resource: string): string {
  return `<li><a href="#${anchor(resource)}">${escape(resource)}</a></li>`;
}

function writeResource(resource: string, operations: readonly OperationDescription[]): string {
  const articles = operations.map(writeOperation).join("\n");
  return `<section id="${anchor(resource)}"><h2>${escape(resource)}</h2>\n${articles}</section>`;
}

function writeOperation(operation: OperationDescription): string {
  const { id, method, path, summary, description, roles, scope, status, downloads } = operation;
  const fields = operation.answer === undefined ? [] : fieldRows(operation.answer);
  const answer =
    downloads === undefined
      ? writeFields(`Answer ${status}`, fields)
      : `<h4>Answer ${status}</h4><p>${escape(downloads.join(" or "))}</p>`;
  const who =
    roles.length === 0
      ? "For everybody."
      : `For ${roles.join(", ").replaceAll("_", " ")}; tokens need ${scope}.`;
  return `<article id="${id}">
<h3>${method} <code>${escape(path)}</code></h3>
<p><strong>${escape(summary)}.</strong> ${description === undefined ? "" : prose(description)}</p>
<p>${who}</p>
${operation.query === undefined ? "" : writeFields("Query", fieldRows(operation.query))}
${operation.body === undefined ? "" : writeFields("Body", fieldRows(operation.body))}
${writeExample(operation)}
${answer}
${writeErrors(operation)}
</article>`;
}

function writeFields(title: string, rows: readonly FieldRow[]): string {
  if (rows.length === 0) return "";
  const lines = rows.map(
    ({ name, type, isRequired, about }) =>
      `<tr><td><code>${escape(name)}</code></td><td>${escape(type)}</td>` +
      `<td>${isRequired ? "yes" : ""}</td><td>${prose(about)}</td></tr>`,
  );
  return (
    `<details><summary>${title}</summary><div class="wide"><table><thead><tr><th>Field</th>` +
    `<th>Type</th><th>Always</th><th></th></tr></thead><tbody>${lines.join("")}</tbody>` +
    "</table></div></details>"
  );
}

function writeExample({ body, method, path }: OperationDescription): string {
  const examples: unknown = body?.meta()?.["examples"];
  const list: readonly unknown[] = Array.isArray(examples) ? examples : [];
  const [first] = list;
  if (first === undefined) return "";
  return `<pre><code>${escape(`${method} ${path}\n\n${JSON.stringify(first, null, 2)}`)}</code></pre>`;
}

function writeErrors(operation: OperationDescription): string {
  const lines = operationErrors(operation).map(({ status, code, when }) => {
    const label = `${status} ${code ?? "null"}`;
    return `<tr><td><code>${escape(label)}</code></td><td>${prose(when)}</td></tr>`;
  });
  return (
    `<details><summary>Errors</summary><div class="wide"><table><tbody>${lines.join("")}` +
    "</tbody></table></div></details>"
  );
}

function prose(text: string): string {
  return escape(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>");
}

function escape(text: string): string {
  return Bun.escapeHTML(text);
}

function anchor(resource: string): string {
  return resource.toLowerCase().replaceAll(/[^a-z]+/g, "-");
}

const style = `
:root { color-scheme: light dark; --line: #d5d9e0; --soft: #f3f5f8; }
@media (prefers-color-scheme: dark) { :root { --line: #333c48; --soft: #1b222b; } }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 4rem;
  font: 1rem/1.55 system-ui, sans-serif; }
h3 { font-size: 1rem; overflow-wrap: anywhere; }
pre { background: var(--soft); border-radius: 6px; padding: .7rem; }
pre, .wide { overflow-x: auto; }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; list-style: none; padding: 0; }
article { border: 1px solid var(--line); border-radius: 8px; margin: .9rem 0; padding: .9rem; }
summary { cursor: pointer; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .5rem;
  border-bottom: 1px solid var(--line); }
`;
