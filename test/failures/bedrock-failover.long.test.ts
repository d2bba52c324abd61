import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { chatOf, embeddingsOf, errorOf, streamOf } from "../support/bodies.ts";
import { simulatorUpstream, startGateway, type TestGateway } from "../support/gateway.ts";

/** Failover from the provider's own limits and identifiers to other targets. */

const provisioned = "arn:aws:bedrock:us-east-1:123456789012:provisioned-model/abcdefghijkl";
const unready = "arn:aws:bedrock:us-east-1:123456789012:provisioned-model/mnopqrstuvwx";
const foundation = "anthropic.claude-sonnet-4-20250514-v1:0";
const profile = `us.${foundation}`;
const cohere = "cohere.embed-multilingual-v3";

const claude = ", bedrock: { family: claude-4 }";
const target = (model: string, priority: number, facts = claude): string =>
  `{ upstream: bedrock, model: "${model}", priority: ${priority}${facts} }`;
const chatModel = (alias: string, ...targets: readonly string[]): string => `
  ${alias}:
    kind: chat
    context_window: 200000
    max_output_tokens: 4000
    targets: [${targets.join(", ")}]`;
const embeddingModel = (alias: string, model: string, facts = ""): string => `
  ${alias}:
    kind: embedding
    context_window: 8192
    targets: [${target(model, 1, facts)}]`;

const models = [
  chatModel("few-requests", target("simulated-few-requests", 1), target("simulated-ample", 2)),
  chatModel("few-tokens", target("simulated-few-tokens", 1), target("simulated-ample", 2)),
  chatModel("no-requests", target("simulated-none", 1), target("simulated-none-either", 2)),
  chatModel(
    "other-kind",
    target("simulated-none", 1),
    "{ upstream: openai, model: simulated-chat, priority: 2 }",
  ),
  chatModel("provisioned", target(provisioned, 1), target("simulated-on-demand", 2)),
  chatModel("only-provisioned", target(unready, 1)),
  chatModel("misused", target(foundation, 1, ""), target(profile, 2, "")),
  chatModel("only-misused", target(foundation, 1, "")),
  embeddingModel("titan", "amazon.titan-embed-text-v2:0"),
  embeddingModel("cohere", cohere),
].join("");

