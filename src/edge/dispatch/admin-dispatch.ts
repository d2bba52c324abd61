import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { RefusalExplanation } from "../../domain/errors/refusal.ts";
import type { Principal } from "../../domain/principal.ts";
import type { AdminGate } from "./dispatch-options.ts";
import type { BodyLimits } from "../body/read-body.ts";
import type { Reply } from "../replies/error-reply.ts";
import type { AnonymousAdminCall, Route } from "./route.ts";

export type AdminRoute = Extract<Route, { access: "anonymous" | "principal" }>;
type PrincipalRoute = Extract<Route, { access: "principal" }>;

/** Enough for every request of the control plane. */
const most = {
  bodyBytes: 1_048_576,
  depth: 32,
  memoryBytes: 64 * 1_048_576,
  /** For all bodies from one address. */
  memoryPerAddressBytes: 8 * 1_048_576,
} as const;

/** Limits of bodies on the admin listener: the configured ones, capped. */
export function adminBodyLimits(limits: BodyLimits): BodyLimits {
  const { bodyMemory: memory } = limits;
  return {
    ...limits,
    bodyLimitBytes: Math.min(limits.bodyLimitBytes, most.bodyBytes),
    decompressedLimitBytes: Math.min(limits.decompressedLimitBytes, most.bodyBytes),
    jsonDepth: Math.min(limits.jsonDepth, most.depth),
    bodyMemory: {
      ...memory,
      allBytes: Math.min(memory.allBytes, most.memoryBytes),
      ownBytes: Math.min(memory.ownBytes, most.memoryPerAddressBytes),
    },
  };
}

/**
 * Adds the headers of every answer of the admin listener, errors included. Answers belong to one
 * principal, so caches must not store them, and browsers must neither run nor embed them.
 */
export function securedReply(reply: Reply): Reply {
  return {
    ...reply,
    headers: {
      "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
      ...reply.headers,
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
    },
  };
}

interface AdminArrival {
  readonly gate: AdminGate;
  /** Called once the principal is known, which refusals record. */
  readonly onKnown: (principal: Principal) => void;
}

/** Identifies the principal, checks its role and scopes, then handles the request. */
export async function handleAdmin(
  route: AdminRoute,
  call: AnonymousAdminCall,
  { gate, onKnown }: AdminArrival,
): Promise<Reply> {
  const { request, address } = call;
  if (route.access === "anonymous") {
    gate.checkAnonymous({ request, address });
    return route.handle(call);
  }
  const principal = await gate.identify({ request, address });
  onKnown(principal);
  requirePermission(principal, route);
  return route.handle({ ...call, principal });
}

function requirePermission(principal: Principal, { roles, scope }: PrincipalRoute): void {
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
