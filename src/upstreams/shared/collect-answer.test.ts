import { expect, test } from "bun:test";
import { collectAnswer } from "./collect-answer.ts";

test("a field that JavaScript gives a meaning changes no other object", () => {
  const message = JSON.parse('{"audio":{"__proto__":{"isPolluted":true},"id":"a"}}');
  const extra = { answer: undefined, choice: undefined, message };
  const answer = collectAnswer([{ type: "text-delta", choice: 0, text: "Hi", extra }]);
  expect(answer.choices[0]?.extra?.message).toEqual({ audio: { id: "a" } });
  expect(Reflect.get({}, "isPolluted")).toBeUndefined();
});

test("a field with the name of a method is collected like any other", () => {
  const message = { toString: { constructor: "a" } };
  const extra = { answer: undefined, choice: undefined, message };
  const event = { type: "text-delta", choice: 0, text: "Hi", extra } as const;
  const answer = collectAnswer([event, event]);
  expect(JSON.stringify(answer.choices[0]?.extra?.message)).toBe(
    '{"toString":{"constructor":"aa"}}',
  );
});
