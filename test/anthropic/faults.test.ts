import { afterAll, beforeAll, expect, test } from "bun:test";
import { type AnthropicGateway, startAnthropicGateway } from "./anthropic-gateway.ts";

let world: AnthropicGateway;
const model = "claude-sonnet-4-5";

beforeAll(async () => {
  world = await startAnthropicGateway({ models: [model] });
});
afterAll(() => world[Symbol.asyncDispose]());

const body = { model, messages: [{ role: "user", content: "count: 40" }] };

async function ask(mode: Parameters<typeof plan>[0], stream = false): Promise<Response> {
  plan(mode);
  const response = await world.gateway.post("/v1/chat/completions", { ...body, stream });
  plan("ok");
  return response;
}

function plan(mode: Parameters<AnthropicGateway["api"]["setFaultPlan"]>[0][number]["mode"]): void {
  world.api.setFaultPlan([{ mode, times: Number.POSITIVE_INFINITY }]);
}

test.each([
  ["throttle-429-bare", 503, "the provider is limiting requests"],
  ["overloaded-503", 503, "the provider is overloaded"],
  ["bad-credential", 503, "refused the gateway's credential"],
  ["model-not-found-404", 503, "does not know the model"],
  ["context-overflow", 400, "context_length_exceeded"],
  ["bad-request-400", 400, "temperature: range: 0..1"],
  ["error-200", 503, "the provider answered with an error"],
  ["non-sse-200", 503, "answer was incomplete or invalid"],
  ["html-502", 503, "the provider answered with an error"],
] as const)("%s is %d for a caller, whole and streamed", async (mode, status, words) => {
  for (const stream of [false, true]) {
    const response = await ask(mode, stream);
    expect(await response.text()).toContain(words);
    expect(response.status).toBe(status);
  }
});

test("a whole answer of broken JSON is none, and a broken event within a stream loses its words", async () => {
  expect((await ask("bad-json")).status).toBe(503);
  const text = await (await ask("bad-json", true)).text();
  expect(text).not.toContain('"content":"1 2 3 4 5 ');
});

test("the wait that the provider asks for is told", async () => {
  world.api.setFaultPlan([{ mode: "throttle-429", argument: 7_000, times: 9 }]);
  const response = await world.gateway.post("/v1/chat/completions", body);
  world.api.setFaultPlan([]);
  expect(response.status).toBe(503);
  expect(response.headers.get("retry-after")).toBe("7");
});

test.each([
  "no-done",
  "comments",
  "crlf-framing",
  "dribble",
  "random-splits",
  "usage-twice",
] as const)("a stream with %s is read", async (mode) => {
  const text = await (await ask(mode, true)).text();
  const words = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, word]) => word).join("");
  expect(words).toEndWith(" 39 40");
  expect(text).toEndWith("data: [DONE]\n\n");
});

test.each(["missing-finish-reason", "error-event-mid-stream", "cut-mid-chunk", "reset"] as const)(
  "a stream with %s does not look whole",
  async (mode) => {
    const response = await ask(mode, true);
    const text = await response.text().catch(() => "");
    expect(text).not.toContain('"finish_reason":"stop"');
    expect(text).not.toContain("[DONE]");
  },
);
