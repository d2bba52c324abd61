import type { TransportRequest } from "../../src/upstream-client/transport.ts";
import { times } from "./random.ts";
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

const encoder = new TextEncoder();

/** OpenAI's chat completions and embeddings. */
export const openAiWire: Wire = { read, refusal, whole, streamed, error, malformed };

function read(_url: URL, { body }: TransportRequest): UpstreamRequest {
  if (typeof body !== "string") throw new Error("a request without a text");
  const fields = JSON.parse(body) as Readonly<Record<string, unknown>>;
  const { input, stream, messages } = fields;
  const isEmbedding = input !== undefined;
  const texts = isEmbedding ? [input].flat().map(String) : [];
  const prompt = isEmbedding
    ? (texts[0] ?? "")
    : String((messages as readonly { readonly content: unknown }[])[0]?.content);
  const cap = fields["max_tokens"];
  return {
    call: callOfPrompt(prompt),
    model: String(fields["model"]),
    kind: isEmbedding ? "embedding" : stream === true ? "stream" : "whole",
    cap: typeof cap === "number" ? cap : undefined,
    choices: isEmbedding ? 0 : Number(fields["n"] ?? 1),
    inputBytes: isEmbedding ? texts.join("").length : body.length,
    inputs: texts.length,
    signedAt: undefined,
  };
}

const refusals: Readonly<Record<RefusalName, readonly [status: number, words: object]>> = {
  throttled: [429, { type: "rate_limit_error" }],
  failed: [500, { type: "server_error" }],
  overloaded: [503, { type: "server_error" }],
  "bad-credential": [401, { code: "invalid_api_key" }],
  "stale-credential": [401, { code: "invalid_api_key" }],
  invalid: [400, { type: "invalid_request_error" }],
  overflow: [400, { code: "context_length_exceeded" }],
  "content-refused": [400, { code: "content_policy_violation" }],
  "unknown-model": [404, { code: "model_not_found" }],
};

function refusal(name: RefusalName): Refusal {
  const [status, words] = refusals[name];
  return { status, headers: {}, body: { error: { message: "no", ...words } } };
}

function whole({ pieces, usages, vectors }: AnswerWords): unknown {
  const [usage] = usages;
  const usageFields = usage === undefined ? {} : { usage: usageBody(usage) };
  if (vectors > 0) {
    const data = times(vectors, (index) => ({ object: "embedding", index, embedding: [0.5, 1] }));
    return { object: "list", data, ...usageFields };
  }
  const choices = pieces.map((texts, index) => {
    const message = { role: "assistant", content: texts.join("") };
    return { index, message, finish_reason: "stop" };
  });
  return { object: "chat.completion", choices, ...usageFields };
}

function streamed({ pieces, usages }: AnswerWords): StreamedWords {
  const chunks: Uint8Array[] = [];
  const send = (choices: readonly unknown[], more: object = {}): void => {
    const chunk = { object: "chat.completion.chunk", choices, ...more };
    chunks.push(encoder.encode(`data: ${JSON.stringify(chunk)}\n\n`));
  };
  const steps = pieces[0]?.length ?? 0;
  for (let step = 0; step < steps; step += 1) {
    pieces.forEach((texts, index) => {
      send([{ index, delta: { content: texts[step] }, finish_reason: null }]);
    });
  }
  pieces.forEach((_, index) => send([{ index, delta: {}, finish_reason: "stop" }]));
  // The blank line may be missing: the last event ends with the answer.
  const finishedBytes = bytesOf(chunks) - "\n\n".length;
  for (const usage of usages) send([], { usage: usageBody(usage) });
  chunks.push(encoder.encode("data: [DONE]\n\n"));
  return { contentType: "text/event-stream", chunks, finishedBytes };
}

function error(): Uint8Array {
  return encoder.encode('data: {"error":{"message":"no","type":"server_error"}}\n\n');
}

function malformed(): Uint8Array {
  return encoder.encode('data: {"choices":[{"index":0,"delta":{"content":"lo\n\n');
}

function usageBody({ inputTokens, outputTokens }: TokenCounts): unknown {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
}
