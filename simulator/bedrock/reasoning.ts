import { createHash } from "node:crypto";
import { isRecord, type JsonRecord, listOf, numberOf, recordOf, stringOf } from "../json.ts";
import type { CapabilityRow } from "./capabilities.ts";
import { modelError } from "./errors.ts";

/** Checks Claude's rules for thinking. Throws `BedrockError`. */
export function checkReasoning(body: JsonRecord, model: string, row: CapabilityRow): void {
  checkThoughts(body, model);
  const fields = recordOf(body["additionalModelRequestFields"]);
  const { type, budget_tokens: budget } = recordOf(fields["thinking"]);
  checkType(type, row);
  checkEffort(fields, row);
  if (!isThinking(body, row)) return;
  const { maxTokens, temperature, topP } = recordOf(body["inferenceConfig"]);
  if (type === "enabled") checkBudget(numberOf(budget), numberOf(maxTokens));
  if (typeof temperature === "number" && temperature !== 1) {
    throw modelError("`temperature` may only be set to 1 when thinking is enabled.");
  }
  if (typeof topP === "number" && topP < 0.95) {
    throw modelError(
      "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.",
    );
  }
  if (fields["top_k"] !== undefined) {
    throw modelError("`top_k` must be unset when thinking is enabled.");
  }
  const { any, tool } = recordOf(recordOf(body["toolConfig"])["toolChoice"]);
  if (any !== undefined || tool !== undefined) {
    throw modelError("Thinking may not be enabled when tool_choice forces tool use.");
  }
  // Models with adaptive thinking do not require their thoughts.
  if (type === "enabled") checkToolLoop(listOf(body["messages"]));
}

/** Whether the model thinks before it answers. */
export function isThinking(body: JsonRecord, row: CapabilityRow): boolean {
  const fields = recordOf(body["additionalModelRequestFields"]);
  const { type } = recordOf(fields["thinking"]);
  if (type === undefined) return row.thinksByDefault;
  return type === "enabled" || type === "adaptive";
}

function checkType(type: unknown, { thinkingTypes }: CapabilityRow): void {
  if (type === undefined || thinkingTypes.includes(stringOf(type))) return;
  if (type === "adaptive") {
    throw modelError("adaptive thinking is not supported on this model");
  }
  throw modelError(
    `"thinking.type.${stringOf(type)}" is not supported for this model. Use ` +
      '"thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
  );
}

function checkEffort(fields: JsonRecord, { efforts }: CapabilityRow): void {
  const { effort } = recordOf(fields["output_config"]);
  if (effort === undefined) return;
  if (!efforts.includes(stringOf(effort))) {
    throw modelError(`output_config.effort: Input should be one of ${efforts.join(", ")}`);
  }
  const isOff = recordOf(fields["thinking"])["type"] === "disabled";
  if (isOff && (effort === "xhigh" || effort === "max")) {
    throw modelError(
      `output_config.effort '${effort}' is not supported when thinking is disabled on this ` +
        "model. Use effort 'high' or below, or enable thinking.",
    );
  }
}

function checkBudget(budget: number | undefined, maxTokens: number | undefined): void {
  if (budget === undefined) {
    throw modelError("thinking.enabled.budget_tokens: Field required");
  }
  if (budget < 1024) {
    throw modelError(
      "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    );
  }
  if (maxTokens !== undefined && maxTokens <= budget) {
    throw modelError("`max_tokens` must be greater than `thinking.budget_tokens`.");
  }
}

/** Earlier thoughts may be omitted, or returned unchanged to the model that signed them. */
function checkThoughts(body: JsonRecord, model: string): void {
  for (const [turn, message] of listOf(body["messages"]).entries()) {
    const { role, content } = recordOf(message);
    for (const [index, block] of listOf(content).entries()) {
      const { reasoningContent } = recordOf(block);
      if (!isRecord(reasoningContent)) continue;
      const at = `messages.${turn}.content.${index}`;
      if (role !== "assistant") throw modelError(`${at}: thinking blocks are only for assistants`);
      checkThought(reasoningContent, model, at);
    }
  }
}

function checkThought(thought: JsonRecord, model: string, at: string): void {
  const { reasoningText, redactedContent } = thought;
  if (typeof redactedContent === "string" && !isOwnRedacted(redactedContent, model)) {
    throw modelError(`${at}: Invalid \`data\` in \`redacted_thinking\` block`);
  }
  if (!isRecord(reasoningText)) return;
  const signature = stringOf(reasoningText["signature"]);
  if (signature === "") throw modelError(`${at}.thinking.signature: Field required`);
  if (!isOwnSignature(signature, model, stringOf(reasoningText["text"]))) {
    throw modelError(`${at}: Invalid \`signature\` in \`thinking\` block`);
  }
}

/** A model that thinks requires its thoughts back with the tool calls that followed from them. */
function checkToolLoop(messages: readonly unknown[]): void {
  const last = listOf(recordOf(messages.at(-1))["content"]).map(recordOf);
  if (!last.some(({ toolResult }) => toolResult !== undefined)) return;
  const turn = messages.length - 2;
  const [first] = listOf(recordOf(messages[turn])["content"]).map(recordOf);
  if (first?.["reasoningContent"] !== undefined) return;
  const found = first?.["toolUse"] === undefined ? "text" : "tool_use";
  throw modelError(
    `messages.${turn}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found ` +
      `\`${found}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with ` +
      "a thinking block (preceding the lastmost set of `tool_use` and `tool_result` blocks).",
  );
}

/** A model's thoughts as the caller sees them. */
interface ShownThoughts {
  readonly model: string;
  /** The shown text; empty if the thoughts are omitted. */
  readonly text: string;
  /** Identifies the real thoughts; a signature begins with it. */
  readonly mark: string;
}

/** The signature by which a model recognises its own thoughts, unchanged. */
export function reasoningSignature({ model, text, mark }: ShownThoughts): string {
  const digest = createHash("sha512").update(`${foundationOf(model)} ${mark} ${text}`);
  return mark + digest.digest("base64");
}

/** Whether a returned signature is this model's, for this text. */
function isOwnSignature(signature: string, model: string, text: string): boolean {
  const mark = signature.slice(0, markLength);
  return reasoningSignature({ model, text, mark }) === signature;
}

/** Identifies the real thoughts, so that different omitted thoughts have different signatures. */
export function markOfThoughts(thoughts: string): string {
  return createHash("sha256").update(thoughts).digest("base64").slice(0, markLength);
}

/** Characters of base64, for a whole number of bytes. */
const markLength = 12;

/** Thoughts that the caller cannot read either, in base64. */
export function redactedThoughts(model: string, thoughts: string): string {
  const text = "";
  const signature = reasoningSignature({ model, text, mark: markOfThoughts(thoughts) });
  return Buffer.from(signature).toString("base64");
}

function isOwnRedacted(data: string, model: string): boolean {
  return isOwnSignature(Buffer.from(data, "base64").toString(), model, "");
}

/** The model's id without the prefix of a profile, such as `us.` or `global.`. */
function foundationOf(model: string): string {
  return model.replace(/^(?:[a-z-]+\.)(?=[a-z0-9-]+\.)/, "");
}
