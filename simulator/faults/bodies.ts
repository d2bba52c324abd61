import { constants, crc32, deflateRawSync } from "node:zlib";
import { type Frame, isPause, jsonReply, type Reply } from "../reply.ts";
import { isRecord, type JsonRecord, listOf, recordOf } from "../json.ts";
import type { Fault, FaultMode } from "./fault-modes.ts";
import { type AnswerEvent, textAnswer } from "../answer/answer.ts";
import { countTo } from "../answer/write-answer.ts";

/** What an unstreamed answer has besides its body. */
export interface BodyDetails {
  readonly fault: Fault;
  /** The number of completion tokens in it. */
  readonly tokens: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An unstreamed answer of either wire, with the fault applied. */
export function withBodyFault(body: JsonRecord, details: BodyDetails): Reply {
  const { fault, tokens, headers = {} } = details;
  const sent = bodyFaults[fault.mode]?.(body) ?? body;
  const text = JSON.stringify(sent);
  if (fault.mode === "bad-json") {
    return jsonReply(text.slice(0, Math.floor(text.length / 2)), { tokens, headers });
  }
  return jsonReply(text, { tokens, headers, hasUsage: usageKeys.some((key) => key in sent) });
}

/** The fields with token counts, of chat and embedding models. */
const usageKeys = ["usage", "inputTextTokenCount", "prompt_token_count", "generation_token_count"];

const bodyFaults: Readonly<Partial<Record<FaultMode, (body: JsonRecord) => JsonRecord>>> = {
  "ok-no-usage": (body) => without(body, usageKeys),
  "wrong-usage": withWrongUsage,
  "missing-finish-reason": (body) => {
    const rest = without(body, ["stopReason", "stop_reason"]);
    const choices = listOf(body["choices"]);
    const unfinished = choices.map((choice) => ({ ...recordOf(choice), finish_reason: null }));
    return choices.length === 0 ? rest : { ...rest, choices: unfinished };
  },
};

function without(body: JsonRecord, keys: readonly string[]): JsonRecord {
  return Object.fromEntries(Object.entries(body).filter(([key]) => !keys.includes(key)));
}

function withWrongUsage(body: JsonRecord): JsonRecord {
  const { usage } = body;
  const counted = usageKeys.filter((key) => typeof body[key] === "number");
  const counts = inflatedUsage(Object.fromEntries(counted.map((key) => [key, body[key]])));
  return { ...body, ...counts, ...(isRecord(usage) ? { usage: inflatedUsage(usage) } : {}) };
}

const page =
  "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n" +
  "<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n";

/** The reply of a proxy in front of a provider, equal on all wires; undefined for other faults. */
export function oddReply({ mode }: Fault): Reply | undefined {
  return oddReplies[mode]?.();
}

const oddReplies: Readonly<Partial<Record<FaultMode, () => Reply>>> = {
  "html-502": () => jsonReply(page, { status: 502, headers: { "content-type": "text/html" } }),
  "non-sse-200": () => jsonReply(page, { headers: { "content-type": "text/html; charset=utf-8" } }),
  redirect: () => jsonReply("", { status: 307, headers: { location: "/redirected" } }),
};

const mebibyte = 1024 * 1024;

/** The oversized answer of a fault; undefined for other faults. */
export function outsizedAnswer(fault: Fault): Iterable<AnswerEvent> | undefined {
  if (fault.mode === "giant-chunk") return giantAnswer((fault.argument ?? 1) * mebibyte);
  if (fault.mode === "million-chunks") return textAnswer(countTo(fault.argument ?? 1_000_000));
  return undefined;
}

function* giantAnswer(size: number): Generator<AnswerEvent, void, void> {
  const tokens = Math.ceil(size / 4);
  yield { kind: "text", piece: "giant ".repeat(Math.ceil(size / 6)).slice(0, size), tokens };
  yield { kind: "finish", reason: "stop", completionTokens: tokens, reasoningTokens: 0 };
}

const gzipHead = new Uint8Array([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);

/**
 * A valid gzip body: mebibytes of filler that readers skip, then the real answer. One packed
 * mebibyte is made once and repeated, so it costs almost nothing.
 */
export function* gzipBomb(
  { steps, filler: makeFiller = whiteSpace }: Pick<Reply, "steps" | "filler">,
  mebibytes: number,
): Generator<Frame, void, void> {
  const filler = makeFiller(mebibyte);
  // A full flush ends at a byte boundary, and later blocks do not refer to what is before it.
  const packedFiller = pack(filler, constants.Z_FULL_FLUSH);
  let checksum = 0;
  let size = 0;
  yield { data: gzipHead, tokens: 0 };
  for (let index = 0; index < mebibytes; index++) {
    checksum = crc32(filler, checksum);
    size += filler.length;
    yield { data: packedFiller, tokens: 0 };
  }
  for (const step of steps) {
    if (isPause(step)) continue;
    const bytes = Buffer.from(step.data);
    checksum = crc32(bytes, checksum);
    size += bytes.length;
    yield { ...step, data: pack(bytes, constants.Z_FULL_FLUSH) };
  }
  const tail = Buffer.alloc(8);
  tail.writeUInt32LE(checksum, 0);
  tail.writeUInt32LE(size % 2 ** 32, 4);
  const last = pack(Buffer.alloc(0), constants.Z_FINISH);
  yield { data: new Uint8Array(Buffer.concat([last, tail])), tokens: 0 };
}

/** Allowed before JSON and between server-sent events. */
function whiteSpace(sizeBytes: number): Uint8Array {
  return Buffer.alloc(sizeBytes, "\n");
}

function pack(bytes: Uint8Array, finishFlush: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(deflateRawSync(bytes, { finishFlush, level: 9 }));
}

/** Makes every count ten times too high, so that a meter that trusts it is obvious. */
export function inflatedUsage(usage: JsonRecord): JsonRecord {
  return Object.fromEntries(
    Object.entries(usage).map(([key, value]) => [
      key,
      typeof value === "number" ? value * 10 + 10 : value,
    ]),
  );
}
