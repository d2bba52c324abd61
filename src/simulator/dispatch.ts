import { type FaultChooser, faultHeader } from "./faults/fault-chooser.ts";
import { faultModes, type Fault } from "./faults/fault-mode.ts";
import { rawFault } from "./faults/raw-faults.ts";
import { withTransportFault } from "./faults/transport-faults.ts";
import { jsonReply, type Reply } from "./frame.ts";
import type { RawConnection } from "./front/raw-connection.ts";
import { OpenCall } from "./open-call.ts";
import { chatReply } from "./openai/chat.ts";
import { embeddingsReply, readEmbeddingRequest } from "./openai/embeddings.ts";
import { modelBody, modelListBody } from "./openai/models.ts";
import { readChatRequest } from "./openai/read-chat-request.ts";
import { errorReply, refusalReply } from "./openai/refusal-faults.ts";
import { WireError, wrongKey, wrongType } from "./openai/wire-error.ts";
import { Pace, type PaceOptions } from "./pace.ts";
import { isRecord, parseJson, stringOf, type JsonRecord } from "./read-json.ts";
import { sendReply } from "./send-reply.ts";
import type { TruthEntry, TruthLog } from "./truth-log.ts";
import { wait } from "./wait.ts";
import type { Clock } from "../domain/clock.ts";

export interface DispatchParts {
  readonly clock: Clock;
  readonly truth: TruthLog;
  readonly faults: FaultChooser;
  readonly pace: PaceOptions;
  readonly apiKeys: ReadonlySet<string> | undefined;
  readonly contextWindow: number | undefined;
  readonly onTruth: ((entry: TruthEntry) => void) | undefined;
  readonly takeOver: (peerPort: number) => RawConnection | undefined;
}

export interface Dispatch {
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
      const own = ownRoute(request.method, path, parts.truth);
      if (own !== undefined) return own;
      const kind = callKind(request.method, path);
      if (kind === undefined) return textResponse(errorReply(unknownUrl(request)));
      return serveCall({ request, path, peerPort, call: begin(kind, request) }, kind, parts);
    },
  };
}

interface Incoming {
  readonly request: Request;
  readonly path: string;
  readonly peerPort: number;
  readonly call: OpenCall;
}

/** What a call becomes once its request has been read. */
interface Plan {
  readonly reply: Reply;
  readonly fault: Fault;
}

async function serveCall(
  incoming: Incoming,
  kind: TruthEntry["kind"],
  parts: DispatchParts,
): Promise<Response> {
  const { request, call } = incoming;
  const pace = new Pace(parts.pace, parts.clock);
  const signal = request.signal;
  try {
    const { reply, fault } = await planCall(incoming, kind, parts);
    const raw = rawFault(fault);
    if (raw !== undefined) return await serveRaw({ incoming, reply, raw }, parts);
    if (fault.mode === "slow-first-byte") await wait(fault.argument ?? 2000, signal);
    return await sendReply(withTransportFault(reply, fault), { call, pace, signal });
  } catch (error) {
    if (error instanceof WireError) {
      return sendReply(errorReply(error), { call, pace, signal });
    }
    // The caller left while sending, or the simulator is wrong; either way the call is over.
    call.end(signal.aborted);
    throw error;
  }
}

async function planCall(
  { request, path, call }: Incoming,
  kind: TruthEntry["kind"],
  parts: DispatchParts,
): Promise<Plan> {
  checkKey(request, parts.apiKeys);
  const body = kind === "models" ? {} : await readBody(request);
  const model = stringOf(body["model"]);
  const fault = parts.faults.choose(request.headers.get(faultHeader), model);
  if (fault === undefined) throw unknownFault();
  call.update({ model, fault: fault.mode });
  const refusal = refusalReply(fault, model);
  if (refusal !== undefined) return { fault, reply: refusal };
  switch (kind) {
    case "models":
      return { fault, reply: modelsReply(path) };
    case "embeddings": {
      const read = readEmbeddingRequest(body);
      call.update({ promptTokens: read.promptTokens });
      return { fault, reply: embeddingsReply(read, fault) };
    }
    case "chat": {
      const read = readChatRequest(body, parts.contextWindow);
      call.update({ promptTokens: read.promptTokens, isStreamed: read.isStreamed });
      const created = Math.floor(parts.clock.now() / 1000);
      const identity = { id: `chatcmpl-${call.id}`, created, model };
      return { fault, reply: chatReply(read, identity, fault) };
    }
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
  // Nobody reads this: the connection to this server is gone.
  return new Response(null);
}

/** Answers both `/v1/x` and `/x`. */
function pathOf(request: Request): string {
  const { pathname } = new URL(request.url);
  return pathname.replace(/^(?:\/v1)+(?=\/)/, "").replace(/(?<=.)\/$/, "");
}

function ownRoute(method: string, path: string, truth: TruthLog): Response | undefined {
  if (path === "/healthz" && method === "GET") return Response.json({ status: "ok" });
  if (path !== "/truth") return undefined;
  if (method === "GET") return Response.json({ entries: truth.entries });
  if (method !== "DELETE") return undefined;
  truth.clear();
  return new Response(null, { status: 204 });
}

function callKind(method: string, path: string): TruthEntry["kind"] | undefined {
  if (method === "GET" && (path === "/models" || path.startsWith("/models/"))) return "models";
  if (method !== "POST") return undefined;
  if (path === "/chat/completions") return "chat";
  return path === "/embeddings" ? "embeddings" : undefined;
}

function modelsReply(path: string): Reply {
  const id = decodeURIComponent(path.slice("/models/".length));
  return jsonReply(JSON.stringify(id === "" ? modelListBody() : modelBody(id)));
}

function textResponse({ status, headers, steps }: Reply): Response {
  const text = Array.from(steps, (step) => ("data" in step ? String(step.data) : "")).join("");
  return new Response(text, { status, headers });
}

function checkKey(request: Request, apiKeys: ReadonlySet<string> | undefined): void {
  if (apiKeys === undefined) return;
  const header = request.headers.get("authorization") ?? "";
  const key = /^bearer\s+(.*)$/i.exec(header)?.[1]?.trim() ?? "";
  if (!apiKeys.has(key)) throw wrongKey(key);
}

async function readBody(request: Request): Promise<JsonRecord> {
  const text = await request.text();
  let body: unknown;
  try {
    body = parseJson(text);
  } catch {
    throw new WireError(400, {
      message:
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't " +
        "using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was " +
        "sent was not valid JSON.)",
    });
  }
  if (!isRecord(body)) throw wrongType("body", "an object", body);
  return body;
}

function unknownFault(): WireError {
  const known = Object.keys(faultModes).join(", ");
  const message = `No such fault. ${faultHeader} takes mode or mode:argument, with mode one of: ${known}.`;
  return new WireError(400, { message, code: "unknown_fault" });
}

function unknownUrl(request: Request): WireError {
  const message = `Invalid URL (${request.method} ${new URL(request.url).pathname})`;
  return new WireError(404, { message });
}
