import type { EmbeddingResult, EmbeddingVector } from "../../domain/chat/embedding.ts";
import { jsonTextReply, type Reply } from "../../edge/replies/reply.ts";
import type { KeyCall } from "../../edge/dispatch/route.ts";
import type { Call } from "../../snapshot/call.ts";
import { runEmbeddings, type EmbeddingCall } from "../../call/embeddings/embedding-call.ts";
import type { CallServices } from "../../call/services.ts";
import type { HandlerParts } from "../handler-parts.ts";
import { readCall } from "../read-call.ts";
import { createTokenDecoder } from "./decode-tokens.ts";
import { parseEmbeddingRequest } from "./embedding-request.ts";
import { servedHeaders } from "../served-headers.ts";

/** `POST /v1/embeddings` */
export function createEmbeddings({
  services,
  settings,
  sharing,
}: HandlerParts): (call: KeyCall) => Promise<Reply> {
  const decode = createTokenDecoder();
  return async (plain) => {
    const { call, bodyBytes, mark, value } = await readCall(plain);
    const request = parseEmbeddingRequest(value);
    const decodeTokens: EmbeddingCall["decodeTokens"] = (inputs) =>
      decode(inputs, settings().decodedLimitBytes);
    const embedding = { request, bodyBytes, decodeTokens };
    const named = { endpoint: "embeddings", kind: "embedding", alias: request.model } as const;
    return sharing.whole({ call, mark, ...named }, (run) => reply(run, embedding, services));
  };
}

async function reply(call: Call, embedding: EmbeddingCall, services: CallServices): Promise<Reply> {
  const { request } = embedding;
  const started = await runEmbeddings(call, embedding, services);
  const { answer, meter } = started;
  const write = request.encodingFormat === "base64" ? writeBase64 : writeNumbers;
  const usage = { prompt_tokens: meter.usage.inputTokens, total_tokens: meter.usage.inputTokens };
  const body =
    `{"object":"list","data":[${writeVectors(answer, write)}],` +
    `"model":${JSON.stringify(request.model)},"usage":${JSON.stringify(usage)}}`;
  return jsonTextReply(body, servedHeaders(started, call.snapshot.routing));
}

/** Joined by hand: the vectors are megabytes that need no escaping. */
function writeVectors(
  { vectors }: EmbeddingResult,
  write: (vector: EmbeddingVector) => string,
): string {
  return vectors
    .map((vector, index) => `{"object":"embedding","index":${index},"embedding":${write(vector)}}`)
    .join(",");
}

function writeBase64(vector: EmbeddingVector): string {
  // A base64 text of an upstream is untrusted, so it is escaped.
  return typeof vector === "string" ? JSON.stringify(vector) : `"${toBase64(vector)}"`;
}

/** Padded base64 of float32 values, as OpenAI's clients decode it. */
function toBase64(vector: readonly number[]): string {
  return Buffer.from(Float32Array.from(vector).buffer).toString("base64");
}

function writeNumbers(vector: EmbeddingVector): string {
  return `[${(typeof vector === "string" ? toNumbers(vector) : vector).join(",")}]`;
}

function toNumbers(base64: string): Float32Array {
  const bytes = Uint8Array.from(Buffer.from(base64, "base64"));
  return new Float32Array(bytes.buffer, 0, Math.floor(bytes.byteLength / 4));
}
