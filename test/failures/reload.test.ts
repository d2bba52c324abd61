import { expect, test } from "bun:test";
import { errorOf, streamOf } from "../support/bodies.ts";
import { startGateway } from "../support/gateway.ts";

const models = (alias: string) => `
  ${alias}:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ upstream: simulator, model: m }]`;

const chat = (model: string, content: string) => ({
  model,
  stream: true,
  messages: [{ role: "user", content }],
});

test("a running call keeps its configuration; the next one has the new one", async () => {
  await using gateway = await startGateway({
    simulator: { tokensPerSecond: 200 },
    sections: { models: models("old-name") },
  });
  const running = await gateway.post("/v1/chat/completions", chat("old-name", "count: 40"));
  await gateway.reconfigure({ models: models("new-name") });
  const gone = await gateway.post("/v1/chat/completions", chat("old-name", "count: 1"));
  expect((await errorOf(gone)).code).toBe("invalid_model");
  const renamed = await gateway.post("/v1/chat/completions", chat("new-name", "echo: hi"));
  expect((await streamOf(renamed)).isDone).toBe(true);
  const { chunks, isDone } = await streamOf(running);
  expect(isDone).toBe(true);
  expect(chunks.every(({ model }) => model === "old-name")).toBe(true);
});

test("a changed plan applies to the next call of its keys", async () => {
  await using gateway = await startGateway({ key: { plan: "pilot", limits: undefined } });
  const limitOf = async (): Promise<string | null> => {
    const response = await gateway.post("/v1/chat/completions", chat("chat-model", "echo: hi"));
    await response.text();
    return response.headers.get("x-ratelimit-limit-requests");
  };
  expect(await limitOf()).toBe("60");
  await gateway.reconfigure({
    plans: "{ pilot: { requests_per_minute: 7, tokens_per_minute: 9000 } }",
  });
  expect(await limitOf()).toBe("7");
});

test("changed limits of bodies and headers apply to the next request", async () => {
  await using gateway = await startGateway();
  const long = chat("chat-model", `echo: ${"x".repeat(3_000)}`);
  const statusOf = async (): Promise<number> => {
    const response = await gateway.post("/v1/chat/completions", long);
    await response.text();
    return response.status;
  };
  expect(await statusOf()).toBe(200);
  await gateway.reconfigure({ http: "{ body_limit: 1KiB }" });
  expect(await statusOf()).toBe(413);
});

test("calls that run while the configuration changes still count against max_in_flight", async () => {
  const upstreamsOf = (url: string): string => `
  simulator: { kind: openai, base_url: ${JSON.stringify(url)}, max_in_flight: 2 }`;
  await using other = await startGateway({ simulator: { tokensPerSecond: 50 } });
  const upstreams = upstreamsOf(other.simulator.url);
  await using gateway = await startGateway({ sections: { upstreams } });
  const send = (): Promise<Response> =>
    gateway.post("/v1/chat/completions", chat("chat-model", "count: 30"));
  const running = await Promise.all([send(), send()]);
  await gateway.reconfigure({ http: "{ json_depth: 10 }" });
  const refused = await send();
  expect([refused.status, (await errorOf(refused)).code]).toEqual([503, "model_unavailable"]);
  await Promise.all(running.map((response) => response.text()));
  const admitted = await send();
  expect((await streamOf(admitted)).isDone).toBe(true);
});
