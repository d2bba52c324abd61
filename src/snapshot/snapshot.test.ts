import { expect, test } from "bun:test";
import { callerOf, modelOf } from "../../test/support/pipeline-fixtures.ts";
import { openAiDialect } from "../dialects/openai-dialect.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { Key } from "../domain/keys/key.ts";
import { mayUseModel } from "../domain/keys/key.ts";
import { resolveModel } from "./call.ts";

const models = new Map(
  [
    modelOf(),
    modelOf({ alias: "alpha-haiku-3.5" }),
    modelOf({ alias: "embed-text-v2", kind: "embedding" }),
  ].map((model) => [model.alias, model]),
);

function callOf(allowedModels: Key["allowedModels"]) {
  const caller = callerOf();
  return {
    environment: { name: "test", models },
    dialect: openAiDialect,
    caller: { ...caller, key: { ...caller.key, allowedModels } },
  };
}

function refusalOf(alias: string, allowedModels: Key["allowedModels"]): GatewayError {
  try {
    resolveModel(callOf(allowedModels), alias, "chat");
  } catch (error) {
    if (error instanceof GatewayError) return error;
  }
  throw new Error(`${alias} was not refused`);
}

test("a key without a list may use every model of its environment", () => {
  expect(resolveModel(callOf(undefined), "alpha-haiku-3.5", "chat").alias).toBe("alpha-haiku-3.5");
});

test("a model that the key may not use is refused as such, one that is not there as that", () => {
  const call = callOf(["alpha-haiku-3.5"]);
  expect(resolveModel(call, "alpha-haiku-3.5", "chat").alias).toBe("alpha-haiku-3.5");
  const forbidden = refusalOf("alpha-sonnet-4", ["alpha-haiku-3.5"]);
  const missing = refusalOf("alpha-sonnet-9", ["alpha-haiku-3.5"]);
  for (const { status, code, param } of [forbidden, missing]) {
    expect([status, code, param]).toEqual([400, "invalid_model", "model"]);
  }
  expect(forbidden.message).toBe(
    "This API key may not use the model `alpha-sonnet-4`. " +
      "GET /v1/models lists the models it can use.",
  );
  expect(missing.message).toContain("`alpha-sonnet-9` does not exist in this environment");
});

test("the kind of a model is told only to a key that may use it", () => {
  expect(refusalOf("embed-text-v2", undefined).message).toContain("/v1/embeddings");
  expect(refusalOf("embed-text-v2", []).message).toContain("may not use the model");
});

test("an empty list allows nothing, and aliases are compared whole", () => {
  const { key } = callerOf();
  expect(mayUseModel({ ...key, allowedModels: [] }, "alpha")).toBe(false);
  expect(mayUseModel({ ...key, allowedModels: ["alpha-sonnet-4"] }, "alpha")).toBe(false);
});
