import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Caller, Key } from "../../domain/keys/key.ts";
import type { AnswerMemory } from "../../snapshot/call.ts";
import type { BodyHold, BodyMemory } from "../body/body-memory.ts";
import { clientAddress } from "../client-address.ts";
import type { Connections } from "../listen.ts";
import type { DispatchOptions, EdgeSettings, HandledRequest, Surface } from "./dispatch-options.ts";
import type { Dialect } from "../replies/error-reply.ts";
import type { StreamEnd } from "../replies/event-stream.ts";
import { hasBody, readBody } from "../body/read-body.ts";
import type { Lingering } from "../body/lingering.ts";
import type { UnreadStreams } from "../body/unread-streams.ts";
import type { KeyCall, PublicCall } from "./route.ts";

/** The state of one request in the dispatch. */
export interface RequestContext {
  readonly options: DispatchOptions;
  readonly surfaces: ReadonlyMap<Dialect, Surface>;
  readonly bodyMemory: BodyMemory;
  readonly unread: UnreadStreams;
  readonly lingering: Lingering;
  readonly isAdmin: boolean;
  readonly edge: EdgeSettings;
  readonly request: Request;
  readonly connections: Connections;
  readonly id: string;
  readonly receivedAt: number;
  /** Path of the route; `other` until it is known. */
  route: string;
  /** Set for a route that takes a key. */
  surface: Surface | undefined;
  /** Set once the key is authenticated. */
  caller: Caller | undefined;
  /** Account of the principal, once it is identified. */
  accountId: string | undefined;
  /** Memory of the body; it may be kept when the answer has begun. */
  body: BodyHold | undefined;
  /** Set when the answer is an error. */
  error: GatewayError | undefined;
  /** False for a refusal that is not recorded. */
  isExplained: boolean;
  repeatedOf: HandledRequest["repeatedOf"];
  isIdleTimerPaused: boolean;
  /** Whether a call has begun, whose end is logged instead of the request. */
  isCall: boolean;
}

/** Made as late as possible: the signal is the expensive part of a request. */
export function callOf({ id, request, receivedAt }: RequestContext, parameter: string): PublicCall {
  return { id, request, signal: request.signal, receivedAt, parameter };
}

/** Until the answer is made; the end of a streamed body resumes it. */
export function pauseIdleTimer(context: RequestContext): void {
  context.isIdleTimerPaused = true;
  context.connections.pauseIdleTimer(context.request);
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
  const { id: name, accountId: account } = ownerOf(context);
  context.unread.check(account, edge.bodyLimits.bodyMemoryBytes);
  context.body = bodyMemory.hold({ name, account, request }, edge.bodyLimits);
  return readBody(request, edge.bodyLimits, context.body);
}

/** Who answers for what a request takes: the key, or the address of a request without one. */
function ownerOf(context: RequestContext): Pick<Key, "id" | "accountId"> {
  if (context.caller !== undefined) return context.caller.key;
  const address = addressOf(context);
  return { id: address, accountId: address };
}

/** What a call takes; its body was read with `readBodyOf`. */
export function memoryOf(context: RequestContext): KeyCall["memory"] {
  return {
    keep: () => context.body?.keep() ?? (() => undefined),
    takesMore: (bytes) => context.body?.takesMore(bytes),
    unread: (bytes) => context.unread.change(ownerOf(context).accountId, bytes),
  };
}

/** Memory for the answer of a call; an answer above what one key may hold takes all of that. */
export function answerMemoryOf(context: RequestContext): AnswerMemory {
  const { request, edge, bodyMemory } = context;
  const { bodyLimits: limits } = edge;
  const { id: name, accountId: account } = ownerOf(context);
  let hold: BodyHold | undefined;
  let granted: void | Promise<void>;
  return {
    reserve(bytes) {
      // Requests of one call wait together.
      if (hold !== undefined) return granted;
      hold = bodyMemory.hold({ name, account, request, isAnswer: true }, limits);
      granted = hold.reserve(Math.min(bytes, limits.bodyMemoryPerKeyBytes));
      return granted;
    },
    shrinkTo: (bytes) => hold?.becomes(bytes),
    release: () => hold?.release(),
  };
}

export function addressOf({ connections, request, edge }: RequestContext): string {
  const forwardedFor = (): string | null => request.headers.get("x-forwarded-for");
  return clientAddress(connections.peerAddress(request), forwardedFor, edge.trustedProxies);
}
