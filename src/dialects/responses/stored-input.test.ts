import { expect, test } from "bun:test";
import { responseWorld } from "../../../test/support/response-world.ts";
import { withStored } from "./stored-input.ts";

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
