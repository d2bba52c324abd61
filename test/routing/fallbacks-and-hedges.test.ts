import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { chatOf, errorOf, streamOf } from "../support/bodies.ts";
import { simulatorUpstream, startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../support/ledger-truth-process.ts";

/** Fallbacks, hedges and deadlines of a model whose first target is slow or down, over HTTP. */

const words = "one two three four five six seven eight";
const chat = (model: string, fields: object = {}) => ({
  model,
  messages: [{ role: "user", content: `echo: ${words}` }],
  ...fields,
});

const modelOf = (alias: string, target: string, more = ""): string => `
  ${alias}:
    kind: chat
    context_window: 200000
    max_output_tokens: 4000
    targets: [${target}]${more}`;

let other: Simulator;
let gateway: TestGateway;
beforeAll(async () => {
  other = startSimulator();
  gateway = await startGateway();
  await gateway.reconfigure({
    upstreams: `
  simulator: ${simulatorUpstream(gateway.simulator, "openai")}
  other: ${simulatorUpstream(other, "openai")}
  patient: ${simulatorUpstream(other, "openai", "timeouts: { first_byte: 200ms }")}`,
    models: [
      modelOf("sound", "{ upstream: other, model: sound }"),
      modelOf("small", "{ upstream: other, model: small }").replace("200000", "4500"),
      modelOf("down", target("fault-error-500"), "\n    fallbacks: [sound]"),
      modelOf("down-too", target("fault-overloaded-503"), "\n    fallbacks: [down, sound]"),
      modelOf("down-alone", target("fault-error-500")),
      modelOf("down-with-small", target("fault-error-500"), "\n    fallbacks: [small]"),
      modelOf("refused", target("fault-bad-request-400"), "\n    fallbacks: [sound]"),
      modelOf(
        "hedged",
        `${target("fault-slow-first-byte-60000", 1)}, { upstream: other, model: swift, priority: 2 }`,
        "\n    hedge_after: 50ms",
      ),
      modelOf(
        "patient",
        "{ upstream: patient, model: fault-slow-first-byte-600 }",
        "\n    timeouts: { first_byte: 5s }",
      ),
      modelOf("slow", target("fault-slow-first-byte-60000")),
      modelOf("stalls", target("fault-stall-mid")),
    ].join(""),
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
});

function target(model: string, priority = 1): string {
  return `{ upstream: simulator, model: ${model}, priority: ${priority} }`;
}

async function rowOf(response: Response) {
  const id = response.headers.get("x-request-id");
  return (await gateway.usage()).find((row) => row.id === id);
}

describe("a model whose targets are down", () => {
  test("is replaced by its fallback, which the answer names", async () => {
    const response = await gateway.post("/v1/chat/completions", chat("down"));
    const { model, choices } = await chatOf(response);
    expect([model, choices[0]?.message.content]).toEqual(["sound", words]);
    expect(response.headers.get("x-sluice-target")).toBe("other; model=sound");
    const row = await rowOf(response);
    expect(row).toMatchObject({ model: "down", target: "other/sound", attempts: 2 });
    expect(row?.routing?.candidates.map(({ model: alias }) => alias)).toEqual(["down", "sound"]);
    expect(row?.routing?.attempts.map(({ outcome }) => outcome)).toEqual([
      "unavailable",
      "answered",
    ]);
  });

  test("is replaced in streams too, by the first fallback that answers", async () => {
    const response = await gateway.post("/v1/chat/completions", chat("down-too", { stream: true }));
    const { chunks, isDone } = await streamOf(response);
    expect([isDone, chunks[0]?.model]).toEqual([true, "sound"]);
    expect(await rowOf(response)).toMatchObject({ target: "other/sound", attempts: 3 });
  });

  test("has no fallback for a key that may not use it", async () => {
    const { text } = await gateway.createKey({ allowedModels: ["down"] });
    const headers = { authorization: `Bearer ${text}` };
    const response = await gateway.post("/v1/chat/completions", chat("down"), { headers });
    expect((await errorOf(response)).code).toBe("model_unavailable");
  });

  test("has no fallback whose window the request would not fit", async () => {
    const long = chat("down-with-small", {
      messages: [{ role: "user", content: "word ".repeat(60_000) }],
    });
    const response = await gateway.post("/v1/chat/completions", long);
    expect((await errorOf(response)).code).toBe("model_unavailable");
  });

  test("has none where the operator named none", async () => {
    const response = await gateway.post("/v1/chat/completions", chat("down-alone"));
    expect(response.status).toBe(503);
    expect(response.headers.get("x-sluice-target")).toBeNull();
  });

  test("has no fallback for a refused request", async () => {
    const before = other.truth.entries.length;
    const response = await gateway.post("/v1/chat/completions", chat("refused"));
    expect(response.status).toBe(400);
    expect(other.truth.entries.length).toBe(before);
  });
});

describe("a hedged call", () => {
  test("comes from the target that answers first, and the slow one is left", async () => {
    const response = await gateway.post("/v1/chat/completions", chat("hedged", { stream: true }));
    expect((await streamOf(response)).isDone).toBe(true);
    expect(response.headers.get("x-sluice-target")).toBe("other; model=hedged");
    const row = await rowOf(response);
    expect(row).toMatchObject({ target: "other/swift", attempts: 2, mayBeBilledTwice: true });
    expect(
      row?.routing?.attempts.map(({ outcome, mayBeBilled }) => [outcome, mayBeBilled]),
    ).toEqual([
      ["given-up", true],
      ["answered", false],
    ]);
    await until("the upstream is free", () => gateway.simulator.openCalls === 0);
  });

  test("is for whole answers too, and the call is billed once", async () => {
    const response = await gateway.post("/v1/chat/completions", chat("hedged"));
    const { choices, usage } = await chatOf(response);
    expect(choices[0]?.message.content).toBe(words);
    const row = await rowOf(response);
    expect(row).toMatchObject({ target: "other/swift", attempts: 2, mayBeBilledTwice: true });
    expect(row?.outputTokens).toBe(usage?.completion_tokens);
    await until("the upstream is free", () => gateway.simulator.openCalls === 0);
  });
});

describe("a caller's own deadline", () => {
  test("ends a call that has no answer yet, and gives its reservation back", async () => {
    const limits = { requestsPerMinute: 10, tokensPerMinute: 10_000 };
    const { text } = await gateway.createKey({ limits });
    const headers = { authorization: `Bearer ${text}` };
    const timed = { headers: { ...headers, "x-sluice-timeout-ms": "100" } };
    const response = await gateway.post("/v1/chat/completions", chat("slow"), timed);
    expect([response.status, response.headers.get("x-should-retry")]).toEqual([408, "false"]);
    expect((await errorOf(response)).code).toBe("deadline_exceeded");
    expect(await rowOf(response)).toMatchObject({ outcome: "failed", code: "deadline_exceeded" });
    const next = await gateway.post("/v1/chat/completions", chat("sound", { max_tokens: 8 }), {
      headers,
    });
    await next.text();
    expect(Number(next.headers.get("x-ratelimit-remaining-tokens"))).toBeGreaterThan(9_900);
    await until("the upstream is free", () => gateway.simulator.openCalls === 0);
  });

  test("ends a stream with an error frame, and what was delivered is billed", async () => {
    const response = await gateway.post("/v1/chat/completions", chat("stalls", { stream: true }), {
      headers: { "x-sluice-timeout-ms": "300" },
    });
    const { chunks, isDone } = await streamOf(response);
    expect([isDone, chunks.at(-1)?.error?.code]).toEqual([false, "deadline_exceeded"]);
    const row = await rowOf(response);
    expect([row?.outcome, (row?.outputTokens ?? 0) > 0]).toEqual(["failed", true]);
    await until("the upstream is free", () => gateway.simulator.openCalls === 0);
  });

  test.each(["0", "-1", "soon", "1.5", "86400001"])("cannot be %s", async (written) => {
    const response = await gateway.post("/v1/chat/completions", chat("sound"), {
      headers: { "x-sluice-timeout-ms": written },
    });
    const { code, param } = await errorOf(response);
    expect([response.status, code, param]).toEqual([400, "invalid_value", "x-sluice-timeout-ms"]);
  });
});

test("a model may take longer to begin than its upstream's time", async () => {
  const response = await gateway.post("/v1/chat/completions", chat("patient"));
  expect((await chatOf(response)).choices[0]?.message.content).toBe(words);
});

test("an unknown capacity is refused, and names the header", async () => {
  const response = await gateway.post("/v1/chat/completions", chat("sound"), {
    headers: { "x-sluice-capacity": "all" },
  });
  const { code, param, message } = await errorOf(response);
  expect([response.status, code, param]).toEqual([400, "invalid_value", "x-sluice-capacity"]);
  expect(message).toContain("provisioned-only");
});

test("an operator may hide which target serves", async () => {
  await using quiet = await startGateway({ sections: { routing: "{ target_header: false }" } });
  const response = await quiet.post("/v1/chat/completions", chat("chat-model"));
  expect((await chatOf(response)).choices).toHaveLength(1);
  expect(response.headers.get("x-sluice-target")).toBeNull();
  expect(response.headers.get("x-sluice-served-by")).toBe("on-demand");
});
