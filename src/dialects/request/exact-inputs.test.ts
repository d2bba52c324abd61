import { expect, test } from "bun:test";
import { readMessagesRequest } from "../../wires/messages/read-request.ts";
import { checkMessagesRequest } from "../messages/check-request.ts";
import { restoreInputs } from "./exact-integers.ts";

function argumentsOf(text: string): readonly string[] {
  const body = restoreInputs(checkMessagesRequest(JSON.parse(text)), text);
  return readMessagesRequest(body).turns.flatMap(({ blocks }) =>
    blocks.flatMap((block) => (block.type === "tool-call" ? block.arguments : [])),
  );
}

function bodyWith(...inputs: readonly string[]): string {
  const calls = inputs.map(
    (input, index) => `{"type":"tool_use","id":"t${index}","name":"f","input":${input}}`,
  );
  return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},
    {"role":"assistant","content":[{"type":"text","text":"1234567890123456789"},${calls.join()}]}]}`;
}

test("integers of 64 bits reach tools as they were written", () => {
  const inputs = [
    '{"id":1234567890123456789,"in":[{"of":-9007199254740993}],"x":1.5}',
    '{"id":1}',
    '{"id":"1234567890123456789"}',
  ];
  expect(argumentsOf(bodyWith(...inputs))).toEqual(inputs);
});

test("an input among them is read as all others: halves of pairs are no text", () => {
  const input = '{"id":1234567890123456789,"text":"\\ud83d"}';
  expect(argumentsOf(bodyWith(input))).toEqual(['{"id":1234567890123456789,"text":"\ufffd"}']);
});
