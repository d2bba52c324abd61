import type {
  EmbeddingRequest,
  EmbeddingResult,
  EmbeddingVector,
} from "../../domain/chat/embedding.ts";
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
  const form = forms[request.encodingFormat];
  const usage = { prompt_tokens: meter.usage.inputTokens, total_tokens: meter.usage.inputTokens };
  const end = `],"model":${JSON.stringify(request.model)},"usage":${JSON.stringify(usage)}}`;
  const body = joinBytes(vectorList(answer, form), end);
  return jsonTextReply(body, servedHeaders(started, call.snapshot.routing));
}

/** The characters around a vector, and how its text is written. */
interface VectorForm {
  readonly open: string;
  readonly textOf: (vector: EmbeddingVector) => string;
  readonly close: string;
}

const forms: Readonly<Record<EmbeddingRequest["encodingFormat"], VectorForm>> = {
  base64: { open: '"', textOf: base64Of, close: '"' },
  float: { open: "[", textOf: numbersOf, close: "]" },
};

/** Parts of a JSON text in ASCII. */
function vectorList(
  { vectors }: EmbeddingResult,
  { open, textOf, close }: VectorForm,
): readonly string[] {
  const parts = ['{"object":"list","data":['];
  for (const [index, vector] of vectors.entries()) {
    const separator = index === 0 ? "" : `${close}},`;
    parts.push(`${separator}{"object":"embedding","index":${index},"embedding":${open}`);
    parts.push(textOf(vector));
  }
  parts.push(`${close}}`);
  return parts;
}

/** Copies megabytes of vectors only once, without building a text of all of them. */
function joinBytes(ascii: readonly string[], end: string): Uint8Array<ArrayBuffer> {
  const endBytes = Buffer.from(end);
  const length = ascii.reduce((sum, part) => sum + part.length, endBytes.length);
  const bytes = Buffer.allocUnsafeSlow(length);
  let written = 0;
  for (const part of ascii) written += bytes.write(part, written, "latin1");
  bytes.set(endBytes, written);
  return bytes;
}

/** The upstream's text was checked when it was read. */
function base64Of(vector: EmbeddingVector): string {
  return typeof vector === "string" ? vector : packed(vector);
}

/** Padded base64 of float32 values, as OpenAI's clients decode it. */
function packed(vector: readonly number[]): string {
  return new Uint8Array(Float32Array.from(vector).buffer).toBase64();
}

function numbersOf(vector: EmbeddingVector): string {
  return (typeof vector === "string" ? unpacked(vector) : vector).join(",");
}

function unpacked(base64: string): Float32Array {
  const { buffer, byteLength } = Uint8Array.fromBase64(base64);
  return new Float32Array(buffer, 0, Math.floor(byteLength / 4));
}
