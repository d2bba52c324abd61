import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Caller, Key } from "../../domain/keys/key.ts";
import type { RequestTrace } from "../../domain/request-trace.ts";
import type { CallSpanIds } from "../../domain/tracing.ts";
import type { AnswerMemory, CallMemory, RequestOrigin } from "../../snapshot/call.ts";
import type { MemoryGate, MemoryHold } from "../../domain/waiting/memory-gate.ts";
import { clientAddress } from "../client-address.ts";
import type { Connections } from "../listen.ts";
import type { HandledRequest } from "../../domain/handled-request.ts";
import type { DispatchOptions, EdgeSettings, Surface } from "./dispatch-options.ts";
import type { Dialect } from "../replies/error-reply.ts";
import type { StreamEnd } from "../replies/event-stream.ts";
import {
  answerMemoryFull,
  type BodyLimits,
  bodyMemoryFull,
  hasBody,
  readBody,
} from "../body/read-body.ts";
import type { Lingering } from "../body/lingering.ts";
import type { UnreadStreams } from "../body/unread-streams.ts";
import type { PublicCall } from "./route.ts";

/** What the requests of a listener share. */
export interface SharedParts {
  readonly options: DispatchOptions;
  readonly surfaces: ReadonlyMap<Dialect, Surface>;
  readonly bodyMemory: MemoryGate;
  readonly unread: UnreadStreams;
  readonly lingering: Lingering;
  readonly isAdmin: boolean;
}

/** One request in the dispatch: who sent it, and what it holds of the listener. */
export class RequestContext implements RequestOrigin, CallMemory, AnswerMemory {
  readonly shared: SharedParts;
  readonly edge: EdgeSettings;
  readonly request: Request;
  readonly connections: Connections;
  readonly id: string;
  readonly receivedAt: number;
  /** From its arrival until the answer is made. */
  durationMs = 0;
  /** Path of the route, once it is known. */
  route = "other";
  /** Set for a route that takes a key. */
  surface: Surface | undefined;
  /** Of the dialect of the path, for an error before the surface is known. */
  idHeader: string | undefined;
  caller: Caller | undefined;
  /** Account of the principal, once it is identified. */
  accountId: string | undefined;
  /** Memory of the body; it may be kept when the answer has begun. */
  body: MemoryHold | undefined;
  error: GatewayError | undefined;
  /** What limits in audit would have answered. */
  audited: GatewayError | undefined;
  /** False for a refusal that is not recorded. */
  isExplained = true;
  repeatedOf: HandledRequest["repeatedOf"];
  isIdleTimerPaused = false;
  /** Whether a call has begun, whose end is logged instead of the request. */
  isCall = false;
  /** Of a request with a key. */
  trace: RequestTrace | undefined;
  spans: CallSpanIds | undefined;
  #answer: MemoryHold | undefined;
  #granted: void | Promise<void> = undefined;

  constructor(shared: SharedParts, request: Request, connections: Connections) {
    const { options, isAdmin } = shared;
    this.shared = shared;
    this.receivedAt = options.clock.monotonic();
    this.id = options.newRequestId(request);
    const edge = options.edge();
    this.edge = isAdmin ? { ...edge, bodyLimits: adminBodyLimits(edge.bodyLimits) } : edge;
    this.request = request;
    this.connections = connections;
  }

  /** Made as late as possible: the signal is the expensive part of a request. */
  call(parameter: string): PublicCall {
    const { id, request, receivedAt } = this;
    return { id, request, signal: request.signal, receivedAt, parameter };
  }

  get address(): string {
    const { request, connections, edge } = this;
    const forwardedFor = (): string | null => request.headers.get("x-forwarded-for");
    return clientAddress(connections.peerAddress(request), forwardedFor, edge.trustedProxies);
  }

  /** Until the answer is made; the end of a streamed body resumes it. */
  pauseIdleTimer(): void {
    this.isIdleTimerPaused = true;
    this.connections.pauseIdleTimer(this.request);
  }

  streamEnded(end: StreamEnd): boolean {
    if (end === "cut") return this.connections.cutSoon(this.request);
    this.connections.resumeIdleTimer(this.request);
    return true;
  }

  /** By the first of its limits that would have. */
  wouldBeRefused(refusal: GatewayError): void {
    this.audited ??= refusal;
  }

  becomesCall(): void {
    this.isCall = true;
  }

  get method(): string {
    return this.request.method;
  }

  readBody(): Promise<Uint8Array> {
    const { request, edge, shared } = this;
    if (shared.isAdmin && !hasBody(request)) return Promise.resolve(new Uint8Array(0));
    const { id: name, accountId: account } = this.#owner;
    shared.unread.check(account, edge.bodyLimits.bodyMemory.allBytes);
    const owner = { name, account, request, full: bodyMemoryFull };
    this.body = shared.bodyMemory.hold(owner, edge.bodyLimits.bodyMemory);
    return readBody(request, edge.bodyLimits, this.body);
  }

  keep(): () => void {
    return this.body?.keep() ?? (() => undefined);
  }

  takesMore(bytes: number): void {
    this.body?.takesMore(bytes);
  }

  unread(bytes: number): void {
    this.shared.unread.change(this.#owner.accountId, bytes);
  }

  /** An answer above what one key may hold takes all of that. Requests of one call wait together. */
  reserve(bytes: number): void | Promise<void> {
    if (this.#answer !== undefined) return this.#granted;
    const { request, shared } = this;
    const { bodyMemory: limits } = this.edge.bodyLimits;
    const { id: name, accountId: account } = this.#owner;
    const owner = { name, account, request, full: answerMemoryFull };
    this.#answer = shared.bodyMemory.hold(owner, limits);
    this.#granted = this.#answer.reserve(Math.min(bytes, limits.ownBytes));
    return this.#granted;
  }

  shrinkTo(bytes: number): void {
    this.#answer?.becomes(bytes);
  }

  release(): void {
    this.#answer?.release();
  }

  /** Who answers for what a request takes: the key, or the address of a request without one. */
  get #owner(): Pick<Key, "id" | "accountId"> {
    if (this.caller !== undefined) return this.caller.key;
    const { address } = this;
    return { id: address, accountId: address };
  }
}

/** Enough for every request of the control plane. */
const most = {
  bodyBytes: 1_048_576,
  depth: 32,
  memoryBytes: 64 * 1_048_576,
  /** For all bodies from one address. */
  memoryPerAddressBytes: 8 * 1_048_576,
} as const;

/** Limits of bodies on the admin listener: the configured ones, capped. */
function adminBodyLimits(limits: BodyLimits): BodyLimits {
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
