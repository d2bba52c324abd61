import type { Reply } from "../../edge/replies/reply.ts";

/** `GET /metrics`, in Prometheus' text format. */
export function createMetricsPage(render: () => string): () => Reply {
  return () => ({
    status: 200,
    headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" },
    body: render(),
  });
}
