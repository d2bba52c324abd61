import type { AdjustedFields } from "../domain/chat/adjusted-fields.ts";
import { rateLimitHeaders } from "../domain/limits/headers.ts";
import type { StartedCall } from "../call/run-call.ts";

type Served = Pick<StartedCall<unknown>, "admission" | "attempt">;

/**
 * Headers of an answer: the limits, the capacity class, the target, and parameters that were
 * adjusted for the upstream.
 */
export function servedHeaders(
  { admission, attempt }: Served,
  { showsTarget }: { readonly showsTarget: boolean },
): Record<string, string> {
  const { target, model } = attempt.candidate;
  const { waitedMs, position } = attempt.place;
  return {
    ...rateLimitHeaders(admission.state),
    "x-sluice-served-by": admission.capacityClass,
    // The upstream's own model identifier is left out: it may name the operator's account there.
    ...(showsTarget && { "x-sluice-target": `${target.upstream}; model=${model.alias}` }),
    ...(attempt.adjusted.size > 0 && {
      "x-sluice-adjusted-parameters": writeAdjusted(attempt.adjusted),
    }),
    ...(position !== undefined && {
      "x-sluice-queue-position": String(position),
      "x-sluice-queue-wait-ms": String(Math.round(waitedMs)),
    }),
  };
}

/** `frequency_penalty=dropped, temperature=1`: a dictionary of RFC 9651. */
function writeAdjusted(fields: AdjustedFields): string {
  return [...fields].map(([field, sent]) => `${field}=${sent}`).join(", ");
}
