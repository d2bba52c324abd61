import { whyEnded } from "../../domain/waiting/wait.ts";
import { handleAdmin, securedReply } from "./admin-dispatch.ts";
import { MemoryGate } from "../../domain/waiting/memory-gate.ts";
import { Lingering } from "../body/lingering.ts";
import type { HandledRequest } from "../../domain/handled-request.ts";
import type { DispatchOptions, Surface } from "./dispatch-options.ts";
import { hasLeft } from "../replies/route-refusal.ts";
import { type Dialect, errorReply, type Reply, toGatewayError } from "../replies/error-reply.ts";
import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import { handleWithKey } from "./handle-with-key.ts";
import type { ListenOptions } from "../listen.ts";
import { refusalOf } from "../replies/refusal-of.ts";
import { PreparedRefusals } from "../replies/repeated-refusals.ts";
import { closes, closingUnread, toResponse } from "../replies/to-response.ts";
import { RequestContext } from "./request-context.ts";
import { encodedSlash, pathOf, readTarget, type SentPath } from "./request-target.ts";
import type { Route } from "./route.ts";
import { UnreadStreams } from "../body/unread-streams.ts";

/** Answers synchronously where nothing has to be awaited, which keeps refusals cheap. */
export type Dispatch = ListenOptions["handle"];

/** Handles every request: route, authenticate, handle, answer, report. */
export function createDispatch(options: DispatchOptions): Dispatch {
  requireGate(options);
  const shared = {
    options,
    surfaces: surfacesOf(options),
    bodyMemory: new MemoryGate(options.clock),
    unread: new UnreadStreams(),
    lingering: new Lingering(),
    isAdmin: options.routes.listener === "admin",
  };
  return (request, connections, sent) => {
    const context = new RequestContext(shared, request, connections);
    let reply: Reply | Promise<Reply>;
    try {
      reply = handle(context, sent);
    } catch (thrown) {
      reply = failed(thrown, context);
    }
    if (!(reply instanceof Promise)) return finish(reply, context);
    return reply.then(
      (answered) => finish(answered, context),
      (thrown: unknown) => finish(failed(thrown, context), context),
    );
  };
}

/** Prepared, since there is no time for it under overload. Throws if a key could not be checked. */
function surfacesOf({ routes, keyed: access }: DispatchOptions): ReadonlyMap<Dialect, Surface> {
  const surfaces = new Map<Dialect, Surface>();
  const keyed = routes.routes.flatMap((route) =>
    route.access === "key" ? [route, ...(route.whenSent ? [route.whenSent.route] : [])] : [],
  );
  for (const { dialect } of keyed) {
    if (surfaces.has(dialect)) continue;
    if (access === undefined) throw new Error("a route that needs a key has no way to check one");
    const authenticate = access.authenticate(dialect.credential);
    const refusals = new PreparedRefusals(dialect);
    surfaces.set(dialect, { dialect, access, authenticate, refusals });
  }
  return surfaces;
}

function failed(thrown: unknown, context: RequestContext): Reply {
  const { request, surface } = context;
  const { options } = context.shared;
  context.error = toGatewayError(hasLeft(request, thrown) ? whyEnded(request.signal) : thrown);
  const dialect = surface?.dialect ?? options.routes.dialectAt(pathOf(request.url));
  context.idHeader = dialect?.idHeader;
  return closingUnread(errorReply(context.error, dialect, context.id), context);
}

/** Reports the request and makes the response, after the rest of a body that was refused. */
function finish(reply: Reply, context: RequestContext): Response | Promise<Response> {
  context.body?.release();
  const isStreamed = reply.body instanceof ReadableStream;
  if (context.isIdleTimerPaused && !isStreamed) {
    context.connections.resumeIdleTimer(context.request);
  }
  const { request, id, route, error, edge, repeatedOf, shared } = context;
  const { options } = shared;
  const { status } = reply;
  const durationMs = options.clock.monotonic() - context.receivedAt;
  context.durationMs = durationMs;
  const refusal = error && context.isExplained ? refusalIn(context, status, error) : undefined;
  const audited = auditedIn(context, status);
  const { method } = request;
  const access = accessOf(context);
  const handled = { id, method, route, status, durationMs, error, refusal, audited };
  options.onHandled({ ...handled, repeatedOf, access });
  const isClosing = closes(reply, context);
  const secured = shared.isAdmin ? securedReply(reply) : reply;
  const discarding = isClosing && shared.lingering.discardRest(request, edge.bodyLimits);
  if (!(discarding instanceof Promise)) return toResponse(secured, context, isClosing);
  return discarding.then(() => toResponse(secured, context, isClosing));
}

function refusalIn(context: RequestContext, callerStatus: number, error: GatewayError) {
  const { id, route, caller, accountId, shared } = context;
  const at = shared.options.clock.now();
  return refusalOf({ id, at, callerStatus, route, caller, accountId, error });
}

function auditedIn(context: RequestContext, callerStatus: number): HandledRequest["audited"] {
  const { audited, caller } = context;
  const found = audited && refusalIn(context, callerStatus, audited);
  if (found === undefined || caller === undefined) return undefined;
  const { plan } = caller.key;
  const summary = `Not refused, because plan ${plan} is in audit. ${found.explanation.summary}`;
  const explanation = { ...found.explanation, summary };
  return { plan, refusal: { ...found, isAudited: true, explanation } };
}

/** Undefined for calls, which are reported at their end, and for requests outside the API. */
function accessOf(context: RequestContext): HandledRequest["access"] {
  const { shared, isCall, surface, error, isExplained, repeatedOf, caller, request } = context;
  const isOfApi = !shared.isAdmin && (surface !== undefined || error !== undefined);
  if (!isOfApi || isCall) return undefined;
  const { headers } = request;
  return { keyId: caller?.key.id, headers, isRepeat: !isExplained || repeatedOf !== undefined };
}

function requireGate({ routes, gate }: DispatchOptions): void {
  const guarded = routes.routes.find(
    ({ access }) => access === "anonymous" || access === "principal",
  );
  if (guarded !== undefined && gate === undefined) throw new Error(`${guarded.path} needs a gate`);
}

function handle(context: RequestContext, sent: SentPath | undefined): Reply | Promise<Reply> {
  const { edge, request, shared } = context;
  const { options } = shared;
  const target = readTarget(request, edge.maxHeaders, sent);
  if (target.hasEncodedSlash && !options.routes.takesSlash(target.path)) throw encodedSlash();
  if (request.method === "OPTIONS") {
    const methods = options.routes.methods(target.path);
    if (methods.length > 0) return edge.cors.preflight(request, methods);
  }
  const match = options.routes.match(request.method, target.path);
  const { parameter } = match;
  const route = routeFor(match.route, request.headers);
  context.route = route.path;
  if (route.hosts !== "any") options.gate?.checkHost(target.host, route.hosts);
  switch (route.access) {
    case "public":
      return route.handle(context.call(parameter));
    case "key": {
      const surface = shared.surfaces.get(route.dialect);
      if (surface === undefined) throw new Error("the dialect of a route has no surface");
      context.surface = surface;
      return handleWithKey({ context, route, surface, parameter, host: target.host });
    }
    case "anonymous":
    case "principal":
      return handleAdmin(context, route, match);
  }
}

function routeFor(route: Route, headers: Headers): Route {
  if (route.access !== "key" || route.whenSent === undefined) return route;
  return headers.has(route.whenSent.header) ? route.whenSent.route : route;
}
