import { resolveModel, type BedrockModel } from "./bedrock-model.ts";
import { countPathOf } from "../count-tokens.ts";
import { encodePathSegment } from "../endpoint.ts";
import type { BedrockModelSettings, BedrockSettings } from "../settings.ts";

/** One model at one target, with all that does not change from call to call. */
export interface TargetModel {
  readonly model: BedrockModel;
  /** `/model/<identifier>`, the identifier as one segment. */
  readonly path: string;
  /** Where its tokens are counted; undefined when the model cannot do that. */
  readonly countPath: string | undefined;
}

/** Finds what the operator says of a model; each is worked out once. */
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
