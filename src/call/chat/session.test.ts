import { expect, test } from "bun:test";
import { callOf, modelOf, targetOf } from "../../../test/support/pipeline-fixtures.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";
import { Sessions } from "../../routing/affinity.ts";
import { sessionOf } from "./session.ts";

test("a prompt of many blocks is known by the first of them", () => {
  const search = { call: callOf({}), sessions: new Sessions(testPeppers()) };
  const target = { ...targetOf("up"), promptCache: { filled: "always", keepsAnHour: false } };
  const model = { ...modelOf(), targets: [target] } as const;
  const sessionOfTexts = (texts: readonly string[]) => {
    const blocks = texts.map((text) => ({ type: "text", text }) as const);
    const request = { turns: [{ role: "user", blocks }], tools: [], extra: {}, options: {} };
    return sessionOf(
      { request, bytes: 5_000, isMarked: () => false } as never,
      model as never,
      search,
    );
  };
  const first = Array.from({ length: 64 }, (_, index) => `block ${index}`);
  expect(sessionOfTexts([...first, "one"])).toEqual(sessionOfTexts([...first, "other"]));
  expect(sessionOfTexts(first.with(63, "one"))).not.toEqual(sessionOfTexts(first));
});
