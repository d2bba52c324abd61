import { afterAll, beforeAll, expect, test } from "bun:test";
import { type AnthropicGateway, startAnthropicGateway } from "./anthropic-gateway.ts";

/** Only what `test/provider/api-faults` does not try at each API. */
let world: AnthropicGateway;
const model = "claude-sonnet-4-5";

beforeAll(async () => {
  world = await startAnthropicGateway({ models: [model] });
});
afterAll(() => world[Symbol.asyncDispose]());

const body = { model, messages: [{ role: "user", content: "count: 40" }] };

test("the wait that the provider asks for is told", async () => {
  world.api.setFaultPlan([{ mode: "throttle-429", argument: 7_000, times: 9 }]);
  const response = await world.gateway.post("/v1/chat/completions", body);
  world.api.setFaultPlan([]);
  expect(response.status).toBe(503);
  expect(response.headers.get("retry-after")).toBe("7");
});

test.each(["no-done", "usage-twice"] as const)("a stream with %s is read", async (mode) => {
  world.api.setFaultPlan([{ mode, times: 1 }]);
  const response = await world.gateway.post("/v1/chat/completions", { ...body, stream: true });
  const text = await response.text();
  const words = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, word]) => word).join("");
  expect(words).toEndWith(" 39 40");
  expect(text).toEndWith("data: [DONE]\n\n");
});
