import { apiKeyPattern } from "./keys/api-key.ts";

/** In order of precedence; only one of them is used. */
const callerIdHeaders = ["x-client-request-id", "x-request-id"] as const;
export const traceHeaders = [...callerIdHeaders, "traceparent", "tracestate"] as const;
export type TraceHeader = (typeof traceHeaders)[number];

/** The ids that a caller sends to find its request in the logs of the gateway and of upstreams. */
export interface RequestTrace {
  /** The caller's own id of the request. It never replaces the gateway's. */
  readonly callerRequestId: string | undefined;
  /** W3C trace context. */
  readonly traceparent: string | undefined;
  /** What other tracing systems add to `traceparent`. */
  readonly tracestate: string | undefined;
  /** The same ids as headers. */
  readonly headers: Readonly<Partial<Record<TraceHeader, string>>>;
}

/** Reads the headers of a request; values that are not valid are ignored. Undefined without any. */
export function readTrace(headers: Pick<Headers, "get">): RequestTrace | undefined {
  const idHeader = callerIdHeaders.find((name) => isCallerId(headers.get(name)));
  const callerRequestId = idHeader && (headers.get(idHeader) ?? undefined);
  const sent = headers.get("traceparent");
  const traceparent = sent !== null && traceparentPattern.test(sent) ? sent : undefined;
  if (idHeader === undefined && traceparent === undefined) return undefined;
  const tracestate = traceparent === undefined ? undefined : readTracestate(headers);
  const given = {
    ...(idHeader !== undefined && { [idHeader]: callerRequestId }),
    ...(traceparent !== undefined && { traceparent }),
    ...(tracestate !== undefined && { tracestate }),
  };
  return { callerRequestId, traceparent, tracestate, headers: given };
}

/** The headers that an upstream accepts. `traceparent`: the span of the request, if it has one. */
export function traceHeadersFor(
  trace: RequestTrace | undefined,
  taken: readonly TraceHeader[] | undefined,
  traceparent?: string,
): Readonly<Partial<Record<TraceHeader, string>>> | undefined {
  if (taken === undefined || (trace === undefined && traceparent === undefined)) return undefined;
  const headers = { ...trace?.headers, ...(traceparent !== undefined && { traceparent }) };
  return Object.fromEntries(
    taken.flatMap((name) => {
      const value = headers[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

const callerIdPattern = /^[\w.:/@=+-]{1,128}$/;
/** A key sent in the wrong header must not get into logs. */
const credentialPattern = new RegExp(`${apiKeyPattern.source}|slc-(?:mgt|local)_`);

function isCallerId(value: string | null): boolean {
  return value !== null && callerIdPattern.test(value) && !credentialPattern.test(value);
}

/** At most 32 members, which no service reads but the one that wrote them. */
const tracestatePattern = /^[\x20-\x7e]{1,512}$/;

function readTracestate(headers: Pick<Headers, "get">): string | undefined {
  const sent = headers.get("tracestate");
  if (sent === null || !tracestatePattern.test(sent)) return undefined;
  return credentialPattern.test(sent) ? undefined : sent;
}

/** Version, trace id, parent id and flags, of which neither id may be zero. */
const traceparentPattern =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
