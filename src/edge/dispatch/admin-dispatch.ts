import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { RefusalExplanation } from "../../domain/errors/refusal.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Reply } from "../replies/error-reply.ts";
import type { RequestContext } from "./request-context.ts";
import { queryOf } from "./request-target.ts";
import type { AnonymousAdminCall, Route } from "./route.ts";
import type { RouteMatch } from "./route-table.ts";

type AdminRoute = Extract<Route, { access: "anonymous" | "principal" }>;
type PrincipalRoute = Extract<Route, { access: "principal" }>;

/**
 * Adds the headers of every answer of the admin listener, errors included. Caches must not store it,
 * and browsers must neither run nor embed it; only the console's own files say otherwise.
 */
export function securedReply(reply: Reply): Reply {
  return {
    ...reply,
    headers: {
      "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
      "cache-control": "no-store",
      ...reply.headers,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
    },
  };
}

/** Identifies the principal, checks its role and scopes, then handles the request. */
export async function handleAdmin(
  context: RequestContext,
  route: AdminRoute,
  { parameters, parameter }: RouteMatch,
): Promise<Reply> {
  // It would cut erasures, audit verifications and downloads that pause.
  context.pauseIdleTimer();
  const { request, connections } = context;
  const reply = await answer(context, route, {
    ...context.call(parameter),
    address: context.address,
    parameters,
    query: queryOf(request.url),
    readBody: () => context.readBody(),
  });
  // A reader that stops reading must not hold a download for ever.
  if (reply.body instanceof ReadableStream) connections.extendIdleTimer(request);
  // It belongs to one principal, whatever the handler says.
  return { ...reply, headers: { ...reply.headers, "cache-control": "no-store" } };
}

async function answer(
  context: RequestContext,
  route: AdminRoute,
  call: AnonymousAdminCall,
): Promise<Reply> {
  const { gate } = context.shared.options;
  if (gate === undefined) throw new Error("a route of the control plane has no gate");
  if (route.access === "anonymous") {
    gate.checkAnonymous(call);
    return route.handle(call);
  }
  const principal = await gate.identify({ ...call, isPassive: route.isPassive });
  // Refusals record it.
  context.accountId = principal.accountId;
  requirePermission(principal, route);
  const isStillSignedIn = (): Promise<boolean> => gate.isStill(call, principal);
  return route.handle({ ...call, principal, isStillSignedIn });
}

/** Throws 403. */
export function requirePermission(
  principal: Principal,
  { roles, scope }: Pick<PrincipalRoute, "roles" | "scope">,
): void {
  if (!roles.includes(principal.role)) {
    throw notPermitted(
      `The role '${principal.role}' does not allow this request; required: ${roles.join(", ")}.`,
      principal,
    );
  }
  if (!principal.scopes.includes(scope)) {
    const message = `The token lacks the scope '${scope}'. Please use one that has it.`;
    throw notPermitted(message, principal);
  }
}

function notPermitted(message: string, { accountId }: Principal): GatewayError {
  const explanation: RefusalExplanation = {
    rule: "not_permitted",
    summary: message,
    ...(accountId !== undefined && { accountId }),
  };
  return new GatewayError("not_permitted", { message, explanation });
}
