import type { Clock } from "../domain/clock.ts";
import type { Caller } from "../domain/key.ts";
import type { Environment } from "../domain/model.ts";
import type { GatewayError } from "../domain/gateway-error.ts";
import type { NetworkList } from "../domain/network.ts";
import type { Refusal } from "../domain/refusal.ts";
import { environmentAt, type Snapshot } from "../pipeline/snapshot.ts";
import { adminBodyLimits, handleAdmin, securedReply, type AdminRoute } from "./admin-dispatch.ts";
import type { AdminGate } from "./admin-gate.ts";
import { clientAddress } from "./client-address.ts";
import type { Connections } from "./connections.ts";
import type { CorsPolicy } from "./cors.ts";
import { callerLeft, draining, unknownHost } from "./edge-refusal.ts";
import { errorReply, toGatewayError } from "./error-reply.ts";
import type { StreamEnd } from "./event-stream.ts";
import { notingGate } from "./noting-gate.ts";
import { hasBody, readBody, type BodyLimits } from "./read-body.ts";
import { refusalOf } from "./refusal-of.ts";
import type { Reply } from "./reply.ts";
import { closingUnread, toResponse } from "./to-response.ts";
import { queryOf, readTarget } from "./request-target.ts";
import type { KeyCall, PublicCall, Route } from "./route.ts";
import type { RouteMatch, RouteTable } from "./route-table.ts";
import { ShedReplies, type Overload } from "./shed-replies.ts";
import { watchedBody } from "./watched-body.ts";

export interface DispatchOptions {
  readonly routes: RouteTable;
  readonly clock: Clock;
  readonly newRequestId: () => string;
  readonly snapshot: () => Snapshot;
  /** Throws 401, 403 or 503. The address is asked for only when the key is bound to networks. */
  readonly authenticate: (
    authorization: string | null,
    environment: Environment,
    address: () => string,
  ) => Caller;
  /** Needed where routes of the control plane are served. */
  readonly gate?: AdminGate | undefined;
  /** Read for each request: a reload changes it. */
  readonly edge: () => EdgeSettings;
  /** Whether every answer closes its connection, so that callers go elsewhere. */
  readonly isEnding: () => boolean;
  /** Whether new calls are refused. */
  readonly isDraining: () => boolean;
  /** Where there may be too much to do. */
  readonly overload?: Overload | undefined;
  readonly onHandled: (event: HandledRequest) => void;
}

/** What a listener accepts. */
export interface EdgeSettings {
  readonly cors: CorsPolicy;
  readonly bodyLimits: BodyLimits;
  readonly maxHeaders: number;
  /** Whose `x-forwarded-for` is believed. */
  readonly trustedProxies: NetworkList;
}

/** What the log and the metrics learn of a request. */
export interface HandledRequest {
  readonly id: string;
  readonly method: string;
  /** Path of the route's row, or `other`: few values, whatever callers send. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
  /** Present when the answer is an error. */
  readonly error: GatewayError | undefined;
  /** Present when the gateway itself refused and says why, with the caller as far as it is known. */
  readonly refusal: Refusal | undefined;
}

/** What needs no wait is answered at once, so that a refusal costs as little as it can. */
export type Dispatch = (request: Request, connections: Connections) => Response | Promise<Response>;

/** The way of every request: find its route, check who calls, handle, answer, report. */
export function createDispatch(options: DispatchOptions): Dispatch {
  requireGate(options);
  const isAdmin = options.routes.listener === "admin";
  const shed = new ShedReplies();
  return (request, connections) => {
    const receivedAt = options.clock.monotonic();
    const id = options.newRequestId();
    const edge = options.edge();
    const context: RequestContext = {
      options,
      shed,
      isAdmin,
      edge: isAdmin ? { ...edge, bodyLimits: adminBodyLimits(edge.bodyLimits) } : edge,
      request,
      connections,
      id,
      receivedAt,
      route: "other",
      caller: undefined,
      accountId: undefined,
      hasReadBody: false,
      error: undefined,
      isExplained: true,
    };
    let reply: Reply | Promise<Reply>;
    try {
      reply = handle(context);
    } catch (thrown) {
      reply = failed(thrown, context);
    }
    if (!(reply instanceof Promise)) return finish(reply, context);
    return reply
      .catch((thrown: unknown) => failed(thrown, context))
      .then((answered) => finish(answered, context));
  };
}

function failed(thrown: unknown, context: RequestContext): Reply {
  context.error = toGatewayError(hasLeft(context.request, thrown) ? callerLeft() : thrown);
  return closingUnread(errorReply(context.error), context);
}

/** Reports the request and makes the response. */
function finish(reply: Reply, context: RequestContext): Response {
  const { options, request, id, route, caller, accountId, error, connections, edge } = context;
  const { status } = reply;
  const durationMs = options.clock.monotonic() - context.receivedAt;
  const at = options.clock.now();
  const isTold = error !== undefined && context.isExplained;
  const refusal = isTold ? refusalOf({ id, at, error, caller, accountId }) : undefined;
  options.onHandled({ id, method: request.method, route, status, durationMs, error, refusal });
  const isEnding = options.isEnding();
  const answered = { id, request, connections, edge, durationMs, isEnding };
  return toResponse(context.isAdmin ? securedReply(reply) : reply, answered);
}

function requireGate({ routes, gate }: DispatchOptions): void {
  const needy = routes.routes.find(
    ({ access }) => access === "anonymous" || access === "principal",
  );
  if (needy !== undefined && gate === undefined) throw new Error(`${needy.path} needs a gate`);
}

