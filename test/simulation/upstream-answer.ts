import { times, type Random } from "./random.ts";
import type { Fault, UpstreamPlan } from "./scenario.ts";

/** What an upstream reads of a request. Written apart from the adapters that it tests. */
export interface UpstreamRequest {
  readonly call: string;
  readonly model: string;
  readonly kind: "whole" | "stream" | "embedding";
  readonly cap: number | undefined;
  readonly choices: number;
  readonly inputBytes: number;
  /** Embeddings: how many; 0 for chat. */
  readonly inputs: number;
}

/** What an upstream will do about a request, and when. */
export interface Script {
  readonly connect: "open" | "refused" | "hanging";
  /** Infinity: never. */
  readonly headersAfterMs: number;
  readonly isResetBeforeHeaders: boolean;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly pieces: readonly Piece[];
  readonly ending: "closed" | "reset" | "silent";
  readonly truth: Truth;
}

export interface Piece {
  /** After the piece before, or after the headers. */
  readonly afterMs: number;
  readonly bytes: Uint8Array;
}

/** What the answer says, for who compares it with what came out of the gateway. */
export interface Truth {
  readonly texts: readonly string[];
  /** Undefined: not told. */
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number } | undefined;
  /** Whether the answer comes to its end as it should. */
  readonly isWhole: boolean;
  /** Whether a reader may take it for whole: all choices said that they were finished. */
  readonly mayComplete: boolean;
}

export interface AnswerFrame {
  readonly plan: UpstreamPlan;
  readonly request: UpstreamRequest;
  /** Begins every text, so that answers cannot be taken for each other. */
  readonly tag: string;
  readonly outputTokens: number;
  readonly fault: Fault | undefined;
}

const encoder = new TextEncoder();
const nothing: Truth = { texts: [], usage: undefined, isWhole: false, mayComplete: false };

export function writeScript(frame: AnswerFrame, random: Random): Script {
  const { fault, plan } = frame;
  const thinkMs = plan.thinkMs * (0.5 + random.next()) * (fault === "slow" ? 10 : 1);
  const refusal = refusalOf(fault, random);
  if (refusal !== undefined) return { ...refusal, headersAfterMs: thinkMs };
  const isStreamed = frame.request.kind === "stream";
  const script = isStreamed ? streamed(frame, random) : whole(frame, random);
  return afflict({ ...script, headersAfterMs: thinkMs }, fault, random);
}

function plainScript(): Script {
  return {
    connect: "open",
    headersAfterMs: 0,
    isResetBeforeHeaders: false,
    status: 200,
    headers: {},
    pieces: [],
    ending: "closed",
    truth: nothing,
  };
}

/** An answer that is an error, whatever was asked. */
function refusalOf(fault: Fault | undefined, random: Random): Script | undefined {
  const error = (status: number, words: Readonly<Record<string, string>>): Script =>
    jsonScript(status, { error: { message: "no", ...words } });
  switch (fault) {
    case "refused":
      return { ...plainScript(), connect: "refused" };
    case "hanging-connect":
      return { ...plainScript(), connect: "hanging" };
    case "throttled":
      return error(429, { type: "rate_limit_error" });
    case "throttled-with-time": {
      const script = error(429, { type: "rate_limit_error" });
      const seconds = String(random.whole(1, 8));
      return { ...script, headers: { ...script.headers, "retry-after": seconds } };
    }
    case "failed":
      return error(500, { type: "server_error" });
    case "overloaded":
      return error(503, { type: "server_error" });
    case "error-page": {
      const bytes = encoder.encode("<html><body>Bad Gateway</body></html>");
      return { ...plainScript(), status: 502, pieces: [{ afterMs: 0, bytes }] };
    }
    case "bad-credential":
      return error(401, { code: "invalid_api_key" });
    case "invalid":
      return error(400, { type: "invalid_request_error" });
    case "overflow":
      return error(400, { code: "context_length_exceeded" });
    case "content-refused":
      return error(400, { code: "content_policy_violation" });
    case "unknown-model":
      return error(404, { code: "model_not_found" });
    case "redirect":
      return { ...plainScript(), status: 302, headers: { location: "http://elsewhere.sim/" } };
    default:
      return undefined;
  }
}

