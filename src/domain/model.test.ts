import { expect, test } from "bun:test";
import { modelOf } from "../../test/support/pipeline-fixtures.ts";
import { modelNamed } from "./model.ts";

const models = new Map(
  ["chat", "claude-opus", "small"].map((alias) => [alias, modelOf({ alias })] as const),
);
const environment = {
  name: "test",
  models,
  otherNames: {
    exact: new Map([
      ["claude-opus", "small"],
      ["claude-haiku-5", "chat"],
    ]),
    prefixes: [
      { prefix: "claude-haiku-", alias: "small" },
      { prefix: "claude-", alias: "chat" },
    ],
  },
};

test.each([
  ["chat", "chat"],
  ["claude-opus", "claude-opus"],
  ["claude-haiku-5", "chat"],
  ["claude-haiku-4-5", "small"],
  ["claude-", "chat"],
  ["claude-sonnet-5", "chat"],
  ["claude", undefined],
  ["gpt", undefined],
])("the model of %p is %p", (name, alias) => {
  expect(modelNamed(environment, name)?.alias).toBe(alias);
  const found = models.has(name) ? name : undefined;
  expect(modelNamed({ name: "test", models }, name)?.alias).toBe(found);
});
