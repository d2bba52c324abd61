import { readMark, type RepeatMark } from "../idempotency/request-names.ts";
import { parsedFactor } from "../edge/body/read-body.ts";
import { usdOfNano } from "../domain/money/usd.ts";
import type { KeyCall } from "../edge/dispatch/route.ts";
import { type JsonBody, parseJson } from "./request/parse-json.ts";
import type { CallServices } from "../call/services.ts";
import type { StoredResponses } from "../idempotency/stored-responses.ts";
import type { Repeats } from "../idempotency/repeatable-calls.ts";
import { type AdjustedFields, nothingAdjusted } from "../domain/chat/answer.ts";
import type { Clock } from "../domain/clock.ts";
import { rateLimitHeaders } from "../domain/limits/headers.ts";
import type { StartedCall } from "../call/run-call.ts";

/** The body of a call, before a schema has read it. */
interface ReadBody extends JsonBody {
  readonly bodyBytes: number;
  /** Undefined: the answer is not shared. */
  readonly mark: RepeatMark | undefined;
}

/** Throws `GatewayError`. */
export async function readCall(call: KeyCall): Promise<ReadBody> {
  const bytes = await call.readBody();
  const bodyBytes = bytes.byteLength;
  const marking = readMark(call, bytes);
  const mark = marking && (await marking);
  const parsing = parseJson(bytes);
  const { value, text } = parsing instanceof Promise ? await parsing : parsing;
  call.memory.takesMore(wideBytes(text, bodyBytes));
  return { bodyBytes, mark, value, text };
}

/** What a text takes beyond its bytes: beyond Latin-1, the runtime keeps two for each character. */
function wideBytes({ length }: string, bodyBytes: number): number {
  return length === bodyBytes ? 0 : parsedFactor * Math.max(0, 2 * length - bodyBytes);
}

/** Settings of handlers that are not in a call's snapshot. */
export interface ApiSettings {
  /** How long the headers of a stream wait for its first event. */
  readonly holdHeadersMs: number;
  readonly keepAlive: "comment" | "chunk" | "off";
  readonly keepAliveIntervalMs: number;
  /** How long a reader may leave a written event unread before its connection is closed. */
  readonly writeTimeoutMs: number;
  /** Most bytes of text that the token ids of one request may decode to. */
  readonly decodedLimitBytes: number;
}

/** Dependencies of handlers of calls. */
export interface HandlerParts {
  readonly services: CallServices;
  /** Read for each call: a reload changes it. */
  readonly settings: () => ApiSettings;
  readonly repeats: Repeats;
  readonly responses: StoredResponses;
}

type Served = Pick<StartedCall<unknown>, "admission" | "attempt" | "meter">;

interface ServedOptions {
  readonly clock: Pick<Clock, "now">;
  /** What reading the body adjusted, which comes before what the attempt did. */
  readonly asRead?: AdjustedFields | undefined;
}

/** Headers of an answer: limits, capacity class, target, and parameters that were adjusted. */
export function servedHeaders(
  { admission, attempt, meter }: Served,
  call: KeyCall,
  { clock, asRead = nothingAdjusted }: ServedOptions,
): Record<string, string> {
  const { snapshot, dialect } = call;
  const { target, model } = attempt.candidate;
  const { adjusted } = attempt;
  const { waitedMs, position } = attempt.place;
  const headers = rateLimitHeaders(admission.state);
  headers["x-sluice-served-by"] = admission.capacityClass;
  // The upstream's own model identifier is left out: it may name the operator's account there.
  if (snapshot.routing.showsTarget) {
    headers["x-sluice-target"] = `${target.upstream}; model=${model.alias}`;
  }
  // Known at the end of a whole answer.
  if (showsCost(call) && meter.costNano !== undefined) {
    headers["x-sluice-cost-usd"] = usdOfNano(meter.costNano);
  }
  if (adjusted.size > 0 || asRead.size > 0) {
    headers["x-sluice-adjusted-parameters"] = writeAdjusted([...asRead, ...adjusted]);
  }
  if (position !== undefined) {
    headers["x-sluice-queue-position"] = String(position);
    headers["x-sluice-queue-wait-ms"] = String(Math.round(waitedMs));
  }
  const { limitHeaders } = dialect;
  return limitHeaders === undefined
    ? headers
    : Object.assign(headers, limitHeaders({ state: admission.state, nowMs: clock.now() }));
}

/** The playground always does. */
export function showsCost({ snapshot, caller }: Pick<KeyCall, "snapshot" | "caller">): boolean {
  return snapshot.routing.showsCost || caller.via === "playground";
}

/** `frequency_penalty=dropped, temperature=1`: a dictionary of RFC 9651. */
function writeAdjusted(fields: readonly (readonly [string, string | number])[]): string {
  return fields.map(([field, sent]) => `${field}=${sent}`).join(", ");
}
