import type { Clock } from "../domain/clock.ts";
import type { Caller } from "../domain/key.ts";
import type { Environment } from "../domain/model.ts";
import { GatewayError } from "../domain/gateway-error.ts";
import { environmentAt, type Snapshot } from "../pipeline/snapshot.ts";
import type { CorsPolicy } from "./cors.ts";
import { errorReply, toGatewayError } from "./error-reply.ts";
import { readBody, type BodyLimits } from "./read-body.ts";
import type { Reply } from "./reply.ts";
import { readTarget } from "./request-target.ts";
import type { Route } from "./route.ts";
import type { RouteTable } from "./route-table.ts";

export interface DispatchOptions {
  readonly routes: RouteTable;
  readonly clock: Clock;
  readonly newRequestId: () => string;
  readonly snapshot: () => Snapshot;
  /** Throws 401. */
  readonly authenticate: (authorization: string | null, environment: Environment) => Caller;
  /** Read for each request: a reload changes it. */
  readonly edge: () => EdgeSettings;
  readonly isDraining: () => boolean;
  readonly onHandled: (event: HandledRequest) => void;
}

/** What a listener accepts. */
export interface EdgeSettings {
  readonly cors: CorsPolicy;
  readonly bodyLimits: BodyLimits;
  readonly maxHeaders: number;
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
}

/**
 * The listener's idle timer of a request's connection. It belongs to the connection, not to the
 * request: what is paused and never resumed keeps an idle connection open for ever.
 */
export interface IdleTimer {
  pause(request: Request): void;
  resume(request: Request): void;
}

type Dispatch = (request: Request, idleTimer: IdleTimer) => Promise<Response>;

/** The way of every request: find its route, check who calls, handle, answer, report. */
export function createDispatch(options: DispatchOptions): Dispatch {
  return async (request, idleTimer) => {
    const receivedAt = options.clock.monotonic();
    const id = options.newRequestId();
    const context = {
      options,
      edge: options.edge(),
      request,
      idleTimer,
      id,
      receivedAt,
      route: "other",
      hasReadBody: false,
    };
    let reply: Reply;
    let failure: GatewayError | undefined;
    try {
      reply = await handle(context);
    } catch (error) {
      failure = toGatewayError(error);
      reply = closing(errorReply(failure), context);
    }
    const durationMs = options.clock.monotonic() - receivedAt;
    options.onHandled({
      id,
      method: request.method,
      route: context.route,
      status: reply.status,
      durationMs,
      error: failure,
    });
    return toResponse(reply, context, durationMs);
  };
}

interface RequestContext {
  readonly options: DispatchOptions;
  readonly edge: EdgeSettings;
  readonly request: Request;
  readonly idleTimer: IdleTimer;
  readonly id: string;
  readonly receivedAt: number;
  /** Set once the route is known; the report needs it also when a later step fails. */
  route: string;
  hasReadBody: boolean;
}

async function handle(context: RequestContext): Promise<Reply> {
  const { options, edge, request, id, receivedAt } = context;
  const target = readTarget(request, edge.maxHeaders);
  if (request.method === "OPTIONS") {
    const methods = options.routes.methods(target.path);
    if (methods.length > 0) return edge.cors.preflight(request, methods);
  }
  const { route, parameter } = options.routes.match(request.method, target.path);
  context.route = route.path;
  const call = { id, request, signal: request.signal, receivedAt, parameter };
  if (route.access === "public") return route.handle(call);
  return handleWithKey({ context, route, call, host: target.host });
}

interface KeyedRequest {
  readonly context: RequestContext;
  readonly route: Extract<Route, { access: "key" }>;
  readonly call: {
    readonly id: string;
    readonly request: Request;
    readonly signal: AbortSignal;
    readonly receivedAt: number;
    readonly parameter: string;
  };
  readonly host: string;
}

async function handleWithKey({ context, route, call, host }: KeyedRequest): Promise<Reply> {
  const { options, request, idleTimer } = context;
  if (options.isDraining()) throw draining();
  const snapshot = options.snapshot();
  const environment = environmentAt(snapshot, host);
  if (environment === undefined) throw unknownHost(host);
  const caller = options.authenticate(request.headers.get("authorization"), environment);
  const { bodyLimits } = context.edge;
  const readThisBody = (): Promise<Uint8Array> => {
    context.hasReadBody = true;
    return readBody(request, bodyLimits);
  };
  const resumeIdleTimer = (): void => idleTimer.resume(request);
  // The idle timer would cut long answers; the pipeline's own deadlines hold from here.
  idleTimer.pause(request);
  let isStreamed = false;
  try {
    const keyed = { ...call, caller, environment, snapshot, readBody: readThisBody };
    const reply = await route.handle({ ...keyed, resumeIdleTimer });
    isStreamed = reply.body instanceof ReadableStream;
    return reply;
  } finally {
    if (!isStreamed) resumeIdleTimer();
  }
}

function toResponse(reply: Reply, context: RequestContext, durationMs: number): Response {
  const { edge, request, id } = context;
  const origin = request.headers.get("origin");
  return new Response(reply.body, {
    status: reply.status,
    headers: {
      ...reply.headers,
      "x-request-id": id,
      "openai-processing-ms": String(Math.round(durationMs)),
      ...(origin !== null && edge.cors.headersFor(origin)),
    },
  });
}

/**
 * A body that was refused unread and has no end in sight must not keep its connection busy for
 * ever. A short one may come in: closing under a client that still writes would hide the answer.
 */
function closing(reply: Reply, { edge, request, hasReadBody }: RequestContext): Reply {
  const length = request.headers.get("content-length");
  const isShort = length !== null && Number(length) <= edge.bodyLimits.bodyLimitBytes;
  if (hasReadBody || isShort || request.body === null) return reply;
  return { ...reply, headers: { ...reply.headers, connection: "close" } };
}

function draining(): GatewayError {
  return new GatewayError("model_unavailable", {
    message: "This instance of the gateway is shutting down. Please retry your request.",
    headers: { "retry-after": "1", "retry-after-ms": "1000", connection: "close" },
  });
}

function unknownHost(host: string): GatewayError {
  return new GatewayError("unknown_url", {
    message: `No environment answers at host '${host}'. Please check the host of your base URL.`,
  });
}
