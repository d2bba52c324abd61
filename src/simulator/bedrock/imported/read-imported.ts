import { countTokens } from "../../answer/tokenizer.ts";
import type { Prompt, Turn } from "../../answer/prompt.ts";
import { isList, listOf, stringOf, type JsonRecord } from "../../read-json.ts";
import type { CapabilityRow } from "../account/capability-row.ts";
import type { ConverseRequest } from "../request/converse-request.ts";
import { checkKeys, malformed } from "../embedding/request.ts";
import { readTemplate, type Template, type TemplateTurn } from "./read-template.ts";
import { guardrailActionOn } from "../request/read-converse-request.ts";

/** A call of an imported model, in terms of Converse, and the form of its answer. */
export interface ImportedRequest {
  readonly request: ConverseRequest;
  readonly form: NativeForm;
}

/** The name of the field that the text of an answer is in. */
export type NativeForm = "generation" | "outputs" | "choices";

export interface ImportedCall {
  readonly body: JsonRecord;
  readonly model: string;
  readonly row: CapabilityRow;
  readonly template: Template;
  readonly headers: Headers;
  readonly isStreamed: boolean;
}

/** What answers have where a request names no cap. */
const usualMaxTokens = 512;

/** Reads InvokeModel's body for an imported model. Throws `BedrockError`. */
export function readImported(call: ImportedCall): ImportedRequest {
  const { body, model, row, template, headers, isStreamed } = call;
  const caps = ["max_gen_len", "max_tokens"].filter((name) => body[name] !== undefined);
  if (caps.length > 1) throw malformed("#: only one of [max_gen_len, max_tokens] may be given");
  checkKeys(body, ["prompt"], [...caps, "temperature", "top_p", "top_k", "stop"]);
  const { prompt: text, stop } = body;
  if (typeof text !== "string") throw malformed("#/prompt: expected type: String");
  const maxTokens = readNumber(body, caps[0] ?? "max_gen_len", [1, 131_072]);
  readNumber(body, "temperature", [0, 2]);
  readNumber(body, "top_p", [0, 1]);
  readNumber(body, "top_k", [1, 1000]);
  if (stop !== undefined && !isList(stop)) throw malformed("#/stop: expected type: JSONArray");
  const prompt: Prompt = {
    model,
    turns: conversationOf(readTemplate(text, template)),
    tools: [],
    toolUse: { mode: "none", only: undefined, isParallel: true },
    output: { kind: "text" },
    maxTokens: maxTokens ?? row.maxOutputTokens ?? usualMaxTokens,
    // Parameters that a model does not know are ignored, not refused.
    stopSequences: template === "llama" ? [] : listOf(stop).map(stringOf),
    seed: "null",
    reasoningEffort: undefined,
  };
  const request: ConverseRequest = {
    model,
    prompt,
    promptTokens: countTokens(text),
    cache: undefined,
    isStreamed,
    maxOutputTokens: prompt.maxTokens ?? usualMaxTokens,
    thoughts: "omitted",
    guardrail: readGuardrail(headers, prompt),
    serviceTier: undefined,
    latency: undefined,
    responseFieldPaths: [],
  };
  return { request, form: formOf(body, template) };
}

/** The cap's name chooses the form, as the provider says of imports; older Mistrals keep their own. */
function formOf(body: JsonRecord, template: Template): NativeForm {
  if (template === "mistral") return "outputs";
  return body["max_tokens"] === undefined ? "generation" : "choices";
}

/** Without the open turn of the assistant, unless it holds words to go on from. */
function conversationOf(turns: readonly TemplateTurn[]): readonly Turn[] {
  const isEmpty = turns.at(-1)?.text === "";
  return (isEmpty ? turns.slice(0, -1) : turns).map(({ role, text }) => ({
    role,
    text,
    name: undefined,
    attachments: [],
    toolCalls: [],
  }));
}

function readNumber(
  body: JsonRecord,
  name: string,
  [lowest, highest]: readonly [number, number],
): number | undefined {
  const value = body[name];
  if (value === undefined) return undefined;
  if (typeof value !== "number") throw malformed(`#/${name}: expected type: Number`);
  if (value < lowest) throw malformed(`#/${name}: ${value} is not greater or equal to ${lowest}`);
  if (value > highest) throw malformed(`#/${name}: ${value} is not less or equal to ${highest}`);
  return value;
}

function readGuardrail(headers: Headers, prompt: Prompt): ConverseRequest["guardrail"] {
  const identifier = headers.get("x-amzn-bedrock-guardrailidentifier");
  const version = headers.get("x-amzn-bedrock-guardrailversion");
  if ((identifier === null) !== (version === null)) {
    throw malformed("guardrailIdentifier and guardrailVersion must come together");
  }
  if (identifier === null || version === null) return undefined;
  const last = prompt.turns.findLast(({ role }) => role === "user");
  return {
    identifier,
    version,
    hasTrace: false,
    action: guardrailActionOn(last?.text ?? ""),
  };
}
