import { bedrockRoute, isBedrockPath, planBedrockCall, wirePath } from "./bedrock/plan-call.ts";
import { BedrockError, errorReply as bedrockErrorReply } from "./bedrock/errors.ts";
import {
  type IncomingCall,
  OpenCall,
  type Plan,
  type PlanParts,
  type TruthEntry,
  type TruthLog,
} from "./call.ts";
import { rawFault, withTransportFault } from "./faults/transport.ts";
import { isFrame, type Reply, type Step } from "./reply.ts";
import type { RawConnection } from "./front.ts";
import { messagesRoute, planMessagesCall } from "./messages/plan-call.ts";
import { openAiRoute, planOpenAiCall } from "./openai/plan-call.ts";
import { errorReply, WireError } from "./openai/errors.ts";
import { nextTurn, Pace, type PaceOptions, wait } from "./time.ts";

interface DispatchParts extends PlanParts {
  readonly truth: TruthLog;
  readonly pace: PaceOptions;
  readonly onTruth: ((entry: TruthEntry) => void) | undefined;
  readonly takeOver: (peerPort: number) => RawConnection | undefined;
}

interface Dispatch {
  readonly openCalls: number;
  handle(request: Request, peerPort: number): Promise<Response>;
}

/** Answers every request of the simulator's HTTP server. */
export function createDispatch(parts: DispatchParts): Dispatch {
  let openCalls = 0;
  let callCount = 0;
  const begin = (kind: TruthEntry["kind"], request: Request): OpenCall => {
    openCalls += 1;
    callCount += 1;
    const startedAt = parts.clock.now();
    const id = `${startedAt.toString(36)}${callCount.toString(36).padStart(6, "0")}`;
    const requestId = request.headers.get("x-request-id");
    return new OpenCall({ id, kind, requestId, startedAt }, (ended) => {
      openCalls -= 1;
      const entry = { ...ended, endedAt: parts.clock.now() };
      parts.truth.add(entry);
      parts.onTruth?.(entry);
    });
  };
  return {
    get openCalls() {
      return openCalls;
    },
    async handle(request, peerPort) {
      const path = pathOf(request);
      const control = controlResponse(request.method, path, parts.truth);
      if (control !== undefined) return control;
      const route = routeOf(request, path, parts);
      if ("reply" in route) return textResponse(route.reply);
      const call = begin(route.kind, request);
      return serveCall({ request, peerPort, call, plan: route.plan }, parts);
    },
  };
}

interface Route {
  readonly kind: TruthEntry["kind"];
  readonly plan: (incoming: IncomingCall) => Promise<Plan>;
}

/** The route of a request on either wire, or the reply if there is none. */
function routeOf(
  request: Request,
  path: string,
  parts: PlanParts,
): Route | { readonly reply: Reply } {
  const { path: sentPath } = wirePath(request.url);
  if (isBedrockPath(sentPath)) {
    const known = bedrockRoute(request.method, sentPath);
    if (known instanceof BedrockError) return { reply: bedrockErrorReply(known) };
    return { kind: known.kind, plan: (incoming) => planBedrockCall(known, incoming, parts) };
  }
  const message = messagesRoute(request.method, path);
  if (message !== undefined) {
    return {
      kind: message.kind,
      plan: (incoming) => planMessagesCall(message, incoming, parts),
    };
  }
  const route = openAiRoute(request.method, path);
  if (route === undefined) {
    const text = `Invalid URL (${request.method} ${new URL(request.url).pathname})`;
    return { reply: errorReply(new WireError(404, { message: text })) };
  }
  const kind = route.kind === "models" || route.kind === "embeddings" ? route.kind : "chat";
  return { kind, plan: (incoming) => planOpenAiCall(route, incoming, parts) };
}

interface Incoming extends IncomingCall {
  readonly peerPort: number;
  readonly plan: Route["plan"];
}

async function serveCall(incoming: Incoming, parts: DispatchParts): Promise<Response> {
  const { request, call } = incoming;
  const pace = new Pace(parts.pace, parts.clock);
  const signal = request.signal;
  try {
    const { reply, fault } = await incoming.plan({ request, call });
    const raw = rawFault(fault);
    if (raw !== undefined) return await serveRaw({ incoming, reply, raw }, parts);
    if (fault.mode === "slow-first-byte") await wait(fault.argument ?? 2000, signal);
    return await sendReply(withTransportFault(reply, fault), { call, pace, signal });
  } catch (error) {
    if (error instanceof WireError) {
      return sendReply(errorReply(error), { call, pace, signal });
    }
    // The caller left, or the simulator has a bug; either way the call is over.
    call.end(signal.aborted);
    throw error;
  }
}

