import { expect, test } from "bun:test";
import { errorOf } from "../support/bodies.ts";
import { bedrockUpstream, startGateway, type TestGateway } from "../support/gateway.ts";
import { bedrockGatewayOf, converse } from "../provider/bedrock-provider.ts";
import { startProvider } from "../provider/provider.ts";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";

/** Words with far fewer tokens than their length suggests. */
const content = `echo: ${"a".repeat(40)} ${"international ".repeat(300)}`;
const request = {
  model: "chat-model",
  max_tokens: 10,
  messages: [{ role: "user", content }],
};

async function withGateway(
  settings: string,
  use: (gateway: TestGateway, counts: () => number, simulator: Simulator) => Promise<void>,
): Promise<void> {
  await using simulator = startSimulator();
  const upstream = bedrockUpstream(simulator.origin, settings);
  await using gateway = await startGateway({
    sections: {
      upstreams: `
  bedrock: ${upstream}`,
      models: `
  chat-model:
    kind: chat
    context_window: 200000
    targets: [{ upstream: bedrock, model: "us.anthropic.claude-sonnet-4-20250514-v1:0" }]`,
    },
    key: { plan: "enterprise", limits: { requestsPerMinute: 10, tokensPerMinute: 1_000 } },
  });
  const counts = (): number =>
    simulator.truth.entries.filter(({ kind }) => kind === "count-tokens").length;
  await use(gateway, counts, simulator);
}

test("an input that only seems larger than the limit is counted and answered", async () => {
  await withGateway("count_tokens: true", async (gateway, counts) => {
    const response = await gateway.post("/v1/chat/completions", request);
    expect(response.status).toBe(200);
    expect(counts()).toBe(1);
    const [row] = await gateway.usage();
    expect(row?.inputTokens).toBeLessThan(1_000);
    expect(row).toMatchObject({ attempts: 1, outcome: "completed" });
  });
});

test("an input that is larger than the limit is counted and refused", async () => {
  await withGateway("count_tokens: true", async (gateway, counts) => {
    const messages = [{ role: "user", content: "one two three four five ".repeat(1_000) }];
    const response = await gateway.post("/v1/chat/completions", { ...request, messages });
    expect(response.status).toBe(429);
    const { message } = await errorOf(response);
    expect(message).toContain("Request too large");
    expect(message).not.toContain("estimated");
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(counts()).toBe(1);
  });
});

test("an input that fits is never counted", async () => {
  await withGateway("count_tokens: true", async (gateway, counts) => {
    const messages = [{ role: "user", content: "echo: Hi" }];
    const response = await gateway.post("/v1/chat/completions", { ...request, messages });
    expect(response.status).toBe(200);
    expect(counts()).toBe(0);
  });
});

test("nothing is counted unless the operator enables it", async () => {
  await withGateway("count_tokens: false", async (gateway, counts) => {
    const response = await gateway.post("/v1/chat/completions", request);
    expect(response.status).toBe(429);
    expect(counts()).toBe(0);
  });
});

test("counting takes a request of the key's plan, even if it is refused", async () => {
  await withGateway("count_tokens: true", async (gateway, counts) => {
    const messages = [{ role: "user", content: "one two three four five ".repeat(1_000) }];
    const body = { ...request, messages };
    const codes: string[] = [];
    for (let call = 0; call < 15; call += 1) {
      const { message } = await errorOf(await gateway.post("/v1/chat/completions", body));
      codes.push(message.includes("requests per min") ? "requests" : "too large");
    }
    expect(counts()).toBe(10);
    expect(codes.filter((code) => code === "requests")).toHaveLength(5);
  });
});

test("a failed count is no failed attempt, and the model is not asked to count again", async () => {
  await withGateway("count_tokens: true", async (gateway, counts, simulator) => {
    simulator.setFaultPlan([{ mode: "error-500" }]);
    for (let call = 0; call < 3; call += 1) {
      const response = await gateway.post("/v1/chat/completions", request);
      expect(response.status).toBe(429);
      expect((await errorOf(response)).message).toContain("(estimated)");
    }
    expect(counts()).toBe(1);
    const log = gateway.log.join("");
    expect(log).toContain("an input could not be counted");
    expect(log).not.toContain("attempt failed");
    const messages = [{ role: "user", content: "echo: Hi" }];
    const response = await gateway.post("/v1/chat/completions", { ...request, messages });
    expect(response.status).toBe(200);
    const rows = await gateway.usage();
    expect(rows.filter(({ outcome }) => outcome === "completed")).toMatchObject([{ attempts: 1 }]);
    const refused = rows.filter(({ outcome }) => outcome !== "completed");
    expect(refused.map(({ attempts }) => attempts)).toEqual([0, 0, 0]);
  });
});

const exceptions = [
  {
    name: "AccessDeniedException",
    status: 403,
    message: "User: arn:aws:iam::1:user/u is not authorized to perform: bedrock:CountTokens",
    hint: "allow bedrock:CountTokens",
  },
  {
    name: "ValidationException",
    status: 400,
    message: "The provided model doesn't support counting tokens.",
    hint: "bedrock.capabilities.count_tokens: false",
  },
];

test.each(exceptions)("a count refused with $name has a hint of its own", async (exception) => {
  const { name, status, message, hint } = exception;
  await using provider = startProvider(({ path }) =>
    path.endsWith("/count-tokens")
      ? Response.json({ message }, { status, headers: { "x-amzn-errortype": name } })
      : converse({ text: "Hi" }),
  );
  await using gateway = await bedrockGatewayOf(provider, { upstream: "count_tokens: true" });
  const key = await gateway.createKey({
    plan: "enterprise",
    limits: { requestsPerMinute: 10, tokensPerMinute: 1_000 },
  });
  const headers = { authorization: `Bearer ${key.text}` };
  for (let call = 0; call < 3; call += 1) {
    const response = await gateway.post("/v1/chat/completions", request, { headers });
    const { message: said } = await errorOf(response);
    expect({ status: response.status, said }).toEqual({
      status: 429,
      said: expect.stringMatching(/Limit 1000, Requested \d+ \(estimated\)\. /) as string,
    });
    expect(said).not.toContain("arn:aws");
  }
  expect(provider.requests.map(({ path }) => path.split("/").at(-1))).toEqual(["count-tokens"]);
  const told = gateway.log.filter((line) => line.includes("an input could not be counted"));
  expect(told).toHaveLength(1);
  expect(told[0]).toContain(hint);
  expect((await gateway.post("/v1/chat/completions", request)).status).toBe(200);
});
