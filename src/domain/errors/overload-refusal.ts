import { GatewayError } from "./gateway-error.ts";

/** A caller that waits so long helps; all of them coming back at once would not. */
const shortestRetryMs = 1_000;
const longestRetryMs = 2_000;

/** What a call is told that the process has no time for; `jitter` is from 0 to 1. */
export function overloaded(jitter: number): GatewayError {
  const retryMs = Math.round(shortestRetryMs + jitter * (longestRetryMs - shortestRetryMs));
  return new GatewayError("model_unavailable", {
    message: "The gateway has too much to do at the moment. Please retry your request.",
    headers: {
      "retry-after": String(Math.ceil(retryMs / 1_000)),
      "retry-after-ms": String(retryMs),
    },
    explanation: {
      rule: "overloaded",
      summary:
        "The process had more to do than it can, and refused a share of the calls, least " +
        "important first: spillover, then on-demand, provisioned ones last.",
    },
  });
}
