import { GatewayError } from "./gateway-error.ts";
import { retryHeaders } from "../limits/headers.ts";

/** Spread, so that refused callers do not all come back at once. */
const shortestRetryMs = 1_000;

const longestRetryMs = 2_000;

/** The error of a call that is shed under overload; `jitter` is from 0 to 1. */
export function overloaded(jitter: number): GatewayError {
  const retryMs = Math.round(shortestRetryMs + jitter * (longestRetryMs - shortestRetryMs));
  return new GatewayError("model_unavailable", {
    message: "The gateway is overloaded at the moment. Please retry your request.",
    headers: retryHeaders(retryMs),
    explanation: {
      rule: "overloaded",
      summary:
        "Load bound: the concurrent calls of the process are bounded, and the bound falls while " +
        "its loop is late. Spillover is refused first, then on-demand, provisioned last.",
    },
  });
}
