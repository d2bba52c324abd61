import type { AnswerHeaders, WholeAnswer } from "../../adapter.ts";
import {
  countOf,
  type JsonObject,
  listOf,
  objectOf,
  parseObject,
  textOf,
} from "../../shared/json-fields.ts";
import type { KnownEvent } from "../decode/converse-events.ts";

/**
 * Converts a whole answer of InvokeModel to the corresponding Converse answer. An answer in an
 * unknown format stays unchanged: it contains a failure, or is invalid.
 */
export function asConverse({ headers, body }: WholeAnswer): WholeAnswer {
  const native = parseObject(body);
  const piece = native && readPiece(native);
  if (native === undefined || piece === undefined) return { headers, body };
  const answer = {
    output: { message: { role: "assistant", content: [{ text: piece.text }] } },
    stopReason: piece.stopReason ?? "",
    usage: usageOfBody(native) ?? usageOfHeaders(headers),
  };
  return { headers, body: new TextEncoder().encode(JSON.stringify(answer)) };
}

/**
 * The events of ConverseStream for one chunk of InvokeModelWithResponseStream; undefined when its
 * payload is invalid.
 */
export function eventsOfChunk(
  payload: JsonObject,
): readonly (readonly [KnownEvent, JsonObject])[] | undefined {
  const bytes = textOf(payload["bytes"]);
  const native = bytes === undefined ? undefined : parseObject(Buffer.from(bytes, "base64"));
  if (native === undefined) return undefined;
  const piece = readPiece(native);
  const usage = usageOfMetrics(native) ?? usageOfChoices(native);
  if (piece === undefined && usage === undefined) return undefined;
  const { text = "", stopReason } = piece ?? {};
  return [
    ["contentBlockDelta", { delta: { text } }],
    ...(stopReason === undefined ? [] : [["messageStop", { stopReason }] as const]),
    ...(usage === undefined ? [] : [["metadata", { usage }] as const]),
  ];
}

interface Piece {
  readonly text: string;
  /** Converse's name; undefined until the answer is whole. */
  readonly stopReason: string | undefined;
}

/**
 * The text of an answer or of a part of it: `generation` in Llama's format, `outputs` in Mistral's,
 * or `choices` in OpenAI's, which the provider uses for requests with `max_tokens` to newer
 * imports.
 */
function readPiece(native: JsonObject): Piece | undefined {
  const { generation } = native;
  if (typeof generation === "string") return pieceOf(native, generation, native["stop_reason"]);
  const [first] = listOf(native["outputs"]) ?? listOf(native["choices"]) ?? [];
  const choice = objectOf(first);
  if (choice === undefined) return undefined;
  const message = objectOf(choice["message"]) ?? objectOf(choice["delta"]);
  const text = textOf(choice["text"]) ?? textOf(message?.["content"]);
  // OpenAI's format also has a `stop_reason`, which may be the number of a token.
  const reason = choice["finish_reason"] ?? choice["stop_reason"];
  // The last part of a stream may contain only a reason.
  if (text === undefined && typeof reason !== "string") return undefined;
  return pieceOf(native, text ?? "", reason);
}

function pieceOf(native: JsonObject, text: string, reason: unknown): Piece {
  const isStopped = native["amazon-bedrock-guardrailAction"] === "INTERVENED";
  if (isStopped) return { text, stopReason: "guardrail_intervened" };
  return { text, stopReason: typeof reason === "string" ? readReason(reason) : undefined };
}

function readReason(reason: string): string {
  switch (reason) {
    case "stop":
      return "end_turn";
    case "length":
      return "max_tokens";
    case "content_filter":
      return "content_filtered";
    default:
      return reason;
  }
}

function usageOfBody(native: JsonObject): JsonObject | undefined {
  const { prompt_token_count: input, generation_token_count: output } = native;
  return usageOf(input, output) ?? usageOfChoices(native) ?? usageOfMetrics(native);
}

function usageOfChoices(native: JsonObject): JsonObject | undefined {
  const usage = objectOf(native["usage"]);
  return usage && usageOf(usage["prompt_tokens"], usage["completion_tokens"]);
}

/** The last chunk of a stream has these. */
function usageOfMetrics(native: JsonObject): JsonObject | undefined {
  const metrics = objectOf(native["amazon-bedrock-invocationMetrics"]);
  return metrics && usageOf(metrics["inputTokenCount"], metrics["outputTokenCount"]);
}

/** Mistral's format has no counts. */
function usageOfHeaders(headers: AnswerHeaders): JsonObject | undefined {
  return usageOf(
    headers.get("x-amzn-bedrock-input-token-count") ?? undefined,
    headers.get("x-amzn-bedrock-output-token-count") ?? undefined,
  );
}

function usageOf(input: unknown, output: unknown): JsonObject | undefined {
  const inputTokens = countOf(input);
  const outputTokens = countOf(output);
  return inputTokens === undefined || outputTokens === undefined
    ? undefined
    : { inputTokens, outputTokens };
}
