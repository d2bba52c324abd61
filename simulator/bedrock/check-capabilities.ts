import { isRecord, type JsonRecord, listOf, numberOf, recordOf, stringOf } from "../json.ts";
import { type BedrockError, invalid, modelError } from "./errors.ts";
import { checkCachePoints } from "./check-conversation.ts";
import type { CapabilityRow } from "./capabilities.ts";

/** Throws `BedrockError` if a body of valid shape needs more than the model supports. */
export function checkCapabilities(body: JsonRecord, row: CapabilityRow, isStreamed: boolean): void {
  if (row.api !== "chat" && row.api !== "everything") {
    throw invalid("This action doesn't support the model that you provided.");
  }
  if (listOf(body["system"]).length > 0 && !row.system) {
    throw invalid("This model doesn't support system messages.");
  }
  checkTools(body, row, isStreamed);
  checkInference(recordOf(body["inferenceConfig"]), row);
  checkBlocks(body, row);
  checkCachePoints(body, row);
  checkModelFields(recordOf(body["additionalModelRequestFields"]), row);
  if (recordOf(body["outputConfig"])["textFormat"] !== undefined && !row.jsonSchema) {
    throw unsupportedField("outputConfig.textFormat");
  }
}

function checkTools(body: JsonRecord, row: CapabilityRow, isStreamed: boolean): void {
  if (!isRecord(body["toolConfig"])) return;
  const { tools, toolChoice } = body["toolConfig"];
  if (!row.tools) throw invalid("This model doesn't support tool use.");
  if (isStreamed && !row.streamTools) {
    throw invalid("This model doesn't support tool use in streaming mode.");
  }
  const names = listOf(tools)
    .map((tool) => recordOf(recordOf(tool)["toolSpec"])["name"])
    .filter((name) => name !== undefined);
  if (names.length === 0) throw invalid("The toolConfig field must have a toolSpec.");
  if (new Set(names).size < names.length) {
    throw invalid("The tool names of toolConfig.tools must be unique.");
  }
  for (const [index, tool] of listOf(tools).entries()) {
    const { toolSpec } = recordOf(tool);
    const schema = recordOf(recordOf(toolSpec)["inputSchema"])["json"];
    if (isRecord(toolSpec) && recordOf(schema)["type"] !== "object") {
      const at = `toolConfig.tools.${index}.toolSpec.inputSchema.json`;
      throw invalid(`The value at ${at}.type must be one of the following: object.`);
    }
  }
  const [kind = "auto"] = Object.keys(recordOf(toolChoice));
  if (kind !== "auto" && !row.toolChoice) throw unsupportedField(`toolConfig.toolChoice.${kind}`);
  const chosen = recordOf(recordOf(toolChoice)["tool"])["name"];
  if (chosen !== undefined && !names.includes(chosen)) {
    throw invalid(
      `The tool ${stringOf(chosen)} of toolConfig.toolChoice is not in toolConfig.tools.`,
    );
  }
}

function checkInference(config: JsonRecord, row: CapabilityRow): void {
  const { maxTokens, temperature, topP, stopSequences } = config;
  const limit = row.maxOutputTokens;
  if (limit !== undefined && (numberOf(maxTokens) ?? 0) > limit) {
    throw invalid(`The maximum tokens you requested exceeds the model limit of ${limit}.`);
  }
  if (typeof temperature === "number" && !row.temperature) throw deprecated("temperature");
  if (typeof topP === "number" && !row.topP) throw deprecated("top_p");
  if (typeof temperature === "number" && typeof topP === "number" && !row.topPWithTemperature) {
    throw modelError(
      "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
    );
  }
  const stops = listOf(stopSequences).map(stringOf);
  if (stops.length > 0 && !row.stop) throw unsupportedField("stopSequences");
  if (stops.some((stop) => stop.trim() === "")) {
    throw modelError("stop_sequences: each stop sequence must contain non-whitespace");
  }
}

function checkBlocks(body: JsonRecord, row: CapabilityRow): void {
  const blocks = listOf(body["messages"]).flatMap((message) =>
    listOf(recordOf(message)["content"]).map(recordOf),
  );
  const inner = blocks.flatMap(({ toolResult }) =>
    listOf(recordOf(toolResult)["content"]).map(recordOf),
  );
  const all = [...blocks, ...inner];
  if (!row.images && all.some(({ image }) => image !== undefined)) {
    throw invalid("This model doesn't support the image content block. Remove it and try again.");
  }
  if (!row.toolResultImages && inner.some(({ image }) => image !== undefined)) {
    throw unsupportedField("toolResult.content.image");
  }
  if (!row.documents && all.some(({ document }) => document !== undefined)) {
    throw invalid("This model doesn't support documents.");
  }
}

function checkModelFields(fields: JsonRecord, row: CapabilityRow): void {
  const extra = Object.keys(fields).find((name) => row.modelFields?.includes(name) === false);
  if (extra === undefined) return;
  if (row.contextText === "claude") throw modelError(`${extra}: Extra inputs are not permitted`);
  throw invalid(
    `Malformed input request: #: extraneous key [${extra}] is not permitted, please reformat ` +
      "your input and try again.",
  );
}

function unsupportedField(name: string): BedrockError {
  return invalid(`This model doesn't support the ${name} field. Remove ${name} and try again.`);
}

function deprecated(name: string): BedrockError {
  return modelError(`\`${name}\` is deprecated for this model.`);
}

/** Checks Nova's own fields. Throws `BedrockError`. */
export function checkNova(body: JsonRecord, generation: 1 | 2): void {
  const { inferenceConfig, reasoningConfig } = recordOf(body["additionalModelRequestFields"]);
  const own = recordOf(inferenceConfig);
  const extra = Object.keys(own).find((name) => name !== "topK");
  if (extra !== undefined) throw malformed(`extraneous key [${extra}] is not permitted`);
  const { topK } = own;
  if (topK !== undefined && !isTopK(topK)) throw malformed("topK is not in the range 0..128");
  if (reasoningConfig === undefined) return;
  const { type, maxReasoningEffort: effort } = recordOf(reasoningConfig);
  const isOff = type === "disabled" && effort === undefined;
  const isOn = type === "enabled" && ["low", "medium", "high"].some((known) => known === effort);
  if (generation === 1 || !(isOff || isOn)) {
    throw malformed("the provided reasoning config value is invalid");
  }
  if (effort !== "high") return;
  const { maxTokens, temperature, topP } = recordOf(body["inferenceConfig"]);
  const set = Object.entries({ maxTokens, temperature, topP, topK }).find(
    ([, value]) => value !== undefined,
  );
  if (set === undefined) return;
  throw invalid(`${set[0]} must be unset when maxReasoningEffort is high.`);
}

function isTopK(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 128;
}

function malformed(what: string): BedrockError {
  return modelError(`Malformed input request: ${what}, please reformat your input and try again.`);
}
