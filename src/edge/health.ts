import { textReply, type Reply } from "./replies/reply.ts";

/** `GET /healthz`: the process runs. */
export function health(): Reply {
  return textReply(200, "ok\n");
}

/** `GET /readyz`: the process accepts new calls. The reason for a 503 is for operators. */
export function createReadiness(whyNotReady: () => string | undefined): () => Reply {
  return () => {
    const reason = whyNotReady();
    return reason === undefined ? textReply(200, "ready\n") : textReply(503, `${reason}\n`);
  };
}
