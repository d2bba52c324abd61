import { expect, test } from "bun:test";
import { callOf, callerOf, modelOf } from "../../../test/support/pipeline-fixtures.ts";
import { openAiDialect } from "../openai-dialect.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Key } from "../../domain/keys/key.ts";
import type { KeyCall } from "../../edge/dispatch/route.ts";
import { listModels, retrieveModel } from "./models.ts";

const models = new Map(
  ["alpha-haiku-3.5", "alpha-sonnet-4"].map((alias) => [alias, modelOf({ alias })]),
);

function keyCallOf(allowedModels: Key["allowedModels"], parameter = ""): KeyCall {
  const caller = callerOf();
  return {
    ...callOf({
      environment: { name: "test", models },
      caller: { ...caller, key: { ...caller.key, allowedModels } },
    }),
    request: new Request("http://a.example/v1/models"),
    parameter,
    readBody: () => Promise.reject(new Error("there is no body")),
    memory: { keep: () => () => undefined, takesMore: () => undefined, unread: () => undefined },
    answerMemory: {
      reserve: () => undefined,
      shrinkTo: () => undefined,
      release: () => undefined,
    },
    dialect: openAiDialect,
    streamEnded: () => true,
  };
}

async function listed(allowedModels: Key["allowedModels"]): Promise<readonly string[]> {
  const answer = await new Response(listModels(keyCallOf(allowedModels)).body).json();
  return (answer as { data: { id: string }[] }).data.map(({ id }) => id);
}

test("the list contains the models that the key may use", async () => {
  expect(await listed(undefined)).toEqual(["alpha-haiku-3.5", "alpha-sonnet-4"]);
  expect(await listed(["alpha-sonnet-4", "one-that-is-gone"])).toEqual(["alpha-sonnet-4"]);
  expect(await listed([])).toEqual([]);
});

test("a model that the key may not use is answered like an unknown one", () => {
  expect(retrieveModel(keyCallOf(["alpha-sonnet-4"], "alpha-sonnet-4")).status).toBe(200);
  for (const alias of ["alpha-haiku-3.5", "alpha-sonnet-9"]) {
    const retrieve = (): unknown => retrieveModel(keyCallOf(["alpha-sonnet-4"], alias));
    expect(retrieve).toThrow(GatewayError);
    expect(retrieve).toThrow(`The model '${alias}' does not exist`);
  }
});
