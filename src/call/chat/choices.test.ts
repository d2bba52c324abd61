import { expect, test } from "bun:test";
import {
  adapterOf,
  modelOf,
  snapshotOf,
  targetOf,
  upstreamOf,
} from "../../../test/support/pipeline-fixtures.ts";
import { inputReadings } from "./choices.ts";
import { readChatRequest } from "../../wires/chat/read-request.ts";

const url = "http://127.0.0.1:9/v1";
const counting = upstreamOf("counting", { adapter: adapterOf(url) });
const single = upstreamOf("single", {
  adapter: adapterOf(url, { chat: { takesChoiceCount: false } }),
});
const snapshot = snapshotOf([counting, single]);
const request = readChatRequest({ model: "m", messages: [], n: 4 });

const readingsOf = (upstream: string, fallback: string): number => {
  const stand = modelOf({ alias: "stand", targets: [targetOf(fallback)] });
  const environment = { name: "test", models: new Map([["stand", stand]]) };
  const model = modelOf({ targets: [targetOf(upstream)], fallbacks: ["stand", "gone"] });
  return inputReadings(request, model, { snapshot, environment });
};

test("an input is read once per choice if a possible upstream takes one choice per request", () => {
  expect(readingsOf("counting", "counting")).toBe(1);
  expect(readingsOf("single", "counting")).toBe(4);
  expect(readingsOf("counting", "single")).toBe(4);
});
