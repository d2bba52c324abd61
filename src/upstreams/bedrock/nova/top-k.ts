import type { JsonObject } from "../../shared/json-fields.ts";
import type { ModelFamily } from "../models/model-families.ts";

/**
 * `top_k` in `additionalModelRequestFields`: most models have a field of that name. Nova has it
 * inside its own object, and refuses the other. Source: Amazon Nova user guides of both
 * generations, "Request and response schema".
 */
export function topKFields(topK: number, family: ModelFamily): JsonObject {
  return novaFamilies.has(family) ? { inferenceConfig: { topK } } : { top_k: topK };
}

const novaFamilies: ReadonlySet<ModelFamily> = new Set(["nova", "nova-micro", "nova-2"]);
