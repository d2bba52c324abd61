import { countTokens } from "../../answer/tokenizer.ts";
import type { Prompt, Turn } from "../../answer/prompt.ts";
import { listOf, numberOf, stringOf, type JsonRecord } from "../../read-json.ts";
import type { CapabilityRow } from "../account/capability-row.ts";
import type { ConverseRequest } from "../request/converse-request.ts";
import { checkBody, malformed, type Rule } from "../embedding/check-body.ts";
import { readTemplate, type Template, type TemplateTurn } from "./read-template.ts";
import { guardrailActionOn } from "../request/read-converse-request.ts";

/** A call of an imported model as a Converse request, and the form of its answer. */
export interface ImportedRequest {
  readonly request: ConverseRequest;
  readonly form: NativeForm;
}

/** The field that contains the text of an answer. */
export type NativeForm = "generation" | "outputs" | "choices";

export interface ImportedCall {
  readonly body: JsonRecord;
  readonly model: string;
  readonly row: CapabilityRow;
  readonly template: Template;
  readonly headers: Headers;
  readonly isStreamed: boolean;
}

/** The output limit of requests that set none. */
const usualMaxTokens = 512;

const parameters: Rule = {
  keys: {
    "prompt!": { type: "String" },
    max_gen_len: { type: "Number", range: [1, 131_072] },
    max_tokens: { type: "Number", range: [1, 131_072] },
    temperature: { type: "Number", range: [0, 2] },
    top_p: { type: "Number", range: [0, 1] },
    top_k: { type: "Number", range: [1, 1000] },
    stop: { type: "JSONArray" },
  },
};

/** Reads InvokeModel's body for an imported model. Throws `BedrockError`. */
export function readImported(call: ImportedCall): ImportedRequest {
  const { body, model, row, template, headers, isStreamed } = call;
  const caps = ["max_gen_len", "max_tokens"].filter((name) => body[name] !== undefined);
  if (caps.length > 1) throw malformed("#: only one of [max_gen_len, max_tokens] may be given");
  checkBody(body, parameters);
  const text = stringOf(body["prompt"]);
  const maxTokens = numberOf(body["max_gen_len"] ?? body["max_tokens"]);
  const prompt: Prompt = {
    model,
    turns: conversationOf(readTemplate(text, template)),
    tools: [],
    toolUse: { mode: "none", only: undefined, isParallel: true },
    output: { kind: "text" },
    maxTokens: maxTokens ?? row.maxOutputTokens ?? usualMaxTokens,
    // A model ignores parameters that it does not support.
    stopSequences: template === "llama" ? [] : listOf(body["stop"]).map(stringOf),
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

/** The name of the cap selects the format, as documented; Mistral models have their own. */
function formOf(body: JsonRecord, template: Template): NativeForm {
  if (template === "mistral") return "outputs";
  return body["max_tokens"] === undefined ? "generation" : "choices";
}

/** Leaves out the assistant's open turn, unless it contains a prefill. */
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
