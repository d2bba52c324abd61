import { resolveModel, type BedrockModel } from "./bedrock-model.ts";
import { countPathOf } from "../count-tokens.ts";
import { encodePathSegment } from "../endpoint.ts";
import type { BedrockModelSettings, BedrockSettings } from "../settings.ts";

/** One model at one target, with everything that is the same for all calls. */
export interface TargetModel {
  readonly model: BedrockModel;
  /** `/model/<identifier>`, the identifier as one segment. */
  readonly path: string;
  /** The path for counting tokens; undefined when the model does not support that. */
  readonly countPath: string | undefined;
}

/** Finds the operator's settings of a model; each is resolved once. */
export class TargetModels {
  readonly #settings: BedrockSettings["models"];
  readonly #known = new Map<string, Map<string, TargetModel>>();

  constructor(settings: BedrockSettings["models"]) {
    this.#settings = settings;
  }

  at(alias: string, identifier: string): TargetModel {
    const known = this.#known.get(alias)?.get(identifier);
    if (known !== undefined) return known;
    const target = makeTarget(identifier, this.#settings.get(alias)?.get(identifier));
    const siblings = this.#known.get(alias) ?? new Map<string, TargetModel>();
    this.#known.set(alias, siblings.set(identifier, target));
    return target;
  }
}

function makeTarget(identifier: string, settings: BedrockModelSettings | undefined): TargetModel {
  const model = resolveModel(identifier, settings);
  return {
    model,
    path: `/model/${encodePathSegment(identifier)}`,
    countPath: countPathOf(model),
  };
}
