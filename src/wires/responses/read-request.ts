import type { Conversation, Options, Thinking, Turn } from "../../domain/chat/conversation.ts";
import { flagOf, type JsonObject, numberOf, objectOf, textOf } from "../../domain/json-fields.ts";
import { fieldNames, fieldsBeyond } from "../fields.ts";
import { readFormat } from "../openai-format.ts";
import { readItems } from "./read-items.ts";
import { readToolChoice, readTools } from "./read-tools.ts";

/**
 * Reads a body of `POST /v1/responses`. The body must be checked, have lost its null fields, and
 * have no references to stored items; `earlier` are the items of the response that it continues.
 * Throws 400 when only tools of OpenAI's servers could answer.
 * Source of the wire: OpenAI's OpenAPI document, `CreateResponse`.
 */
export function readResponsesRequest(
  body: JsonObject,
  earlier: readonly unknown[] = [],
): Conversation {
  const { turns, toolItems } = readItems(body["input"], earlier);
  const { tools, adjusted } = readTools(body, toolItems);
  const cap = numberOf(body["max_output_tokens"]);
  return {
    wire: "responses",
    model: textOf(body["model"]) ?? "",
    isStreamed: body["stream"] === true,
    turns: [...readInstructions(body["instructions"]), ...turns],
    tools,
    toolChoice: readToolChoice(body["tool_choice"], tools),
    format: readFormat(objectOf(body["text"])?.["format"]),
    caps: cap === undefined ? [] : [{ field: "max_output_tokens", tokens: cap }],
    options: readOptions(body),
    thinking: readThinking(objectOf(body["reasoning"])),
    extra: fieldsBeyond(body, rootFields) ?? {},
    adjusted,
  };
}

/** Whether the caller asked for something in `include`. */
export function includes({ include }: JsonObject, value: string): boolean {
  return Array.isArray(include) && include.includes(value);
}

/** Fields that have a name in a conversation, and those that concern the answer alone. */
const rootFields = fieldNames(
  "model stream stream_options input instructions tools tool_choice text " +
    "max_output_tokens temperature top_p top_logprobs parallel_tool_calls service_tier " +
    "user safety_identifier prompt_cache_key metadata reasoning include store background " +
    "truncation previous_response_id client_metadata",
);

/** Instructions are those of a developer in OpenAI's words, of the system in everybody's. */
function readInstructions(text: unknown): readonly Turn[] {
  if (typeof text !== "string" || text === "") return [];
  const at = "instructions";
  return [{ role: "system", blocks: [{ type: "text", text, at }], isPlain: true, at }];
}

function readOptions(body: JsonObject): Options {
  const topLogprobs = numberOf(body["top_logprobs"]);
  const wantsLogprobs = includes(body, "message.output_text.logprobs") || (topLogprobs ?? 0) > 0;
  return {
    temperature: numberOf(body["temperature"]),
    topP: numberOf(body["top_p"]),
    ...(wantsLogprobs && { logprobs: true, topLogprobs }),
    parallelToolCalls: flagOf(body["parallel_tool_calls"]),
    verbosity: textOf(objectOf(body["text"])?.["verbosity"]),
    serviceTier: textOf(body["service_tier"]),
    user: textOf(body["user"]),
    safetyIdentifier: textOf(body["safety_identifier"]),
    promptCacheKey: textOf(body["prompt_cache_key"]),
    metadata: objectOf(body["metadata"]),
  };
}

/** `generate_summary` is the old name of `summary`. */
function readThinking(reasoning: JsonObject | undefined): Thinking | undefined {
  if (reasoning === undefined) return undefined;
  const effort = textOf(reasoning["effort"]);
  const summary = textOf(reasoning["summary"]) ?? textOf(reasoning["generate_summary"]);
  if (effort === undefined && summary === undefined) return undefined;
  return { effort, display: summary === undefined ? undefined : "summarized", summary };
}
