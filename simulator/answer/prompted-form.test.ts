import { expect, test } from "bun:test";
import type { Turn } from "./prompt.ts";
import { promptedForm } from "./prompted-form.ts";

function turn(role: Turn["role"], text: string): Turn {
  return { role, text, name: undefined, attachments: [], toolCalls: [] };
}

const schema = { type: "object", properties: { "a}": { type: "string" } }, required: ["a}"] };

/** Prompts as libraries write them, shortened. */
const prompts: readonly (readonly [string, string, string, object])[] = [
  ["an order", "Respond with JSON.", "Hi", { kind: "json" }],
  ["an order of the user", "", "Return the result as JSON", { kind: "json" }],
  ["one that names an object", "Answer with one JSON object.", "Hi", { kind: "json" }],
  [
    "instructor, with a schema",
    "Understand the content and provide the parsed objects in json that match the following " +
      `json_schema:\n\n${JSON.stringify(schema, undefined, 2)}\n\nReturn an instance of it.`,
    "Ada is 36.",
    { kind: "schema", schema },
  ],
  ["a mention", "You know JSON well.", "What is JSON?", { kind: "text" }],
  ["nothing", "Be brief.", "Hi {", { kind: "text" }],
  ["braces that never close", "Respond with JSON like {{{{", "Hi", { kind: "json" }],
];

test.each(prompts)("the prompt of %s is understood", (_what, system, user, form) => {
  expect(promptedForm([turn("system", system), turn("user", user)])).toMatchObject(form);
});

test("the form of an earlier turn does not count", () => {
  const turns = [turn("user", "Respond with JSON"), turn("assistant", "{}"), turn("user", "Hi")];
  expect(promptedForm(turns)).toEqual({ kind: "text" });
});
