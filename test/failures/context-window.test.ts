import { describe, expect, test } from "bun:test";
import { errorOf } from "../support/bodies.ts";
import { bedrockUpstream, startGateway, type TestGateway } from "../support/gateway.ts";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";

const smallPlan = {
  plan: "enterprise",
  limits: { requestsPerMinute: 100, tokensPerMinute: 1_000 },
};

const chat = (content: unknown) => ({
  model: "chat-model",
  max_tokens: 5,
  messages: [{ role: "user", content }],
});

const openAiModels = `
  chat-model:
    kind: chat
    context_window: 8000
    targets: [{ upstream: simulator, model: simulated-chat }]
  vectors:
    kind: embedding
    context_window: 8000
    targets: [{ upstream: simulator, model: simulated-embedding }]`;

async function refusalOf(gateway: TestGateway, path: string, body: object) {
  const response = await gateway.post(path, body);
  const { code, message, param } = await errorOf(response);
  return { status: response.status, code, message, param };
}

const tooLong = { status: 400, code: "context_length_exceeded" };
const tooLarge = { status: 429, code: "rate_limit_exceeded" };

describe("without a count by the upstream", () => {
  test("an input that certainly exceeds the window is 400, even with a small plan", async () => {
    await using gateway = await startGateway({
      sections: { models: openAiModels },
      key: smallPlan,
    });
    const words = "word ".repeat(8_001);
    const parts = Array.from({ length: 9 }, () => ({ type: "text", text: "word ".repeat(1_000) }));
    for (const content of [words, parts]) {
      const refusal = await refusalOf(gateway, "/v1/chat/completions", chat(content));
      expect(refusal).toMatchObject({ ...tooLong, param: "messages" });
      expect(refusal.message).toStartWith(
        "This model's maximum context length is 8000 tokens. However, your messages resulted in " +
          "at least ",
      );
    }
    for (const input of [words, ["short", words]]) {
      const refusal = await refusalOf(gateway, "/v1/embeddings", { model: "vectors", input });
      expect(refusal).toMatchObject({ ...tooLong, param: "input" });
    }
  });

  test("an input that may fit is too large for the plan, and answered with a larger plan", async () => {
    await using gateway = await startGateway({
      sections: { models: openAiModels },
      key: smallPlan,
    });
    // At 20 bytes a token this would be far over the window; runs of spaces are not.
    const spaces = `echo: ${" ".repeat(30_000)}hi`;
    const refusal = await refusalOf(gateway, "/v1/chat/completions", chat(spaces));
    expect(refusal).toMatchObject(tooLarge);
    expect(refusal.message).toContain("Request too large");
    const large = await gateway.createKey();
    const headers = { authorization: `Bearer ${large.text}` };
    const body = { model: "vectors", input: ["word ".repeat(5_000), "word ".repeat(5_000)] };
    for (const [path, sent] of [
      ["/v1/chat/completions", chat(spaces)],
      ["/v1/embeddings", body],
    ] as const) {
      const response = await gateway.post(path, sent, { headers });
      await response.text();
      expect(response.status).toBe(200);
    }
  });
});

describe("with a count by the upstream", () => {
  async function withCounting(
    use: (gateway: TestGateway, simulator: Simulator) => Promise<void>,
  ): Promise<void> {
    await using simulator = startSimulator();
    const upstream = bedrockUpstream(simulator.origin, "count_tokens: true");
    await using gateway = await startGateway({
      sections: {
        upstreams: `
  bedrock: ${upstream}`,
        models: `
  chat-model:
    kind: chat
    context_window: 2000
    targets: [{ upstream: bedrock, model: "us.anthropic.claude-sonnet-4-20250514-v1:0" }]`,
      },
      key: smallPlan,
    });
    await use(gateway, simulator);
  }

  test("an input that is longer than the window is 400 with the count", async () => {
    await withCounting(async (gateway, simulator) => {
      // A word is three tokens, so 1,000 words only seem to fit.
      const content = "internationality ".repeat(1_000);
      const refusal = await refusalOf(gateway, "/v1/chat/completions", chat(content));
      const [counted] = simulator.truth.entries;
      expect(counted?.kind).toBe("count-tokens");
      expect(refusal).toMatchObject(tooLong);
      expect(refusal.message).toContain(`resulted in ${counted?.promptTokens} tokens.`);
    });
  });

  test("an input that is shorter is only too large for the plan", async () => {
    await withCounting(async (gateway) => {
      const content = "internationality ".repeat(400);
      const refusal = await refusalOf(gateway, "/v1/chat/completions", chat(content));
      expect(refusal).toMatchObject(tooLarge);
      expect(refusal.message).toContain("Request too large");
    });
  });
});
