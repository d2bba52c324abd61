import { anyOf, type EndSignal } from "../../domain/waiting/end-signal.ts";
import type { Call } from "../../snapshot/call.ts";
import type { AskedRequest, RunningHooks } from "../../snapshot/call-hooks.ts";
import type { Clock } from "../../domain/clock.ts";
import { abortable, atDeadline, whyEnded } from "../../domain/waiting/wait.ts";

/**
 * The request as the hooks returned it, with the size of its JSON for the input estimate; undefined
 * if it is unchanged. The call is not registered as running yet, so its deadline is enforced here.
 */
export function changedByHooks<Asked extends AskedRequest>(
  call: HookedCall,
  asked: Asked,
  clock: Pick<Clock, "schedule" | "monotonic">,
): Promise<ChangedRequest<Asked> | undefined> | undefined {
  const { hooks } = call;
  return hooks && readByHooks({ ...call, hooks }, asked, clock);
}

type HookedCall = Pick<Call, "hooks" | "signal" | "options" | "receivedAt">;

interface ChangedRequest<Asked extends AskedRequest> {
  readonly request: Asked["request"];
  readonly bodyBytes: number;
}

async function readByHooks<Asked extends AskedRequest>(
  call: HookedCall & { readonly hooks: RunningHooks },
  asked: Asked,
  clock: Pick<Clock, "schedule" | "monotonic">,
): Promise<ChangedRequest<Asked> | undefined> {
  const { hooks, signal } = call;
  const late = new AbortController();
  const cancel = atDeadline(call, clock, (error) => late.abort(error));
  const end = anyOf(signal, late.signal);
  const { request } = await untilEnded(hooks.requestRead(asked), end).finally(cancel);
  if (request === asked.request) return undefined;
  // The caller's own body may be stored next to the parsed request.
  const text = JSON.stringify({ ...request, sent: undefined });
  return { request, bodyBytes: Buffer.byteLength(text) };
}

/** Waits for a hook no longer than its call runs. */
export function untilEnded<Value>(hook: Promise<Value>, signal: EndSignal): Promise<Value> {
  return abortable(hook, signal).catch((error: unknown) => {
    throw signal.aborted ? whyEnded(signal) : error;
  });
}
