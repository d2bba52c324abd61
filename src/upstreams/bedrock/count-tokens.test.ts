import { expect, test } from "bun:test";
import { UpstreamFailure } from "../../domain/upstream-failure.ts";
import { resolveModel } from "./bedrock-model.ts";
import { countPathOf, decodeCountTokens } from "./count-tokens.ts";

test.each([
  [
    "us.anthropic.claude-sonnet-4-20250514-v1:0",
    "/model/anthropic.claude-sonnet-4-20250514-v1%3A0/count-tokens",
  ],
  ["meta.llama3-1-70b-instruct-v1:0", undefined],
  ["arn:aws:bedrock:us-east-1:111122223333:provisioned-model/abc", undefined],
])("tokens for %s are counted at %p", (identifier, path) => {
  expect(countPathOf(resolveModel(identifier, undefined))).toBe(path);
});

test("a count is read, and anything else is a broken answer", () => {
  const answer = (text: string) => ({ headers: new Headers(), body: Buffer.from(text) });
  expect(decodeCountTokens(answer('{"inputTokens":12}'))).toBe(12);
  for (const text of ["", "{}", '{"inputTokens":-1}', "<html>"]) {
    expect(() => decodeCountTokens(answer(text))).toThrow(UpstreamFailure);
  }
});
