import { times, type Random } from "./random.ts";
import type { Fault, UpstreamPlan } from "./scenario.ts";
import type { AnswerWords, RefusalName, TokenCounts, UpstreamRequest, Wire } from "./wire.ts";

/** The planned answer of an upstream with its times. */
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
  /** The number of bytes after which it may count as complete; Infinity: never. */
  readonly finishedBytes: number;
}

export interface Piece {
  /** The delay after the previous piece or the headers. */
  readonly afterMs: number;
  readonly bytes: Uint8Array;
}

/** The content of the answer, to compare with the gateway's output. */
export interface Truth {
  /** By choice. */
  readonly texts: readonly string[];
  /** Undefined: not sent. */
  readonly usage: TokenCounts | undefined;
  /** Whether the answer ends properly. */
  readonly isWhole: boolean;
  /** Whether it may count as complete: all choices have a finish reason. */
  readonly mayComplete: boolean;
}

export interface AnswerFrame {
  readonly plan: UpstreamPlan;
  readonly wire: Wire;
  readonly request: UpstreamRequest;
  /** The first word of every text, which identifies the answer. */
  readonly tag: string;
  readonly outputTokens: number;
  readonly fault: Fault | undefined;
}

const encoder = new TextEncoder();
const nothing: Truth = { texts: [], usage: undefined, isWhole: false, mayComplete: false };

export function writeScript(frame: AnswerFrame, random: Random): Script {
  const { fault, plan } = frame;
  const thinkMs = plan.thinkMs * (0.5 + random.next()) * (fault === "slow" ? 10 : 1);
  const refusal = refusalOf(frame, random);
  if (refusal !== undefined) return { ...refusal, headersAfterMs: thinkMs };
  const isStreamed = frame.request.kind === "stream";
  const draft = isStreamed ? streamed(frame, random) : whole(frame, random);
  return withFault({ ...draft, headersAfterMs: thinkMs }, frame, random);
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
    finishedBytes: Number.POSITIVE_INFINITY,
  };
}

/** An error as the answer to any request. */
function refusalOf({ fault, wire }: AnswerFrame, random: Random): Script | undefined {
  const refuse = (name: RefusalName, more: Readonly<Record<string, string>> = {}): Script => {
    const { status, headers, body } = wire.refusal(name);
    const script = jsonScript(body);
    return { ...script, status, headers: { ...script.headers, ...headers, ...more } };
  };
  switch (fault) {
    case "refused":
      return { ...plainScript(), connect: "refused" };
    case "hanging-connect":
      return { ...plainScript(), connect: "hanging" };
    case "throttled":
    case "failed":
    case "overloaded":
    case "bad-credential":
    case "stale-credential":
    case "invalid":
    case "overflow":
    case "content-refused":
    case "unknown-model":
      return refuse(fault);
    case "skewed":
      return refuse("stale-credential");
    case "throttled-with-time":
      return refuse("throttled", { "retry-after": String(random.whole(1, 8)) });
    case "error-page": {
      const bytes = encoder.encode("<html><body>Bad Gateway</body></html>");
      return { ...plainScript(), status: 502, pieces: [{ afterMs: 0, bytes }] };
    }
    case "redirect":
      return { ...plainScript(), status: 302, headers: { location: "http://elsewhere.sim/" } };
    default:
      return undefined;
  }
}

function jsonScript(body: unknown): Script {
  const bytes = encoder.encode(JSON.stringify(body));
  const headers = {
    "content-type": "application/json",
    "content-length": String(bytes.byteLength),
  };
  return { ...plainScript(), headers, pieces: [{ afterMs: 0, bytes }] };
}

/** The normal answer with its fault applied. */
function withFault(draft: Script, { fault, wire }: AnswerFrame, random: Random): Script {
  const { pieces, finishedBytes } = draft;
  const some = cutShort(pieces, random);
  const mayComplete = bytesIn(some) >= finishedBytes;
  const truth = { ...draft.truth, isWhole: false, mayComplete };
  const none = { ...truth, mayComplete: false };
  switch (fault) {
    case "reset-before-headers":
      return { ...draft, isResetBeforeHeaders: true, truth: none };
    case "stall-before-headers":
      return { ...draft, headersAfterMs: Number.POSITIVE_INFINITY, truth: none };
    case "reset-after-headers":
      return { ...draft, pieces: [], ending: "reset", truth: none };
    case "stall-after-headers":
      return { ...draft, pieces: [], ending: "silent", truth: none };
    case "stall-mid":
      return { ...draft, pieces: some, ending: "silent", truth };
    case "stall-halfway": {
      const half = firstBytes(pieces, Math.floor(finishedBytes / 2));
      return { ...draft, pieces: half, ending: "silent", truth: none };
    }
    case "cut-mid":
      return { ...draft, pieces: some, ending: "closed", truth };
    case "reset-mid":
      return { ...draft, pieces: some, ending: "reset", truth };
    case "never-closes":
      return { ...draft, ending: "silent" };
    case "empty":
      return { ...draft, headers: {}, pieces: [], truth: nothing };
    case "compressed":
      // Unpacking runs on real threads, so this is an encoding that nobody reads.
      return { ...draft, headers: { ...draft.headers, "content-encoding": "lzma" }, truth: none };
    case "garbage": {
      const bytes = encoder.encode('data: {"choices": [{]\n\n<garbage>');
      return { ...draft, headers: {}, pieces: [{ afterMs: 0, bytes }], truth: nothing };
    }
    case "error-mid": {
      const error = { afterMs: 1, bytes: wire.error() };
      return { ...draft, headers: {}, pieces: [...some, error], truth };
    }
    default:
      return draft;
  }
}

