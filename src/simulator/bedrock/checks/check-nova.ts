import { recordOf, type JsonRecord } from "../../read-json.ts";
import { invalid, modelError, type BedrockError } from "../bedrock-error.ts";

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
