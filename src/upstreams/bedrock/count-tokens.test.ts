import { expect, test } from "bun:test";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import { chatOf, modelWith } from "../../../test/bedrock/checked-encode.ts";
import { bedrockModelOf } from "./models/bedrock-model.ts";
import { decodeCount } from "../shared/answer-codec.ts";
import { countPathOf, encodeCountTokens } from "./count-tokens.ts";

test.each([
  [
    "us.anthropic.claude-sonnet-4-20250514-v1:0",
    "/model/anthropic.claude-sonnet-4-20250514-v1%3A0/count-tokens",
  ],
  ["meta.llama3-1-70b-instruct-v1:0", undefined],
  ["arn:aws:bedrock:us-east-1:111122223333:provisioned-model/abc", undefined],
])("tokens for %s are counted at %p", (identifier, path) => {
  expect(countPathOf(bedrockModelOf(identifier, undefined))).toBe(path);
});

test("tokens for a profile's ARN are counted at its foundation model", () => {
  const arn = "arn:aws:bedrock:us-east-1:111122223333:application-inference-profile/abc";
  const baseModel = "us.anthropic.claude-sonnet-4-20250514-v1:0";
  expect(countPathOf(modelWith(arn, { baseModel }))).toBe(
    "/model/anthropic.claude-sonnet-4-20250514-v1%3A0/count-tokens",
  );
});

test("a count is read, and anything else is a broken answer", () => {
  const answer = (text: string) => ({ headers: new Headers(), body: Buffer.from(text) });
  expect(decodeCount(answer('{"inputTokens":12}'), "inputTokens")).toBe(12);
  for (const text of ["", "{}", '{"inputTokens":-1}', '{"inputTokens":0}', "<html>"]) {
    expect(() => decodeCount(answer(text), "inputTokens")).toThrow(UpstreamFailure);
  }
});

test("counting tokens sends the same words and tools, and nothing else", () => {
  const body = encodeCountTokens(
    chatOf({
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "hi" },
      ],
      tools: [{ type: "function", function: { name: "weather" } }],
      temperature: 0.5,
      service_tier: "flex",
    }),
    modelWith("us.anthropic.claude-sonnet-4-20250514-v1:0"),
  );
  expect(JSON.parse(body)).toEqual({
    input: {
      converse: {
        messages: [{ role: "user", content: [{ text: "hi" }] }],
        system: [{ text: "Be brief." }],
        toolConfig: {
          tools: [
            {
              toolSpec: {
                name: "weather",
                inputSchema: { json: { type: "object", properties: {} } },
              },
            },
          ],
        },
      },
    },
  });
});
