import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { demoApiKey, startSimulator, type Simulator } from "../../simulator/simulator.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** The faults of servers, for each API that a target may choose. */
let provider: Simulator;
let gateway: TestGateway;

const targets = {
  "openai-by-responses": "{ upstream: local, model: m, openai: { api: responses } }",
  "bedrock-by-responses":
    "{ upstream: aws, model: openai.gpt-6-sol, bedrock: { api: openai-responses } }",
  "bedrock-by-chat": "{ upstream: aws, model: openai.gpt-6-sol, bedrock: { api: openai-chat } }",
  "bedrock-by-messages":
    "{ upstream: aws, model: us.anthropic.claude-sonnet-4-6, bedrock: { api: messages } }",
};

beforeAll(async () => {
  provider = startSimulator();
  const models = Object.entries(targets).map(
    ([alias, target]) => `
  ${alias}: { kind: chat, context_window: 1000000, targets: [${target}] }`,
  );
  gateway = await startGateway({
    sections: {
      upstreams: `
  local: { kind: openai, base_url: "${provider.origin}/v1" }
  aws: { kind: bedrock, region: us-east-1, endpoint: "${provider.origin}", api_key: "${demoApiKey}" }`,
      models: models.join(""),
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

type Mode = Parameters<Simulator["setFaultPlan"]>[0][number]["mode"];

describe.each(Object.keys(targets))("%s", (model) => {
  async function ask(mode: Mode, stream = false): Promise<Response> {
    provider.setFaultPlan([{ mode, times: Number.POSITIVE_INFINITY }]);
    const messages = [{ role: "user", content: "count: 40" }];
    const response = await gateway.post("/v1/chat/completions", { model, messages, stream });
    provider.setFaultPlan([]);
    return response;
  }

  test.each([
    ["throttle-429-bare", 503, "the provider is limiting requests"],
    ["overloaded-503", 503, "the provider is overloaded"],
    ["bad-credential", 503, "refused the gateway's credential"],
    ["model-not-found-404", 503, "does not know the model"],
    ["context-overflow", 400, "context_length_exceeded"],
    ["bad-request-400", 400, "temperature"],
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

  test("a whole answer of broken JSON is none, and a broken event loses its words", async () => {
    const whole = await ask("bad-json");
    expect(whole.status).toBe(503);
    await whole.text();
    const text = await (await ask("bad-json", true)).text();
    expect(text).not.toContain('"content":"1 2 3 4 5 ');
  });

  test.each(["comments", "crlf-framing", "dribble", "random-splits", "ok-no-usage"] as const)(
    "a stream with %s is read",
    async (mode) => {
      const text = await (await ask(mode, true)).text();
      const words = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, word]) => word).join("");
      expect(words).toEndWith(" 39 40");
      expect(text).toEndWith("data: [DONE]\n\n");
    },
  );

  test.each(["missing-finish-reason", "error-event-mid-stream", "cut-mid-chunk", "reset"] as const)(
    "a stream with %s does not look whole",
    async (mode) => {
      const response = await ask(mode, true);
      const text = await response.text().catch(() => "");
      expect(text).not.toContain('"finish_reason":"stop"');
      expect(text).not.toContain("[DONE]");
    },
  );
});
