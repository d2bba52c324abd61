import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Caller } from "../../domain/keys/key.ts";
import type { BodyHold, BodyMemory } from "../body/body-memory.ts";
import { clientAddress } from "../client-address.ts";
import type { Connections } from "../listen.ts";
import type { DispatchOptions, EdgeSettings, HandledRequest } from "./dispatch-options.ts";
import type { StreamEnd } from "../replies/event-stream.ts";
import { hasBody, readBody } from "../body/read-body.ts";
import type { PublicCall } from "./route.ts";
import type { Surface, Surfaces } from "./surfaces.ts";

/** One request on its way through the dispatch. */
export interface RequestContext {
  readonly options: DispatchOptions;
  readonly surfaces: Surfaces;
  readonly bodyMemory: BodyMemory;
  readonly isAdmin: boolean;
  readonly edge: EdgeSettings;
  readonly request: Request;
  readonly connections: Connections;
  readonly id: string;
  readonly receivedAt: number;
  /** Set once the route is known; the report needs it also when a later step fails. */
  route: string;
  /** Of a route that takes a key, once it is known. */
  surface: Surface | undefined;
  /** Set once it is known. */
  caller: Caller | undefined;
  /** Of who is signed in, once it is known. */
  accountId: string | undefined;
  /** What it holds, once it is read; given back when the answer is made. */
  body: BodyHold | undefined;
  /** Set when the answer is one. */
  error: GatewayError | undefined;
  /** False for an error of which nothing is kept. */
  isExplained: boolean;
  repeatedOf: HandledRequest["repeatedOf"];
}

/** Made when it is needed, and not before: the signal is the dear part of a request. */
export function callOf({ id, request, receivedAt }: RequestContext, parameter: string): PublicCall {
  return { id, request, signal: request.signal, receivedAt, parameter };
}

export function streamEndOf({ connections, request }: RequestContext): (end: StreamEnd) => void {
  return (end) => {
    if (end === "whole") connections.resumeIdleTimer(request);
    else connections.cutSoon(request);
  };
}

export function readBodyOf(context: RequestContext): Promise<Uint8Array> {
  const { request, edge, bodyMemory, isAdmin } = context;
  if (isAdmin && !hasBody(request)) return Promise.resolve(new Uint8Array(0));
  const name = context.caller?.key.id ?? addressOf(context);
  context.body = bodyMemory.hold({ name, request }, edge.bodyLimits);
  return readBody(request, edge.bodyLimits, context.body);
}

export function addressOf({ connections, request, edge }: RequestContext): string {
  const forwardedFor = (): string | null => request.headers.get("x-forwarded-for");
  return clientAddress(connections.peerAddress(request), forwardedFor, edge.trustedProxies);
}
