import { afterAll, beforeAll, expect, test } from "bun:test";
import { errorOf } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { openUnreachablePort, type UnreachablePort } from "../support/unreachable-port.ts";

let gateway: TestGateway;
let unreachable: UnreachablePort;
beforeAll(async () => {
  unreachable = await openUnreachablePort();
  gateway = await startGateway();
  await gateway.reconfigure({
    upstreams: `
  sound: { kind: openai, base_url: "${gateway.simulator.url}" }
  gone:
    kind: openai
    base_url: "http://127.0.0.1:${unreachable.port}/v1"
    timeouts: { connect: 200ms, first_byte: 1m, idle: 1m, total: 2m }
  gone-slowly:
    kind: openai
    base_url: "http://127.0.0.1:${unreachable.port}/v1"
    timeouts: { connect: 2s, first_byte: 1m, idle: 1m, total: 2m }`,
    models: `
  only-gone:
    kind: chat
    context_window: 200000
    targets: [{ upstream: gone, model: m }]
  gone-slowly-first:
    kind: chat
    context_window: 200000
    targets:
      - { upstream: gone-slowly, model: m, priority: 1 }
      - { upstream: sound, model: m, priority: 2 }
  gone-first:
    kind: chat
    context_window: 200000
    targets:
      - { upstream: gone, model: m, priority: 1 }
      - { upstream: sound, model: m, priority: 2 }`,
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await unreachable[Symbol.asyncDispose]();
});

const chat = (model: string, stream: boolean) =>
  gateway.post("/v1/chat/completions", {
    model,
    stream,
    messages: [{ role: "user", content: "echo: hi" }],
  });

for (const stream of [false, true]) {
  const kind = stream ? "stream" : "whole answer";

  test(`an unreachable host is abandoned after its connect timeout, not its first-byte timeout: ${kind}`, async () => {
    const response = await chat("only-gone", stream);
    expect(response.status).toBe(503);
    expect((await errorOf(response)).message).toContain("could not be reached");
    const [row] = await gateway.usage();
    expect(row).toMatchObject({ outcome: "failed", status: 503, attempts: 3, inputTokens: 0 });
  });

  test(`the next target serves in its place: ${kind}`, async () => {
    const response = await chat("gone-first", stream);
    expect(response.status).toBe(200);
    expect(await response.text()).toContain("hi");
    const [row] = await gateway.usage();
    expect(row).toMatchObject({ outcome: "completed", attempts: 2, target: "sound/m" });
  });
}

test("timeouts.connect is one deadline for the attempt, not one for each try", async () => {
  const response = await chat("gone-slowly-first", false);
  expect(response.status).toBe(200);
  const [row] = await gateway.usage();
  const [attempt] = row?.routing?.attempts ?? [];
  expect(attempt?.outcome).toBe("connect-failed");
  expect(attempt?.durationMs).toBeGreaterThanOrEqual(1_999);
  expect(attempt?.durationMs).toBeLessThan(3_500);
});
