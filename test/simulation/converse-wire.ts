import { crc32 } from "node:zlib";
import type { TransportRequest } from "../../src/upstream-client/transport.ts";
import {
  bytesOf,
  callOfPrompt,
  type AnswerWords,
  type Refusal,
  type RefusalName,
  type StreamedWords,
  type TokenCounts,
  type UpstreamRequest,
  type Wire,
} from "./wire.ts";

/** Bedrock's Converse and ConverseStream: one choice a request, signed, streamed in binary frames. */
export const converseWire: Wire = { read, refusal, whole, streamed, error, malformed };

interface ConverseBody {
  readonly messages: readonly { readonly content: readonly { readonly text?: string }[] }[];
  readonly inferenceConfig?: { readonly maxTokens?: number };
}

function read(url: URL, { body, headers }: TransportRequest): UpstreamRequest {
  if (typeof body !== "string") throw new Error("a request without a text");
  const { messages, inferenceConfig } = JSON.parse(body) as ConverseBody;
  const [, , model = "", operation] = url.pathname.split("/");
  return {
    call: callOfPrompt(messages[0]?.content[0]?.text ?? ""),
    model: decodeURIComponent(model),
    kind: operation === "converse-stream" ? "stream" : "whole",
    cap: inferenceConfig?.maxTokens,
    choices: 1,
    inputBytes: body.length,
    inputs: 0,
    signedAt: readDate(headers["x-amz-date"] ?? ""),
  };
}

/** `20260101T000000Z`; NaN for anything else. */
function readDate(written: string): number {
  const iso = written.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z");
  return Date.parse(iso);
}

const refusals: Readonly<
  Record<RefusalName, readonly [status: number, name: string, text: string]>
> = {
  throttled: [429, "ThrottlingException", "Too many requests"],
  failed: [500, "InternalServerException", "no"],
  overloaded: [503, "ServiceUnavailableException", "no"],
  "bad-credential": [403, "AccessDeniedException", "no"],
  "stale-credential": [403, "ExpiredTokenException", "The security token is expired"],
  invalid: [400, "ValidationException", "no"],
  overflow: [400, "ValidationException", "Input is too long for requested model."],
  "content-refused": [400, "ValidationException", "blocked by our content filters"],
  "unknown-model": [404, "ResourceNotFoundException", "no"],
};

function refusal(name: RefusalName): Refusal {
  const [status, exception, message] = refusals[name];
  return { status, headers: { "x-amzn-errortype": exception }, body: { message } };
}

function whole({ pieces, usages }: AnswerWords): unknown {
  const [usage] = usages;
  return {
    output: { message: { role: "assistant", content: [{ text: (pieces[0] ?? []).join("") }] } },
    stopReason: "end_turn",
    ...(usage !== undefined && { usage: usageBody(usage) }),
  };
}

function streamed({ pieces, usages }: AnswerWords): StreamedWords {
  const chunks = [event("messageStart", { role: "assistant" })];
  for (const text of pieces[0] ?? []) {
    chunks.push(event("contentBlockDelta", { contentBlockIndex: 0, delta: { text } }));
  }
  chunks.push(event("contentBlockStop", { contentBlockIndex: 0 }));
  chunks.push(event("messageStop", { stopReason: "end_turn" }));
  const finishedBytes = bytesOf(chunks);
  for (const usage of usages) chunks.push(event("metadata", { usage: usageBody(usage) }));
  return { contentType: "application/vnd.amazon.eventstream", chunks, finishedBytes };
}

function error(): Uint8Array {
  const headers = { ":message-type": "exception", ":exception-type": "internalServerException" };
  return encodeFrame(headers, { message: "no" });
}

function malformed(): Uint8Array {
  return event("contentBlockDelta", { contentBlockIndex: 0, delta: { text: 42 } });
}

function event(name: string, payload: object): Uint8Array {
  return encodeFrame({ ":message-type": "event", ":event-type": name }, payload);
}

/**
 * A message of the provider's event streams: lengths, their checksum, headers of texts (type 7), the
 * payload, and a checksum of it all.
 */
function encodeFrame(headers: Readonly<Record<string, string>>, payload: object): Uint8Array {
  const parts = Object.entries(headers).map(([name, value]) => {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(Buffer.byteLength(value));
    return Buffer.concat([
      Buffer.from([name.length]),
      Buffer.from(name),
      Buffer.from([7]),
      length,
      Buffer.from(value),
    ]);
  });
  const head = Buffer.concat(parts);
  const body = Buffer.from(JSON.stringify(payload));
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + head.length + body.length, 0);
  prelude.writeUInt32BE(head.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const message = Buffer.concat([prelude, head, body]);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(message), 0);
  return Buffer.concat([message, sum]);
}

function usageBody({ inputTokens, outputTokens }: TokenCounts): unknown {
  return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
}
