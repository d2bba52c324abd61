import { expect, test } from "bun:test";
import fc from "fast-check";
import { callOf, modelOf, targetOf } from "../../../test/support/pipeline-fixtures.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";
import { Sessions } from "../../routing/affinity.ts";
import { readChatRequest } from "../../wires/chat/read-request.ts";
import { sessionOf } from "./session.ts";

const sessions = new Sessions(testPeppers());
const promptCache = { filled: "always", keepsAnHour: false } as const;
const model = modelOf({ targets: [targetOf("up", { promptCache })] });
const text = (of: string) => ({ type: "text", text: of });

interface Prompt {
  readonly rules: readonly string[];
  readonly asked: readonly string[];
  readonly tools?: readonly string[];
  readonly later?: readonly object[];
}

/** Of a prompt that is long enough to be cached. */
function hashOf({ rules, asked, tools = [], later = [] }: Prompt): number | undefined {
  const request = readChatRequest({
    model: model.alias,
    tools: tools.map((name) => ({ type: "function", function: { name, parameters: {} } })),
    messages: [
      { role: "system", content: rules.map(text) },
      { role: "user", content: asked.map(text) },
      ...later,
    ],
  });
  const prompt = { request, bytes: 5_000, isMarked: () => false };
  return sessionOf(prompt, model, { call: callOf({}), sessions })?.hash;
}

test("a prompt of many blocks is known by the first of them", () => {
  const first = Array.from({ length: 15 }, (_, index) => `block ${index}`);
  const hash = (asked: readonly string[]) =>
    hashOf({ rules: ["rules"], asked: ["first", ...asked] });
  expect(hash([...first, "one"])).toBe(hash([...first, "other"]));
  expect(hash(first.with(14, "one"))).not.toBe(hash(first));
});

const known = 4_096;
const prefix = fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }).map((part) => {
  return part.repeat(Math.ceil(known / part.length)).slice(0, known);
});

test("prompts whose texts share their first 4,096 characters are of one session", () => {
  fc.assert(
    fc.property(prefix, fc.string(), fc.string(), fc.string(), (shared, one, other, answer) => {
      const later = [
        { role: "assistant", content: answer },
        { role: "user", content: other },
      ];
      const tools = ["read_file", "write_file"];
      expect(hashOf({ rules: [shared + one], asked: ["Hi"], tools })).toBe(
        hashOf({ rules: [shared + other], asked: ["Hi"], tools, later }),
      );
    }),
  );
});

test("prompts that begin otherwise are of other sessions", () => {
  const rules = "Rules of the house. ".repeat(300);
  const change = (at: number): string => `${rules.slice(0, at)}!${rules.slice(at + 1)}`;
  const short = "Summarize in JSON: ".repeat(40);
  const prompts: readonly Prompt[] = [
    { rules: [rules], asked: ["Hi"] },
    { rules: [rules], asked: ["Ho"] },
    { rules: [rules, "More."], asked: ["Hi"] },
    { rules: [rules], asked: [short] },
    { rules: [rules], asked: [`${short}.`] },
    // What differs is in the middle, as in a form that is filled in.
    { rules: [rules], asked: [`${short}a name${short}`] },
    { rules: [rules], asked: [`${short}another name${short}`] },
    { rules: [change(0)], asked: ["Hi"] },
    { rules: [change(255)], asked: ["Hi"] },
    { rules: [change(known - 256)], asked: ["Hi"] },
    { rules: [change(known - 1)], asked: ["Hi"] },
    ...[["read"], ["write"], ["read", "write"], ["read", "list"], ["read", "list", "write"]].map(
      (tools) => ({ rules: [rules], asked: ["Hi"], tools }),
    ),
  ];
  expect(new Set(prompts.map(hashOf)).size).toBe(prompts.length);
  expect(hashOf({ rules: [change(known)], asked: ["Hi"] })).toBe(
    hashOf({ rules: [rules], asked: ["Hi"] }),
  );
});
