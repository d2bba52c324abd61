import type { Reply } from "../../edge/replies/error-reply.ts";

/** `GET /metrics`, in Prometheus' text format. */
export function createMetricsPage(render: () => string | Promise<string>): () => Promise<Reply> {
  return async () => ({
    status: 200,
    headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" },
    body: await render(),
  });
}