let gateway: TestGateway;
beforeAll(async () => {
  const quotas = {
    models: {
      "simulated-few-requests": { requestsPerMinute: 2 },
      "simulated-few-tokens": { tokensPerMinute: 900 },
      "simulated-none": { requestsPerMinute: 0 },
      "simulated-none-either": { requestsPerMinute: 0 },
      [provisioned]: { notReadyCalls: 2 },
      [unready]: { notReadyCalls: 1_000 },
    },
  };
  gateway = await startGateway({
    kind: "bedrock",
    simulator: { bedrock: { region: "us-east-1", quotas } },
  });
  await gateway.reconfigure({
    routing: "{ attempts: 2, retry_floor: 1000 }",
    models,
    upstreams: `
  bedrock: ${simulatorUpstream(gateway.simulator, "bedrock")}
  openai: ${simulatorUpstream(gateway.simulator, "openai")}`,
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

const chat = (model: string, fields: object = {}) => ({
  model,
  messages: [{ role: "user", content: "echo: one two three" }],
  ...fields,
});

async function rowOf(response: Response): Promise<UsageRecord | undefined> {
  const id = response.headers.get("x-request-id");
  return (await gateway.usage()).find((row) => row.id === id);
}

/** Makes calls in sequence, which must all be served; returns target and attempt of each. */
async function servedBy(model: string, calls: number, fields: object = {}) {
  const seen: (readonly [target: string | undefined, attempts: number | undefined])[] = [];
  for (let call = 0; call < calls; call += 1) {
    const isStreamed = call % 2 === 1;
    const body = chat(model, { ...fields, stream: isStreamed });
    const response = await gateway.post("/v1/chat/completions", body);
    expect(response.status).toBe(200);
    if (isStreamed) expect((await streamOf(response)).isDone).toBe(true);
    else expect((await chatOf(response)).choices[0]?.message.content).toBe("one two three");
    const row = await rowOf(response);
    expect(row).toMatchObject({ outcome: "completed", usageSource: "upstream", outputTokens: 3 });
    seen.push([row?.target, row?.attempts]);
  }
  return seen;
}

describe("a call that the provider throttles at one target", () => {
  test("is served by the next target once the first has no requests left", async () => {
    expect(await servedBy("few-requests", 5)).toEqual([
      ["bedrock/simulated-few-requests", 1],
      ["bedrock/simulated-few-requests", 1],
      ["bedrock/simulated-ample", 2],
      // A target that has throttled is out for a moment.
      ["bedrock/simulated-ample", 1],
      ["bedrock/simulated-ample", 1],
    ]);
  });

  test("is served by the next target if the first has too few tokens left", async () => {
    const [small] = await servedBy("few-tokens", 1, { max_tokens: 100 });
    expect(small).toEqual(["bedrock/simulated-few-tokens", 1]);
    const [large] = await servedBy("few-tokens", 1, { max_tokens: 2_000 });
    expect(large).toEqual(["bedrock/simulated-ample", 2]);
  });

  test("is served by a target of another kind too", async () => {
    const seen = await servedBy("other-kind", 2);
    expect(seen).toEqual([
      ["openai/simulated-chat", 2],
      ["openai/simulated-chat", 1],
    ]);
  });

  test("is unavailable, not rate limited, if every other target throttles too", async () => {
    for (const stream of [false, true]) {
      const response = await gateway.post("/v1/chat/completions", chat("no-requests", { stream }));
      const { code, message } = await errorOf(response);
      expect([response.status, code]).toEqual([503, "model_unavailable"]);
      expect(message).toContain("the provider is limiting requests");
      expect(response.headers.get("x-should-retry")).toBe("true");
      expect(await rowOf(response)).toMatchObject({ attempts: 2, inputTokens: 0 });
    }
  });
});

describe("provisioned throughput that is not ready", () => {
  test("is skipped for the target on demand, and probed until it is ready", async () => {
    const onDemand = "bedrock/simulated-on-demand";
    const oneSecond = 1_050;
    expect(await servedBy("provisioned", 2)).toEqual([
      [onDemand, 2],
      [onDemand, 1],
    ]);
    // The first probe meets it unready, the next ones bring it back.
    await Bun.sleep(oneSecond);
    expect(await servedBy("provisioned", 1)).toEqual([[onDemand, 1]]);
    await Bun.sleep(2 * oneSecond);
    expect(await servedBy("provisioned", 1)).toEqual([[onDemand, 1]]);
    await Bun.sleep(oneSecond);
    expect(await servedBy("provisioned", 1)).toEqual([[`bedrock/${provisioned}`, 1]]);
  });

  test("is unavailable for about a second if there is no other target", async () => {
    const response = await gateway.post("/v1/chat/completions", chat("only-provisioned"));
    expect((await errorOf(response)).message).toContain("the provider is overloaded");
    expect([response.status, response.headers.get("retry-after-ms")]).toEqual([503, "1000"]);
  });
});

describe("an identifier that the provider serves only through profiles", () => {
  const alarms = (from: number): readonly string[] =>
    gateway.log.slice(from).filter((line) => line.includes(`"level":"error"`));

  test("is skipped and logged at every call", async () => {
    const before = gateway.log.length;
    expect(await servedBy("misused", 2)).toEqual([
      [`bedrock/${profile}`, 2],
      [`bedrock/${profile}`, 2],
    ]);
    expect(alarms(before)).toHaveLength(2);
    for (const line of alarms(before)) {
      expect(JSON.parse(line)).toMatchObject({
        kind: "unknown-model",
        target: `bedrock/${foundation}`,
        code: "ValidationException",
      });
    }
  });

  test("is unavailable and not retryable if there is no other target", async () => {
    const response = await gateway.post("/v1/chat/completions", chat("only-misused"));
    expect((await errorOf(response)).message).toBe(
      "The model is unavailable: the provider does not know the model. Please contact the operator.",
    );
    expect([response.status, response.headers.get("x-should-retry")]).toEqual([503, "false"]);
  });
});

describe("embeddings of a hundred texts", () => {
  const input = Array.from({ length: 100 }, (_, index) => `the text with the number ${index}`);

  async function embed(model: string, texts: readonly string[]) {
    const body = { model, input: texts, encoding_format: "float" };
    const response = await gateway.post("/v1/embeddings", body);
    expect(response.status).toBe(200);
    const row = await rowOf(response);
    return { ...(await embeddingsOf(response)), row };
  }

  /** The statuses of later requests, and the tokens of the answered ones. */
  function requestsSince(before: number) {
    const entries = gateway.simulator.truth.entries.slice(before);
    const answered = entries.filter(({ status }) => status === 200);
    return {
      refused: entries.length - answered.length,
      answered: answered.length,
      promptTokens: answered.reduce((sum, { promptTokens }) => sum + promptTokens, 0),
    };
  }

  test.each([
    ["titan", 100, 3],
    ["cohere", 2, 1],
  ])(
    "by %s take %i requests, of which %i is refused at first",
    async (model, requests, throttled) => {
      const alone = await Promise.all(input.map((text) => embed(model, [text])));
      const before = gateway.simulator.truth.entries.length;
      gateway.simulator.setFaultPlan([
        { mode: "ok", times: model === "titan" ? 40 : 1 },
        { mode: "throttle-429-bare", times: throttled },
      ]);
      const { data, usage, row } = await embed(model, input);
      expect(data.map(({ index }) => index)).toEqual([...input.keys()]);
      // In their order, each the vector of its own text.
      expect(data.map(({ embedding }) => embedding)).toEqual(
        alone.map(({ data: [only] }) => only?.embedding ?? []),
      );
      expect(new Set(data.map(({ embedding }) => embedding.join())).size).toBe(100);
      const { promptTokens, ...counts } = requestsSince(before);
      expect(counts).toEqual({ refused: throttled, answered: requests });
      expect([usage.prompt_tokens, row?.inputTokens]).toEqual([promptTokens, promptTokens]);
      expect(row).toMatchObject({ attempts: 1, outcome: "completed", usageSource: "upstream" });
    },
  );
});
