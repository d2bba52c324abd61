import { countTokens, type Prompt, type Turn } from "../answer/prompt.ts";
import { type JsonRecord, listOf, numberOf, recordOf, stringOf } from "../json.ts";
import type { CapabilityRow } from "./capabilities.ts";
import { type ConverseRequest, guardrailActionOn } from "./read-request.ts";
import { malformed } from "./embeddings.ts";
import { type AnswerEvent, collectAnswer } from "../answer/answer.ts";
import type { Fault } from "../faults/fault-modes.ts";
import type { Reply } from "../reply.ts";
import { bodyReply, countHeaders } from "./converse-reply.ts";
import {
  eventStreamReply,
  type FramedEvent,
  type StreamEvent,
  streamEvents,
  withEventFault,
} from "./stream-reply.ts";
import { type BedrockError, invalid } from "./errors.ts";
import { anyText, anything, checkShape, list, structure } from "./shapes.ts";
import { plainTurn } from "./read-prompt.ts";

/** A call of an imported model as a Converse request, and the form of its answer. */
interface ImportedRequest {
  readonly request: ConverseRequest;
  readonly form: NativeForm;
}

/** The field that contains the text of an answer. */
type NativeForm = "generation" | "outputs" | "choices";

interface ImportedCall {
  readonly body: JsonRecord;
  readonly model: string;
  readonly row: CapabilityRow;
  readonly template: Template;
  readonly headers: Headers;
  readonly isStreamed: boolean;
}

/** The output limit of requests that set none. */
const usualMaxTokens = 512;

const parameters = structure({
  "prompt!": anyText,
  max_gen_len: { kind: "integer", range: [1, 131_072] },
  max_tokens: { kind: "integer", range: [1, 131_072] },
  temperature: { kind: "float", range: [0, 2] },
  top_p: { kind: "float", range: [0, 1] },
  top_k: { kind: "integer", range: [1, 1000] },
  stop: list(anything),
});

