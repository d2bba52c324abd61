import facts from "./facts.json" with { type: "json" };
import { foundationModelOf } from "./facts.ts";

/** Ways to call a chat model. */
export const apis = ["converse", "messages", "openai-chat", "openai-responses"] as const;
export type Api = (typeof apis)[number];

/** The provider's two addresses. `mantle` has extra features and models, but fewer regions. */
export const services = ["runtime", "mantle"] as const;
export type Service = (typeof services)[number];

/** The APIs of a model at a service, the best first. Undefined: not known, also behind an ARN. */
export function apisOf(identifier: string, service: Service): readonly Api[] | undefined {
  return rowOf(identifier)?.[service].flatMap((name) => apis.find((api) => api === name) ?? []);
}

/** The API of a target that names none: Converse wherever the model speaks it. */
export function usualApi(identifier: string, service: Service): Api {
  const [usual] = apisOf(identifier, service) ?? [];
  return usual ?? (service === "runtime" ? "converse" : "openai-chat");
}

/** What the paths of OpenAI's APIs begin with: the wrong one of the two is a 400. */
export function openAiPath(identifier: string, service: Service): string {
  return service === "runtime" ? "/openai/v1" : (rowOf(identifier)?.mantle_path ?? "/v1");
}

function rowOf(identifier: string): (typeof rows)[number] | undefined {
  const model = foundationModelOf(identifier);
  return model === undefined ? undefined : rows.findLast(({ models }) => models.test(model));
}

const rows = facts.apis.map((row) => ({ ...row, models: new RegExp(row.models) }));