/** At least one byte is sent, and at least one is missing. */
function cutShort(pieces: readonly Piece[], random: Random): readonly Piece[] {
  return firstBytes(pieces, random.whole(1, Math.max(1, bytesIn(pieces) - 1)));
}

function firstBytes(pieces: readonly Piece[], count: number): readonly Piece[] {
  let rest = count;
  const kept: Piece[] = [];
  for (const { afterMs, bytes } of pieces) {
    if (rest <= 0) break;
    kept.push({ afterMs, bytes: bytes.subarray(0, rest) });
    rest -= bytes.length;
  }
  return kept;
}

function bytesIn(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { bytes }) => sum + bytes.length, 0);
}

function countTokens({ plan, request, outputTokens, fault }: AnswerFrame): TokenCounts {
  const inputTokens = Math.max(1, Math.round(request.inputBytes * plan.tokensPerByte));
  if (request.kind === "embedding") return { inputTokens, outputTokens: 0 };
  const cap = fault === "beyond-cap" ? undefined : request.cap;
  const written = Math.min(outputTokens, cap ?? outputTokens);
  return { inputTokens, outputTokens: written * request.choices };
}

/** The words of the answer, in this number of pieces. */
function wordsOf(frame: AnswerFrame, steps: number): AnswerWords & { readonly truth: Truth } {
  const { request, tag, fault } = frame;
  const counts = countTokens(frame);
  const usages = fault === "no-usage" ? [] : fault === "usage-twice" ? [counts, counts] : [counts];
  const pieces = times(request.choices, (choice) =>
    times(steps, (step) => (step === 0 ? `${tag}.${choice} w0` : ` w${step}`)),
  );
  const texts = pieces.map((each) => each.join(""));
  const truth = { texts, usage: usages[0], isWhole: true, mayComplete: true };
  return { pieces, usages, vectors: request.inputs, truth };
}

function whole(frame: AnswerFrame, random: Random): Script {
  const { fault, plan, wire } = frame;
  const words = wordsOf(frame, 1);
  const script = { ...jsonScript(wire.whole(words)), truth: words.truth };
  const finishedBytes = bytesIn(script.pieces);
  const mayDeclare = fault !== "never-closes";
  const [only] = script.pieces;
  if ((mayDeclare && random.chance(0.5)) || only === undefined) return { ...script, finishedBytes };
  const pieces = cutApart(only.bytes, random.whole(1, 4), random).map((bytes) => {
    return { afterMs: plan.pieceMs, bytes };
  });
  const isDeclared = mayDeclare && random.chance(0.5);
  const headers = isDeclared ? script.headers : { "content-type": "application/json" };
  return { ...script, headers, pieces, finishedBytes };
}

function streamed(frame: AnswerFrame, random: Random): Script {
  const { fault, plan, wire } = frame;
  const words = wordsOf(frame, random.whole(1, 6));
  const { contentType, chunks, finishedBytes } = wire.streamed(words);
  const afterMs = plan.pieceMs * (fault === "slow" ? 5 : 1);
  const sent = fault === "malformed-event" ? withOneMore(chunks, wire.malformed(), random) : chunks;
  const pieces = inPieces(sent, random).map((bytes) => ({ afterMs, bytes }));
  const headers = { "content-type": contentType };
  return { ...plainScript(), headers, pieces, truth: words.truth, finishedBytes };
}

/** An answer that has begun continues after it; otherwise it fails. */
function withOneMore(
  chunks: readonly Uint8Array[],
  chunk: Uint8Array,
  random: Random,
): readonly Uint8Array[] {
  return chunks.toSpliced(random.whole(0, chunks.length), 0, chunk);
}

/** One chunk a piece, or cut anywhere, because the network ignores events. */
function inPieces(chunks: readonly Uint8Array[], random: Random): readonly Uint8Array[] {
  if (random.chance(0.5)) return chunks;
  return cutApart(Buffer.concat(chunks), random.whole(1, 8), random);
}

function cutApart(bytes: Uint8Array, parts: number, random: Random): readonly Uint8Array[] {
  const cuts = times(parts - 1, () => random.whole(0, bytes.length)).toSorted((a, b) => a - b);
  return [0, ...cuts].map((start, index) => bytes.subarray(start, cuts[index] ?? bytes.length));
}