interface RequestContext {
  readonly options: DispatchOptions;
  readonly shed: ShedReplies;
  readonly isAdmin: boolean;
  readonly edge: EdgeSettings;
  readonly request: Request;
  readonly connections: Connections;
  readonly id: string;
  readonly receivedAt: number;
  /** Set once the route is known; the report needs it also when a later step fails. */
  route: string;
  /** Set once it is known. */
  caller: Caller | undefined;
  /** Of who is signed in, once it is known. */
  accountId: string | undefined;
  hasReadBody: boolean;
  /** Set when the answer is one. */
  error: GatewayError | undefined;
  /** False for an error of which nothing is kept. */
  isExplained: boolean;
}

function handle(context: RequestContext): Reply | Promise<Reply> {
  const { options, edge, request } = context;
  const target = readTarget(request, edge.maxHeaders);
  if (request.method === "OPTIONS") {
    const methods = options.routes.methods(target.path);
    if (methods.length > 0) return edge.cors.preflight(request, methods);
  }
  const match = options.routes.match(request.method, target.path);
  const { route, parameter } = match;
  context.route = route.path;
  if (route.answersAnyHost !== true) options.gate?.checkHost(target.host);
  switch (route.access) {
    case "public":
      return route.handle(callOf(context, parameter));
    case "key":
      return handleWithKey({ context, route, parameter, host: target.host });
    case "anonymous":
    case "principal":
      return handleControl({ context, route, call: callOf(context, parameter), match });
  }
}

/** Made when it is needed, and not before: the signal is the dear part of a request. */
function callOf({ id, request, receivedAt }: RequestContext, parameter: string): PublicCall {
  return { id, request, signal: request.signal, receivedAt, parameter };
}

interface KeyedRequest {
  readonly context: RequestContext;
  readonly route: Extract<Route, { access: "key" }>;
  readonly parameter: string;
  readonly host: string;
}

function handleWithKey(keyed: KeyedRequest): Reply | Promise<Reply> {
  const { context, host } = keyed;
  const { options } = context;
  if (options.isDraining()) throw draining();
  const snapshot = options.snapshot();
  const environment = environmentAt(snapshot, host);
  if (environment === undefined) throw unknownHost(host);
  const authorization = context.request.headers.get("authorization");
  const caller = options.authenticate(authorization, environment, () => addressOf(context));
  context.caller = caller;
  if (options.overload?.refusesUnread(caller.key) === true) {
    const { error, reply } = context.shed.next();
    const refused = closingUnread(reply, context);
    context.error = error;
    context.isExplained = context.shed.isExplained(context.receivedAt);
    return options.overload.answersAfter?.then(() => refused) ?? refused;
  }
  return serve(keyed, { caller, environment, snapshot });
}

async function serve(
  { context, route, parameter }: KeyedRequest,
  known: Pick<KeyCall, "caller" | "environment" | "snapshot">,
): Promise<Reply> {
  const { request, connections } = context;
  // The idle timer would cut long answers; the pipeline's own deadlines hold from here.
  connections.pauseIdleTimer(request);
  let isStreamed = false;
  try {
    const streamEnded = streamEndOf(context);
    const call = { ...callOf(context, parameter), ...known, streamEnded };
    const reply = await route.handle({ ...call, readBody: () => readBodyOf(context) });
    isStreamed = reply.body instanceof ReadableStream;
    return reply;
  } finally {
    if (!isStreamed) connections.resumeIdleTimer(request);
  }
}

function streamEndOf({ connections, request }: RequestContext): (end: StreamEnd) => void {
  return (end) => {
    if (end === "whole") connections.resumeIdleTimer(request);
    else connections.cutSoon(request);
  };
}

interface ControlRequest {
  readonly context: RequestContext;
  readonly route: AdminRoute;
  readonly call: PublicCall;
  readonly match: RouteMatch;
}

/** How long somebody who downloads may pause. */
const unreadTimeoutMs = 5 * 60_000;

async function handleControl({ context, route, call, match }: ControlRequest): Promise<Reply> {
  const { options, request, connections } = context;
  if (options.gate === undefined) throw new Error("a route of the control plane has no gate");
  const admin = {
    ...call,
    address: addressOf(context),
    parameters: match.parameters,
    query: queryOf(request.url),
    readBody: () => (hasBody(request) ? readBodyOf(context) : Promise.resolve(new Uint8Array(0))),
  };
  // The idle timer would cut erasures, verifications of the audit and downloads that pause.
  connections.pauseIdleTimer(request);
  let isStreamed = false;
  try {
    const gate = notingGate(options.gate, (who) => (context.accountId = who.accountId));
    const reply = await handleAdmin(route, admin, gate);
    if (!(reply.body instanceof ReadableStream)) return reply;
    isStreamed = true;
    return {
      ...reply,
      body: watchedBody(reply.body, { unreadTimeoutMs, onEnd: streamEndOf(context) }),
    };
  } finally {
    if (!isStreamed) connections.resumeIdleTimer(request);
  }
}

/** What was stopped because its caller left is nobody's failure. */
function hasLeft({ signal }: Request, thrown: unknown): boolean {
  if (!signal.aborted || !(thrown instanceof Error)) return false;
  return thrown === signal.reason || thrown.name === "AbortError";
}

function readBodyOf(context: RequestContext): Promise<Uint8Array> {
  context.hasReadBody = true;
  return readBody(context.request, context.edge.bodyLimits);
}

function addressOf({ connections, request, edge }: RequestContext): string {
  const forwardedFor = (): string | null => request.headers.get("x-forwarded-for");
  return clientAddress(connections.peerAddress(request), forwardedFor, edge.trustedProxies);
}