function jsonScript(status: number, body: unknown): Script {
  const bytes = encoder.encode(JSON.stringify(body));
  const headers = {
    "content-type": "application/json",
    "content-length": String(bytes.byteLength),
  };
  return { ...plainScript(), status, headers, pieces: [{ afterMs: 0, bytes }] };
}

/** The answer as it would be, with what goes wrong with it. */
function afflict(script: Script, fault: Fault | undefined, random: Random): Script {
  const { pieces } = script;
  const some = cutShort(pieces, random);
  const truth = { ...script.truth, isWhole: false, mayComplete: isFinished(some, script) };
  const none = { ...truth, mayComplete: false };
  switch (fault) {
    case "reset-before-headers":
      return { ...script, isResetBeforeHeaders: true, truth: none };
    case "stall-before-headers":
      return { ...script, headersAfterMs: Number.POSITIVE_INFINITY, truth: none };
    case "reset-after-headers":
      return { ...script, pieces: [], ending: "reset", truth: none };
    case "stall-after-headers":
      return { ...script, pieces: [], ending: "silent", truth: none };
    case "stall-mid":
      return { ...script, pieces: some, ending: "silent", truth };
    case "cut-mid":
      return { ...script, pieces: some, ending: "closed", truth };
    case "reset-mid":
      return { ...script, pieces: some, ending: "reset", truth };
    case "never-closes":
      return { ...script, ending: "silent" };
    case "empty":
      return { ...script, headers: {}, pieces: [], truth: nothing };
    case "compressed":
      return { ...script, headers: { ...script.headers, "content-encoding": "gzip" }, truth: none };
    case "garbage": {
      const bytes = encoder.encode('data: {"choices": [{]\n\n<garbage>');
      return { ...script, headers: {}, pieces: [{ afterMs: 0, bytes }], truth: nothing };
    }
    case "error-mid": {
      const bytes = encoder.encode('data: {"error":{"message":"no","type":"server_error"}}\n\n');
      return { ...script, headers: {}, pieces: [...some, { afterMs: 1, bytes }], truth };
    }
    default:
      return script;
  }
}

/** At least one byte comes, and at least one is missing. */
function cutShort(pieces: readonly Piece[], random: Random): readonly Piece[] {
  const total = pieces.reduce((sum, { bytes }) => sum + bytes.length, 0);
  let rest = random.whole(1, Math.max(1, total - 1));
  const kept: Piece[] = [];
  for (const { afterMs, bytes } of pieces) {
    if (rest <= 0) break;
    kept.push({ afterMs, bytes: bytes.subarray(0, rest) });
    rest -= bytes.length;
  }
  return kept;
}

/** A stream whose choices have all ended is whole for its reader, whatever becomes of the rest. */
function isFinished(kept: readonly Piece[], { headers, truth }: Script): boolean {
  if (headers["content-type"] !== "text/event-stream") return false;
  const text = Buffer.concat(kept.map(({ bytes }) => bytes)).toString();
  return text.split('"finish_reason":"stop"').length - 1 >= truth.texts.length;
}

function countTokens({ plan, request, outputTokens, fault }: AnswerFrame): {
  inputTokens: number;
  outputTokens: number;
} {
  const inputTokens = Math.max(1, Math.round(request.inputBytes * plan.tokensPerByte));
  if (request.kind === "embedding") return { inputTokens, outputTokens: 0 };
  const cap = fault === "beyond-cap" ? undefined : request.cap;
  const written = Math.min(outputTokens, cap ?? outputTokens);
  return { inputTokens, outputTokens: written * request.choices };
}

