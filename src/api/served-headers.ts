import { rateLimitHeaders } from "../limits/headers.ts";
import type { StartedCall } from "../pipeline/run-call.ts";

type Served = Pick<StartedCall<unknown>, "admission" | "attempt">;

/** What an answer says beside its body: the limits, which capacity served, and from where. */
export function servedHeaders(
  { admission, attempt }: Served,
  { showsTarget }: { readonly showsTarget: boolean },
): Record<string, string> {
  const { target, model } = attempt.candidate;
  const { waitedMs, position } = attempt.place;
  return {
    ...rateLimitHeaders(admission.state),
    "x-sluice-served-by": admission.capacityClass,
    // The upstream's own identifier stays inside: it may name the operator's account there.
    ...(showsTarget && { "x-sluice-target": `${target.upstream}; model=${model.alias}` }),
    ...(position !== undefined && {
      "x-sluice-queue-position": String(position),
      "x-sluice-queue-wait-ms": String(Math.round(waitedMs)),
    }),
  };
}