async function serveRaw(
  sending: {
    readonly incoming: Incoming;
    readonly reply: Reply;
    readonly raw: NonNullable<ReturnType<typeof rawFault>>;
  },
  parts: DispatchParts,
): Promise<Response> {
  const { incoming, reply, raw } = sending;
  const connection = parts.takeOver(incoming.peerPort);
  if (connection === undefined) {
    const message = "This fault cuts the connection, which the direct address cannot do.";
    throw new WireError(400, { message, code: "fault_needs_front" });
  }
  await raw({ connection, reply, call: incoming.call });
  incoming.call.end(false);
  // Never read: the connection to this server is closed.
  return new Response(null);
}

/** Removes `/v1`: paths with and without it are the same. */
function pathOf(request: Request): string {
  const { pathname } = new URL(request.url);
  return pathname.replace(/^(?:\/v1)+(?=\/)/, "").replace(/(?<=.)\/$/, "");
}

function controlResponse(method: string, path: string, truth: TruthLog): Response | undefined {
  if (path === "/healthz" && method === "GET") return Response.json({ status: "ok" });
  if (path !== "/truth") return undefined;
  if (method === "GET") return Response.json({ entries: truth.entries });
  if (method !== "DELETE") return undefined;
  truth.clear();
  return new Response(null, { status: 204 });
}

function textResponse({ status, headers, steps }: Reply): Response {
  const text = Array.from(steps, (step) => ("data" in step ? String(step.data) : "")).join("");
  return new Response(text, { status, headers });
}

/** What sending a reply needs besides the reply. */
interface Delivery {
  readonly call: OpenCall;
  readonly pace: Pace;
  /** Fires when the caller has left. */
  readonly signal: AbortSignal;
}

/** Sends a reply through the HTTP server. The call ends when the last byte is handed over. */
async function sendReply(reply: Reply, delivery: Delivery): Promise<Response> {
  const { status, headers, steps } = reply;
  const { call, pace, signal } = delivery;
  const [only] = isArray(steps) && steps.length === 1 ? steps : [];
  if (only === undefined || !isFrame(only)) {
    if (!signal.aborted) call.update({ status });
    return new Response(streamSteps(steps, delivery), { status, headers });
  }
  await wait(pace.delayMs(only.tokens), signal);
  if (!signal.aborted) {
    call.update({ status });
    call.countSent(only);
  }
  call.end(signal.aborted);
  return new Response(only.data, { status, headers });
}

function isArray(steps: Iterable<Step>): steps is readonly Step[] {
  return Array.isArray(steps);
}

/** Later writes are flushed in batches: one by one a long stream would take too long. */
const singleWrites = 4096;
const writesPerFlush = 64;

/** Pulled by the connection: nothing is generated before there is room to send it. */
function streamSteps(
  steps: Iterable<Step>,
  { call, pace, signal }: Delivery,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = steps[Symbol.iterator]();
  let writes = 0;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const step = await nextFrame(iterator, pace, signal);
        if (step === undefined) {
          call.end(signal.aborted);
          if (!signal.aborted) controller.close();
          return;
        }
        writes += 1;
        // The server joins everything enqueued in one turn of the event loop into one write.
        if (writes <= singleWrites || writes % writesPerFlush === 0) await nextTurn();
        if (signal.aborted) {
          call.end(true);
          return;
        }
        call.countSent(step);
        controller.enqueue(typeof step.data === "string" ? encoder.encode(step.data) : step.data);
      },
      cancel() {
        iterator.return?.();
        call.end(true);
      },
    },
    { highWaterMark: 0 },
  );
}

/** The next frame once it is due; undefined at the end or if the caller leaves first. */
async function nextFrame(iterator: Iterator<Step>, pace: Pace, signal: AbortSignal) {
  while (!signal.aborted) {
    const next = iterator.next();
    if (next.done === true) return undefined;
    const step = next.value;
    const delayMs = isFrame(step) ? pace.delayMs(step.tokens) : step.pauseMs;
    if (delayMs > 0) await wait(delayMs, signal);
    if (isFrame(step) && !signal.aborted) return step;
  }
  return undefined;
}
