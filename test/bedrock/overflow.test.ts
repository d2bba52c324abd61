import { afterAll, beforeAll, expect, test } from "bun:test";
import { z } from "zod";
import { startGateway, targetAt, type TestGateway } from "../support/gateway.ts";

/** Real identifiers, whose families have words of their own, with windows that a test can fill. */
const families = [
  ["claude", "us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-4"],
  ["llama", "us.meta.llama3-1-70b-instruct-v1:0", "llama-3-1"],
  ["mixtral", "mistral.mixtral-8x7b-instruct-v0:1", "mixtral-8x7b"],
  ["nova", "us.amazon.nova-lite-v1:0", "nova"],
] as const;

const errorBody = z.object({ error: z.object({ code: z.string(), message: z.string() }) });

let gateway: TestGateway;

beforeAll(async () => {
  const models = families.map(
    ([alias, model, family]) => `
  ${alias}:
    kind: chat
    context_window: 100000
    targets: [${targetAt("bedrock", { model: JSON.stringify(model), family })}]`,
  );
  gateway = await startGateway({
    kind: "bedrock",
    simulator: {
      bedrock: {
        models: Object.fromEntries(families.map(([, model]) => [model, { contextTokens: 300 }])),
      },
    },
    sections: { models: models.join("") },
  });
});
afterAll(() => gateway[Symbol.asyncDispose]());

for (const [alias] of families) {
  test.each([false, true])(
    `${alias} says in its own words that a prompt is too long, streamed: %p`,
    async (stream) => {
      const response = await gateway.post("/v1/chat/completions", {
        model: alias,
        stream,
        max_tokens: 10,
        messages: [{ role: "user", content: "word ".repeat(400) }],
      });
      const { error } = errorBody.parse(await response.json());
      expect([response.status, error.code]).toEqual([400, "context_length_exceeded"]);
      expect(error.message).toMatch(/^This model's maximum context length is \d+ tokens/);
    },
  );
}