function usageBody({ inputTokens, outputTokens }: ReturnType<typeof countTokens>): unknown {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
}

function whole(frame: AnswerFrame, random: Random): Script {
  const { request, tag, fault } = frame;
  const counts = countTokens(frame);
  const usage = fault === "no-usage" ? undefined : counts;
  const told = usage === undefined ? {} : { usage: usageBody(usage) };
  const texts = times(request.choices, (choice) => `${tag}.${choice} whole`);
  const body =
    request.kind === "embedding"
      ? { object: "list", data: vectors(request.inputs), ...told }
      : { object: "chat.completion", choices: texts.map(choiceBody), ...told };
  const script = jsonScript(200, body);
  const truth = {
    texts: request.kind === "embedding" ? [] : texts,
    usage,
    isWhole: true,
    mayComplete: true,
  };
  const isDeclared = random.chance(0.7) && fault !== "never-closes";
  const [only] = script.pieces;
  if (isDeclared || only === undefined) return { ...script, truth };
  const pieces = cutApart(only.bytes, random.whole(1, 4), random).map((bytes) => ({
    afterMs: frame.plan.pieceMs,
    bytes,
  }));
  return { ...script, headers: { "content-type": "application/json" }, pieces, truth };
}

function choiceBody(content: string, index: number): unknown {
  return { index, message: { role: "assistant", content }, finish_reason: "stop" };
}

function vectors(inputs: number): readonly unknown[] {
  return times(inputs, (index) => ({ object: "embedding", index, embedding: [0.5, index] }));
}

function streamed(frame: AnswerFrame, random: Random): Script {
  const { request, tag, fault, plan } = frame;
  const counts = countTokens(frame);
  const usage = fault === "no-usage" ? undefined : counts;
  const steps = random.whole(1, 6);
  const chunks: string[] = [];
  const texts = times(request.choices, () => "").map(String);
  const send = (choices: readonly unknown[], more: Readonly<Record<string, unknown>> = {}) =>
    void chunks.push(
      `data: ${JSON.stringify({ object: "chat.completion.chunk", choices, ...more })}\n\n`,
    );
  for (let step = 0; step < steps; step += 1) {
    for (let choice = 0; choice < request.choices; choice += 1) {
      const content = `${step === 0 ? `${tag}.${choice}` : ""} w${step}`;
      texts[choice] += content;
      send([{ index: choice, delta: { content }, finish_reason: null }]);
    }
  }
  for (let choice = 0; choice < request.choices; choice += 1) {
    send([{ index: choice, delta: {}, finish_reason: "stop" }]);
  }
  if (usage !== undefined) send([], { usage: usageBody(usage) });
  if (fault === "usage-twice") send([], { usage: usageBody(counts) });
  chunks.push("data: [DONE]\n\n");
  const pieceMs = plan.pieceMs * (fault === "slow" ? 5 : 1);
  const pieces = inPieces(chunks, random).map((bytes) => ({ afterMs: pieceMs, bytes }));
  const headers = { "content-type": "text/event-stream" };
  return {
    ...plainScript(),
    headers,
    pieces,
    truth: { texts, usage, isWhole: true, mayComplete: true },
  };
}

/** One chunk a piece, or cut anywhere: the network knows nothing of events. */
function inPieces(chunks: readonly string[], random: Random): readonly Uint8Array[] {
  if (random.chance(0.5)) return chunks.map((chunk) => encoder.encode(chunk));
  return cutApart(encoder.encode(chunks.join("")), random.whole(1, 8), random);
}

function cutApart(bytes: Uint8Array, parts: number, random: Random): readonly Uint8Array[] {
  const cuts = times(parts - 1, () => random.whole(0, bytes.length)).toSorted((a, b) => a - b);
  return [0, ...cuts].map((start, index) => bytes.subarray(start, cuts[index] ?? bytes.length));
}
