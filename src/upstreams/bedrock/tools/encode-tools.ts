import type { JsonObject } from "../../../domain/json-fields.ts";
import { isBlank } from "../../shared/adjustments.ts";
import { providerSchema } from "../../shared/answer-format/provider-schema.ts";
import { claudeChoice, type ToolPlan } from "../../shared/tools/plan-tools.ts";
import type { ToolNames } from "../../shared/tools/tool-names.ts";
import type { Choice, Offer } from "../../shared/tools/tool-offers.ts";
import { cachePointFor } from "../encode/cache-points.ts";
import type { ToolConfig, ToolEntry, ToolSpec, WireToolChoice } from "../encode/converse-body.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";

interface EncodedTools {
  /** Undefined when the model must not be able to call any. */
  readonly config: ToolConfig | undefined;
  /** For `additionalModelRequestFields`. */
  readonly fields: JsonObject;
}

/** The tools of a request. */
export function encodeTools(plan: ToolPlan, model: BedrockModel, names: ToolNames): EncodedTools {
  const { list, choice, isSingle } = plan;
  if (list.length === 0) return { config: undefined, fields: {} };
  return {
    config: {
      tools: list.flatMap((offer) => entriesOf(offer, model, names)),
      ...(!isSingle && choiceOf(choice, names)),
    },
    // The provider refuses it together with a choice in its own form.
    fields: isSingle ? { tool_choice: claudeChoice(plan, names) } : {},
  };
}

/** Some models cache prompts, but do not accept cache points among the tools. */
function entriesOf(offer: Offer, model: BedrockModel, names: ToolNames): readonly ToolEntry[] {
  const spec = specOf(offer, model, names);
  const { capabilities } = model;
  const point = capabilities.promptCacheTools && cachePointFor(offer.cacheMark, capabilities);
  return point ? [spec, point] : [spec];
}

function specOf(offer: Offer, { capabilities }: BedrockModel, names: ToolNames): ToolSpec {
  const { name, description = "", schema, isStrict } = offer;
  // A strict tool that cannot be enforced is offered as an ordinary one.
  const held = isStrict && capabilities.jsonSchema ? providerSchema(schema) : undefined;
  return {
    toolSpec: {
      name: names.sentNameOf(name),
      ...(!isBlank(description) && { description }),
      inputSchema: { json: held ?? schema },
      ...(held !== undefined && { strict: true }),
    },
  };
}

function choiceOf(choice: Choice, names: ToolNames): { toolChoice?: WireToolChoice } {
  switch (choice.type) {
    case "any":
      return { toolChoice: { any: {} } };
    case "named":
      return { toolChoice: { tool: { name: names.sentNameOf(choice.name) } } };
    case "auto":
    case "none":
      return {};
  }
}