/** Reads InvokeModel's body for an imported model. Throws `BedrockError`. */
export function readImported(call: ImportedCall): ImportedRequest {
  const { body, model, row, template, headers, isStreamed } = call;
  const caps = ["max_gen_len", "max_tokens"].filter((name) => body[name] !== undefined);
  if (caps.length > 1) throw malformed("#: only one of [max_gen_len, max_tokens] may be given");
  checkShape(body, parameters);
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
  const said = isEmpty ? turns.slice(0, -1) : turns;
  return said.map(({ role, text }) => plainTurn(role, text));
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

/** Answers InvokeModel in the model's own form. */
export function nativeReply(
  { request, form }: ImportedRequest,
  answer: Iterable<AnswerEvent>,
  fault: Fault,
): Reply {
  const { text, refusal = "", finish } = collectAnswer(answer);
  const tokens = finish.completionTokens;
  const body = {
    ...forms[form].body(text + refusal, finish.reason === "length" ? "length" : "stop"),
    ...forms[form].counts(request.promptTokens, tokens),
    ...guardrailAction(request),
  };
  const headers = countHeaders({ input: request.promptTokens, output: tokens }, fault);
  return bodyReply(body, { fault, tokens, headers });
}

/** Answers InvokeModelWithResponseStream: chunks that each hold a part of the answer in base64. */
export function nativeStreamReply(
  { request, form }: ImportedRequest,
  answer: Iterable<AnswerEvent>,
  fault: Fault,
): Reply {
  const events = streamEvents(request, answer, () => 0);
  const chunks = chunksOf(withEventFault(events, fault), form, request);
  return eventStreamReply(chunks, request, fault);
}

/** The reason and the metrics share the last chunk. */
function* chunksOf(
  events: Iterable<StreamEvent>,
  form: NativeForm,
  request: ConverseRequest,
): Generator<FramedEvent, void, void> {
  let stopReason: string | undefined;
  let metrics: JsonRecord | undefined;
  for (const { type, body, tokens } of events) {
    if (type === "contentBlockDelta") {
      yield chunkOf(forms[form].body(stringOf(recordOf(body["delta"])["text"]), null), tokens);
    }
    if (type === "messageStop") stopReason = nativeReason(stringOf(body["stopReason"]));
    if (type === "metadata") metrics = metricsOf(recordOf(body["usage"]));
  }
  if (stopReason === undefined && metrics === undefined) return;
  const last = {
    ...forms[form].body("", stopReason ?? null),
    ...guardrailAction(request),
    ...(metrics === undefined ? {} : { "amazon-bedrock-invocationMetrics": metrics }),
  };
  yield { ...chunkOf(last, 0), hasUsage: metrics !== undefined };
}

function chunkOf(native: JsonRecord, tokens: number): FramedEvent {
  const bytes = Buffer.from(JSON.stringify(native)).toString("base64");
  return { type: "chunk", body: { bytes }, tokens };
}

function metricsOf(usage: JsonRecord): JsonRecord | undefined {
  const inputTokenCount = numberOf(usage["inputTokens"]);
  if (inputTokenCount === undefined) return undefined;
  const outputTokenCount = numberOf(usage["outputTokens"]);
  return { inputTokenCount, outputTokenCount, invocationLatency: 1, firstByteLatency: 1 };
}

interface FormWriter {
  body(text: string, reason: string | null): JsonRecord;
  counts(promptTokens: number, tokens: number): JsonRecord;
}

const forms: Readonly<Record<NativeForm, FormWriter>> = {
  generation: {
    body: (text, reason) => ({ generation: text, stop_reason: reason }),
    counts: (input, output) => ({ prompt_token_count: input, generation_token_count: output }),
  },
  outputs: {
    body: (text, reason) => ({ outputs: [{ text, stop_reason: reason }] }),
    counts: () => ({}),
  },
  choices: {
    body: (text, reason) => ({
      choices: [{ index: 0, text, finish_reason: reason, stop_reason: null }],
    }),
    counts: (input, output) => ({
      usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    }),
  },
};

function nativeReason(stopReason: string): string {
  return stopReason === "max_tokens" ? "length" : "stop";
}

function guardrailAction({ guardrail }: ConverseRequest): JsonRecord {
  if (guardrail === undefined) return {};
  const action = guardrail.action === "none" ? "NONE" : "INTERVENED";
  return { "amazon-bedrock-guardrailAction": action };
}

/** The supported prompt templates of imported models. */
export type Template = "llama" | "mistral" | "qwen";

interface TemplateTurn {
  readonly role: "system" | "user" | "assistant";
  readonly text: string;
}

/**
 * Parses a prompt into its turns, of which the last is the assistant's open one. The provider
 * accepts any text; the simulator refuses prompts that do not follow the template.
 * Throws `BedrockError`.
 */
export function readTemplate(prompt: string, template: Template): readonly TemplateTurn[] {
  const turns = template === "mistral" ? readMistral(prompt) : readMarked(prompt, marks[template]);
  checkOrder(turns);
  return turns;
}

interface Marks {
  readonly start: string;
  readonly beforeRole: string;
  readonly behindRole: string;
  readonly end: string;
  readonly betweenTurns: string;
}

const marks = {
  llama: {
    start: "<|begin_of_text|>",
    beforeRole: "<|start_header_id|>",
    behindRole: "<|end_header_id|>\n\n",
    end: "<|eot_id|>",
    betweenTurns: "",
  },
  qwen: {
    start: "",
    beforeRole: "<|im_start|>",
    behindRole: "\n",
    end: "<|im_end|>",
    betweenTurns: "\n",
  },
} as const satisfies Readonly<Record<string, Marks>>;

function readMarked(prompt: string, form: Marks): readonly TemplateTurn[] {
  const turns: TemplateTurn[] = [];
  let rest = after(prompt, form.start);
  for (;;) {
    rest = after(rest, form.beforeRole);
    const role = readRole(rest.slice(0, Math.max(0, rest.indexOf(form.behindRole))));
    rest = after(rest, `${role}${form.behindRole}`);
    const end = rest.indexOf(form.end);
    const text = end < 0 ? rest : rest.slice(0, end);
    if (/<\|\w+\|>/.test(text)) throw malformedPrompt("a turn holds a token of the template");
    turns.push({ role, text });
    if (end < 0) return turns;
    rest = after(rest.slice(end), `${form.end}${form.betweenTurns}`);
  }
}

function readRole(name: string): TemplateTurn["role"] {
  if (name === "system" || name === "user" || name === "assistant") return name;
  throw malformedPrompt("a turn has no known role");
}

function readMistral(prompt: string): readonly TemplateTurn[] {
  const turns: TemplateTurn[] = [];
  for (const pair of after(prompt, "<s>").split("</s>")) {
    const rest = after(pair, "[INST] ");
    const end = rest.indexOf(" [/INST]");
    if (end < 0) throw malformedPrompt("an instruction does not end");
    const answer = rest.slice(end + " [/INST]".length);
    turns.push({ role: "user", text: rest.slice(0, end) });
    turns.push({ role: "assistant", text: answer.replace(/^ /, "") });
  }
  const isBroken = turns.some(({ text }) => /\[\/?INST\]|<\/?s>/.test(text));
  if (isBroken) throw malformedPrompt("a turn holds a token of the template");
  return turns;
}

function checkOrder(turns: readonly TemplateTurn[]): void {
  const spoken = turns[0]?.role === "system" ? turns.slice(1) : turns;
  const isInOrder = spoken.every(({ role }, index) => role === (index % 2 ? "assistant" : "user"));
  if (!isInOrder) throw malformedPrompt("user and assistant do not take turns");
  if (spoken.at(-1)?.role !== "assistant") throw malformedPrompt("it does not ask for an answer");
}

function after(text: string, start: string): string {
  if (text.startsWith(start)) return text.slice(start.length);
  throw malformedPrompt(`${JSON.stringify(start)} is missing`);
}

function malformedPrompt(why: string): BedrockError {
  return invalid(`The simulator cannot read the prompt by the model's template: ${why}.`);
}
