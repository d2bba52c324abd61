import {
  environmentsSchema,
  modelQuerySchema,
  modelSchema,
  modelsSchema,
  plansSchema,
  type PlanView,
} from "../contract/platform.ts";
import type { Plan } from "../../domain/limits/plan.ts";
import type { TokenWeights } from "../../domain/limits/token-weights.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { requireKnownNames } from "../operation/known-names.ts";
import type { AdminServices, PlatformEnvironment } from "../services.ts";
import { viewAs } from "../values/api-form.ts";

const reading = { method: "GET", resource: "Platform", ...permissions.read } as const;

export function platformOperations({ platform }: AdminServices): readonly Operation[] {
  return [
    defineOperation({
      ...reading,
      id: "listEnvironments",
      path: "/admin/v1/environments",
      summary: "List environments",
      answer: environmentsSchema,
      run: () => ({
        data: platform().environments.map(({ name, hosts, baseUrl, models }) => ({
          name,
          hosts: [...hosts],
          base_url: baseUrl ?? null,
          models: models.map(({ alias }) => alias),
        })),
      }),
    }),
    listModels({ platform }),
    defineOperation({
      ...reading,
      id: "listPlans",
      path: "/admin/v1/plans",
      summary: "List plans",
      answer: plansSchema,
      run: () => ({ data: [...platform().plans.values()].map(viewPlan) }),
    }),
  ];
}

function listModels({ platform }: Pick<AdminServices, "platform">): Operation {
  return defineOperation({
    ...reading,
    id: "listModels",
    path: "/admin/v1/models",
    summary: "List the models of each environment",
    query: modelQuerySchema,
    answer: modelsSchema,
    run({ query, call: { principal } }) {
      requireKnownNames(platform(), query);
      const isOfAll = principal.accountId === undefined;
      const wanted = platform().environments.filter(
        ({ name }) => query.environment === undefined || name === query.environment,
      );
      return { data: wanted.flatMap((environment) => viewModels(environment, isOfAll)) };
    },
  });
}

function viewModels({ name: environment, models }: PlatformEnvironment, isOfAll: boolean) {
  return models.map((model) =>
    viewAs(modelSchema, model, {
      environment,
      targets: isOfAll ? model.targets.map(({ id }) => id) : null,
      fallbacks: [...(model.fallbacks ?? [])],
    }),
  );
}

function viewPlan({ name, limits, provisioned, mode, tokenWeights }: Plan): PlanView {
  return {
    name,
    requests_per_minute: limits?.requestsPerMinute ?? null,
    tokens_per_minute: limits?.tokensPerMinute ?? null,
    mode: mode ?? "enforce",
    token_weights: tokenWeights === undefined ? null : viewWeights(tokenWeights),
    provisioned,
  };
}

function viewWeights({ cachedInput, cacheWrite, output }: TokenWeights) {
  return {
    cached_input: cachedInput / 100,
    cache_write: cacheWrite / 100,
    output: output === "by-model" ? null : output / 100,
  };
}
