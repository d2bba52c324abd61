import { expect, test } from "bun:test";
import { responseWorld } from "../../../test/support/response-world.ts";
import { createResponses } from "./responses.ts";
import { inputText, withStored } from "./stored-input.ts";

/** A body that refers to a message of each of as many responses. */
function referringTo(count: number): { input: object[] } {
  const digits = (index: number): string => index.toString(16).padStart(32, "0");
  const input = Array.from({ length: count }, (_, index) => ({
    type: "item_reference",
    id: `msg_${digits(index)}0000`,
  }));
  return { input };
}

test("references to more than 256 responses are refused before any is read", async () => {
  const { store, stored, callOf } = responseWorld();
  const { body } = await withStored(referringTo(256), callOf(), stored);
  expect(body["input"]).toHaveLength(256);
  store.isDown = true;
  const refused = withStored(referringTo(257), callOf(), stored);
  expect(refused).rejects.toMatchObject({ status: 400, param: "input" });
  const [one] = referringTo(1).input;
  const repeated = { input: Array.from({ length: 1000 }, () => one) };
  store.isDown = false;
  expect((await withStored(repeated, callOf(), stored)).body["input"]).toHaveLength(1000);
});

test("an answer that cannot be written gives the room of its input back", async () => {
  const { stored, callOf } = responseWorld();
  const value = { model: "m", input: "x".repeat(1_000_000) };
  const surface = createResponses({ responses: stored });
  const asking = await surface.read({ value, text: "" }, callOf());
  const usage = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 };
  const about = { id: "req_1", created: 0, model: "m", usage: usage as never };
  const broken = {
    get choices(): never {
      throw new Error("broken");
    },
  };
  for (let call = 0; call < 100; call += 1) {
    expect(() => asking.body(broken as never, about)).toThrow("broken");
  }
  expect(stored.hold(callOf(), { id: "resp_1", input: "x".repeat(1_000_000) })).toBeDefined();
});

test("an input that is too large to be stored is not written as JSON", () => {
  const textOf = (input: unknown, earlier: readonly unknown[] = []) =>
    inputText({ body: { input }, earlier, storedBytes: 0 });
  const mebi = 1024 * 1024;
  const half = { role: "user", content: [{ type: "input_text", text: "x".repeat(mebi / 2) }] };
  const unwritten = {
    toJSON(): never {
      throw new Error("written");
    },
  };
  expect(textOf("x".repeat(mebi + 1))).toBeUndefined();
  expect(textOf([half, half, unwritten])).toBeUndefined();
  expect(textOf([half, unwritten], [half])).toBeUndefined();
  expect(textOf([half, null])).toBe(JSON.stringify({ items: [half] }));
});
