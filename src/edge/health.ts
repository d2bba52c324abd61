import { textReply, type Reply } from "./replies/reply.ts";

/** `GET /healthz`: the process runs. */
export function health(): Reply {
  return textReply(200, "ok\n");
}

/** `GET /readyz`: the process accepts new calls. The reason for a 503 is for operators. */
export function createReadiness(
  whyNotReady: () => string | undefined,
  howDegraded: () => string | undefined,
): () => Reply {
  return () => {
    const reason = whyNotReady();
    if (reason !== undefined) return textReply(503, `${reason}\n`);
    const lack = howDegraded();
    return textReply(200, lack === undefined ? "ready\n" : `ready, degraded: ${lack}\n`);
  };
}
