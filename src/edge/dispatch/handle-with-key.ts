import type { CountedRequest } from "../../domain/limits/limit-scope.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { endingWith } from "../../domain/waiting/end-signal.ts";
import type { Caller } from "../../domain/keys/key.ts";
import { readTrace } from "../../domain/request-trace.ts";
import { spanIdsOf } from "../../domain/tracing.ts";
import { plainCall, readOptions } from "../../snapshot/call.ts";
import { environmentAt } from "../../snapshot/snapshot.ts";
import type { HandledRequest } from "../../domain/handled-request.ts";
import type { CountArrival, Surface } from "./dispatch-options.ts";
import { draining, unknownHost } from "../replies/route-refusal.ts";
import type { PreparedRefusal, Reply } from "../replies/error-reply.ts";
import { closingUnread } from "../replies/to-response.ts";
import type { RequestContext } from "./request-context.ts";
import type { ArrivingRequest, KeyRoute } from "./route.ts";
import type { Overload } from "../replies/repeated-refusals.ts";

/** A request for a route that needs a key. */
export interface KeyedRequest {
  readonly context: RequestContext;
  readonly route: KeyRoute;
  readonly surface: Surface;
  readonly parameter: string;
  readonly host: string;
}

export function handleWithKey(keyed: KeyedRequest): Reply | Promise<Reply> {
  const { context, surface, host } = keyed;
  if (context.shared.options.shutdown.isRefusing) throw draining();
  const snapshot = surface.access.snapshot();
  const environment = environmentAt(snapshot, host);
  if (environment === undefined) throw unknownHost(host);
  const text = surface.dialect.credential.read(context.request.headers);
  let caller: Caller;
  try {
    caller = surface.authenticate(text, environment, () => context.address);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.status !== 401) throw error;
    const prepared = surface.refusals.ofAddress(context.address, context.receivedAt);
    if (prepared === undefined) throw error;
    return repeat(prepared, "address", keyed);
  }
  context.caller = caller;
  return countThenServe(keyed, { caller, environment, snapshot, origin: context });
}

/** Counts a request, then continues; a repeated refusal within a second is the prepared one. */
function countThenServe(keyed: KeyedRequest, known: ArrivingRequest): Reply | Promise<Reply> {
  const { context, route, surface } = keyed;
  const { count } = surface.access;
  if (count === undefined) return serve(keyed, known, undefined);
  const prepared = surface.refusals.ofKey(route.counts, known.caller, context.receivedAt);
  if (prepared !== undefined) return repeat(prepared, "key", keyed);
  let counted: ReturnType<CountArrival>;
  try {
    counted = count(route.counts, known);
  } catch (error) {
    return refuseOnCount(error, keyed, known);
  }
  if (!(counted instanceof Promise)) return serve(keyed, known, counted);
  return counted.then(
    (late) => serve(keyed, known, late),
    (error: unknown) => refuseOnCount(error, keyed, known),
  );
}

function refuseOnCount(
  error: unknown,
  { context, route, surface }: KeyedRequest,
  { caller }: ArrivingRequest,
): never {
  if (error instanceof GatewayError && error.status === 429) {
    surface.refusals.keepOfKey({ kind: route.counts, caller }, error, context.receivedAt);
  }
  throw error;
}

function repeat(
  prepared: PreparedRefusal,
  repeatedOf: HandledRequest["repeatedOf"],
  keyed: KeyedRequest,
): Reply {
  keyed.context.repeatedOf = repeatedOf;
  return refuse(prepared, keyed);
}

function shed(keyed: KeyedRequest, overload: Overload): Reply | Promise<Reply> {
  const refused = refuse(keyed.surface.refusals.nextShed(), keyed);
  return overload.answersAfter?.then(() => refused) ?? refused;
}

function refuse({ error, reply }: PreparedRefusal, { context, surface }: KeyedRequest): Reply {
  context.error = error;
  context.isExplained = surface.refusals.isExplained(context.receivedAt);
  return closingUnread(reply, context);
}

function serve(
  keyed: KeyedRequest,
  { caller, environment, snapshot }: ArrivingRequest,
  counted: CountedRequest | undefined,
): Reply | Promise<Reply> {
  const { context, route, surface, parameter } = keyed;
  const { overload } = surface.access;
  if (overload?.refusesUnread(caller.key) === true) return shed(keyed, overload);
  const { id, request, receivedAt } = context;
  const { headers } = request;
  const { sampling } = snapshot.settings;
  context.trace = readTrace(headers);
  context.spans = sampling && spanIdsOf(id, context.trace, sampling);
  // It would cut long answers; the deadlines of the call apply from here.
  context.pauseIdleTimer();
  return route.handle({
    id,
    request,
    headers,
    signal: endingWith(request.signal),
    receivedAt,
    parameter,
    caller,
    environment,
    snapshot,
    counted,
    dialect: route.dialect,
    options: route.counts === "call" ? readOptions(headers, receivedAt) : plainCall,
    origin: context,
    memory: context,
    answerMemory: context,
    readBody: () => context.readBody(),
    streamEnded: (end) => context.streamEnded(end),
  });
}
