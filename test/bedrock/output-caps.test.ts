import { afterEach, beforeEach, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const target = (model: string, more = ""): string =>
  `{ upstream: simulator, model: ${model}${more} }`;
const llama = "us.meta.llama3-3-70b-instruct-v1:0";
const opus = "us.anthropic.claude-opus-4-6-v1";
const stated = ", bedrock: { capabilities: { max_output_tokens: 4096 } }";

const lowered = ", bedrock: { drop_unsupported: true, capabilities: { max_output_tokens: 4096 } }";

const chat = (alias: string, targets: readonly string[]): string => `
  ${alias}:
    kind: chat
    context_window: 1000000
    max_output_tokens: 128000
    targets: [${targets.join(", ")}]`;

const sections = {
  models:
    chat("long", [target(opus)]) +
    chat("short", [target(llama)]) +
    chat("stated", [target(llama, stated)]) +
    chat("lowered", [target(llama, lowered)]) +
    chat("untold", [target(llama, ", priority: 1"), target(opus, ", priority: 2")]) +
    chat("either", [target(llama, `${stated}, priority: 1`), target(opus, ", priority: 2")]),
  plans: `
  guessed: { requests_per_minute: 1000, tokens_per_minute: 1000000, uncapped: cap }`,
  limits: "{ default_output_tokens: 8000 }",
};

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await startGateway({ kind: "bedrock", sections });
});
afterEach(() => gateway[Symbol.asyncDispose]());

const ask = (model: string, caps: object, init = {}): Promise<Response> =>
  gateway.post(
    "/v1/chat/completions",
    { model, messages: [{ role: "user", content: "echo: hi" }], ...caps },
    init,
  );

test("a cap of 128000 reaches a model that writes as much", async () => {
  expect((await ask("long", { max_completion_tokens: 128_000 })).status).toBe(200);
});

test("a cap above the alias' is refused in OpenAI's words", async () => {
  const response = await ask("long", { max_tokens: 128_001 });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({
    error: { param: "max_tokens", message: expect.stringContaining("at most 128000 completion") },
  });
});

test("a cap that only the provider knows to be too large is its 400, with its limit", async () => {
  const response = await ask("short", { max_tokens: 100_000 });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("exceeds the model limit of 4096");
});

test("a cap above what the operator says of the model is refused before it is sent", async () => {
  const response = await ask("stated", { max_completion_tokens: 5000 });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({
    error: { param: "max_completion_tokens", code: "unsupported_parameter" },
  });
  expect(gateway.simulator.truth.entries).toEqual([]);
});

test("another target takes a cap that is too large for the first, whoever says so", async () => {
  expect((await ask("either", { max_completion_tokens: 5000 })).status).toBe(200);
  expect((await ask("untold", { max_completion_tokens: 5000 })).status).toBe(200);
});

test("a cap that the operator lets be lowered is told in the header", async () => {
  const response = await ask("lowered", { max_completion_tokens: 5000 });
  expect(response.status).toBe(200);
  const header = response.headers.get("x-sluice-adjusted-parameters");
  expect(header).toBe("max_completion_tokens=4096");
});

test("the gateway's own cap is lowered to what the model takes", async () => {
  const { text } = await gateway.createKey({ plan: "guessed" });
  const headers = { authorization: `Bearer ${text}` };
  expect((await ask("short", {}, { headers })).status).toBe(200);
});

test("without any cap as much is asked for as the model writes", async () => {
  expect((await ask("short", {})).status).toBe(200);
  expect((await ask("long", {})).status).toBe(200);
});
