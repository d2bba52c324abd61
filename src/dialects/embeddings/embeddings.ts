import type {
  EmbeddingRequest,
  EmbeddingResult,
  EmbeddingVector,
} from "../../domain/chat/embedding.ts";
import { eventStream } from "../../edge/replies/event-stream.ts";
import { jsonTextReply, type Reply } from "../../edge/replies/error-reply.ts";
import type { KeyCall } from "../../edge/dispatch/route.ts";
import type { AnswerMemory } from "../../snapshot/call.ts";
import { type EmbeddingCall, runEmbeddings } from "../../call/embeddings/embedding-call.ts";
import type { StartedCall } from "../../call/run-call.ts";
import { type HandlerParts, readCall, servedHeaders } from "../read-call.ts";
import { createTokenDecoder } from "./decode-tokens.ts";
import { parseEmbeddingRequest } from "./embedding-request.ts";
import { EmbeddingText } from "./embedding-text.ts";

/** Answers of more numbers are written as the caller reads them. */
const mostWholeNumbers = 32 * 1024;

/** `POST /v1/embeddings` */
export function createEmbeddings(parts: HandlerParts): (call: KeyCall) => Promise<Reply> {
  const { settings, repeats } = parts;
  const decode = createTokenDecoder();
  return async (call) => {
    const { bodyBytes, mark, value } = await readCall(call);
    const request = parseEmbeddingRequest(value);
    const decodeTokens: EmbeddingCall["decodeTokens"] = (inputs) =>
      decode(inputs, settings().decodedLimitBytes);
    const embedding = { request, bodyBytes, decodeTokens };
    const named = { endpoint: "embeddings", kind: "embedding", alias: request.model } as const;
    const isKept = mark !== undefined;
    return repeats.whole({ call, mark, ...named }, () => reply(embedding, { call, isKept }, parts));
  };
}

interface RunningReply {
  readonly call: KeyCall;
  /** Kept answers are written as a whole. */
  readonly isKept: boolean;
}

async function reply(
  embedding: EmbeddingCall,
  { call, isKept }: RunningReply,
  { services, settings }: HandlerParts,
): Promise<Reply> {
  const { answerMemory: memory } = call;
  try {
    const started = await runEmbeddings(call, embedding, services);
    const headers = servedHeaders(started, call, services);
    const text = textOf(started, embedding.request, memory);
    if (isKept || countNumbers(started.answer.vectors) <= mostWholeNumbers) {
      const body = await wholeOf(text);
      memory.release();
      return jsonTextReply(body, headers);
    }
    const body = eventStream(text, {
      clock: services.clock,
      keepAliveMs: 0,
      keepAlive: () => "",
      beginsWithKeepAlive: false,
      writeTimeoutMs: settings().writeTimeoutMs,
      onEnd: (end) => call.streamEnded(end),
    });
    return { ...jsonTextReply("", headers), body };
  } catch (error) {
    memory.release();
    throw error;
  }
}

function textOf(
  { answer, meter }: StartedCall<EmbeddingResult>,
  request: EmbeddingRequest,
  memory: AnswerMemory,
): EmbeddingText {
  const { inputTokens } = meter.usage;
  const usage = { prompt_tokens: inputTokens, total_tokens: inputTokens };
  const end = `],"model":${JSON.stringify(request.model)},"usage":${JSON.stringify(usage)}}`;
  const { vectors } = answer;
  return new EmbeddingText({ vectors, format: request.encodingFormat ?? "float", end, memory });
}

function countNumbers(vectors: readonly EmbeddingVector[]): number {
  return vectors.reduce((sum, { length }) => sum + length, 0);
}

/** The whole text, a slice in each turn of the event loop. */
async function wholeOf(text: EmbeddingText): Promise<string> {
  let whole = text.take() ?? "";
  while (!text.isOver) {
    await new Promise<void>((resolve) => text.whenReady(resolve));
    whole += text.take() ?? "";
  }
  return whole;
}
