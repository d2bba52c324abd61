import { type JsonObject, keysOf, numberOf, textOf } from "../../domain/json-fields.ts";
import type { MessagesCapabilities, MessagesModel } from "../shared/messages/encode-messages.ts";
import facts from "./models.json" with { type: "json" };

/** Families of models: models of one take the same requests. */
export type ClaudeFamily = keyof typeof facts.families;

export const claudeFamilies = keysOf(facts.families);

const rows: Readonly<Record<string, JsonObject>> = facts.families;

/** Newer models than those of the table are taken for the newest family. */
const newest: ClaudeFamily = "claude-opus-5-5";

const patterns = claudeFamilies.flatMap((name): readonly (readonly [RegExp, ClaudeFamily])[] => {
  const pattern = textOf(rows[name]?.["models"]);
  return pattern === undefined ? [] : [[new RegExp(pattern), name]];
});

/** The family by a model's id. The last pattern that fits counts. */
export function familyOf(model: string): ClaudeFamily {
  return patterns.findLast(([pattern]) => pattern.test(model))?.[1] ?? newest;
}

/** The operator's settings of a model at one target. */
export interface AnthropicModelSettings {
  readonly family: ClaudeFamily | undefined;
  readonly dropUnsupported: boolean;
  readonly conversation: "repair" | "strict";
  readonly defaultOutputTokens?: number | undefined;
  /** The alias' own limit of one answer. */
  readonly maxOutputTokens: number | undefined;
}

export const usualSettings: AnthropicModelSettings = {
  family: undefined,
  dropUnsupported: false,
  conversation: "repair",
  maxOutputTokens: undefined,
};

export function modelOf(
  identifier: string,
  settings: AnthropicModelSettings = usualSettings,
): MessagesModel {
  const capabilities = capabilitiesOf(settings.family ?? familyOf(identifier));
  const { maxOutputTokens: own = Number.POSITIVE_INFINITY } = settings;
  const { maxOutputTokens: known = Number.POSITIVE_INFINITY } = capabilities;
  return {
    identifier,
    capabilities: { ...capabilities, maxOutputTokens: Math.min(known, own) },
    statedOutputTokens: undefined,
    settings,
  };
}

export function capabilitiesOf(family: ClaudeFamily): MessagesCapabilities {
  const fact = (name: string): unknown => factOf(family, name);
  const forcesTools = fact("forces_tools") === true;
  const off = thinkingOffs.find((each) => each === fact("thinking_off"));
  return {
    system: true,
    tools: true,
    toolChoice: forcesTools,
    namedToolChoice: forcesTools,
    toolResultsWithText: true,
    toolResultImages: true,
    singleToolCalls: true,
    nineCharacterToolIds: false,
    images: true,
    documents: true,
    stop: true,
    prefill: fact("prefill") === true,
    temperature: fact("temperature") === true,
    topP: fact("top_p") === true,
    topPWithTemperature: fact("top_p_with_temperature") === true,
    topK: fact("top_k") === true,
    jsonSchema: fact("json_schema") === true,
    reasoning: textOf(fact("reasoning")) ?? "none",
    thinkingOff: off ?? "omit",
    xhighEffort: fact("xhigh_effort") === true,
    omitsThoughts: fact("omits_thoughts") === true,
    maxOutputTokens: numberOf(fact("max_output_tokens")),
  };
}

const thinkingOffs = ["omit", "disabled", "between-tools", "never"] as const;

/** Of the family, or of the one that it is like. */
function factOf(family: string, name: string): unknown {
  const row = rows[family];
  const like = textOf(row?.["like"]);
  return row?.[name] ?? (like === undefined ? undefined : factOf(like, name));
}
