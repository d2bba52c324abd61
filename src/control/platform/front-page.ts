import type { Route } from "../../edge/dispatch/route.ts";
import type { Reply } from "../../edge/replies/error-reply.ts";

const reference = "/admin/v1/docs";
const text = `This is the admin listener of Sluice.

${reference}           reference of the admin API, for browsers
/admin/v1/openapi.json   the same as OpenAPI
/metrics                 metrics for Prometheus
/healthz, /readyz        health

The API for applications is at the other listener (listen.data).
`;

/** `/` of the admin listener: leads browsers to the reference, and tells programs the paths. */
export const frontPage: Route = {
  method: "GET",
  path: "/",
  access: "public",
  handle({ request }) {
    const isBrowser = (request.headers.get("accept") ?? "").includes("text/html");
    if (isBrowser) return { status: 302, headers: { location: reference }, body: "" };
    return { status: 200, headers: { "content-type": "text/plain; charset=utf-8" }, body: text };
  },
};

/** `GET /metrics`, in Prometheus' text format. */
export function createMetricsPage(render: () => string | Promise<string>): () => Promise<Reply> {
  return async () => ({
    status: 200,
    headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" },
    body: await render(),
  });
}
