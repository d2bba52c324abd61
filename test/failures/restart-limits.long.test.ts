import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { simulatorUpstream } from "../support/gateway.ts";
import { createKeyOf } from "../support/process-key.ts";
import { startServing, type ServingProcess } from "../support/sluice-process.ts";

const folder = mkdtempSync(join(tmpdir(), "sluice-restart-"));
const simulator = startSimulator();
afterAll(async () => {
  await simulator[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function statuses(serving: ServingProcess, key: string, count: number): Promise<number[]> {
  const answers: number[] = [];
  for (let index = 0; index < count; index += 1) {
    answers.push((await call(serving, key)).status);
  }
  return answers;
}

async function call(
  serving: ServingProcess,
  key: string,
  { content = "count: 1", tokens = 10 } = {},
): Promise<Response> {
  const response = await fetch(`${serving.dataUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "chat-model",
      max_tokens: tokens,
      messages: [{ role: "user", content }],
    }),
  });
  await response.text();
  return response;
}

test.each(["SIGTERM", "SIGKILL"] as const)(
  "a gateway that %p ended remembers what keys had of their minute",
  async (signal) => {
    const path = join(folder, `${signal}.yaml`);
    await Bun.write(
      path,
      `
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
storage: { url: "sqlite:${folder}/${signal}.db" }
data_dir: ${folder}/${signal}
shutdown: { pre_stop: 0s }
overload: { loop_delay: 10s }
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams: { simulator: ${simulatorUpstream(simulator, "openai")} }
models:
  chat-model:
    { kind: chat, context_window: 1000, targets: [{ upstream: simulator, model: simulated-chat }] }
plans: { small: { requests_per_minute: 8, tokens_per_minute: 100000 } }
`,
    );
    const key = await createKeyOf(path, { plan: "small", limits: undefined });
    const before = await startServing(["--config", path, "--unsupervised"]);
    expect(await statuses(before, key, 6)).toEqual([200, 200, 200, 200, 200, 200]);
    before.signal(signal);
    await before.exited;
    await using after = await startServing(["--config", path]);
    expect(await statuses(after, key, 4)).toEqual([200, 200, 429, 429]);
  },
);

test.each(["SIGTERM", "SIGKILL"] as const)(
  "a gateway that %p ended remembers what keys had of their guarantees, and charges it to no plan",
  async (signal) => {
    const path = join(folder, `guarantee-${signal}.yaml`);
    await Bun.write(
      path,
      `
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
storage: { url: "sqlite:${folder}/guarantee-${signal}.db" }
data_dir: ${folder}/guarantee-${signal}
shutdown: { pre_stop: 0s }
overload: { loop_delay: 10s }
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams: { simulator: ${simulatorUpstream(simulator, "openai")} }
pools: { main: { tokens_per_minute: 100000, unit_tokens_per_minute: 20 } }
models:
  chat-model:
    kind: chat
    context_window: 200
    targets: [{ upstream: simulator, model: simulated-chat, pool: main }]
plans: { small: { requests_per_minute: 3, tokens_per_minute: 100000, provisioned: true } }
`,
    );
    const units = { provisionedUnits: 1, provisionedPool: "main" };
    const key = await createKeyOf(path, { plan: "small", limits: undefined, ...units });
    // Ten minutes of a guarantee have room for one of these calls.
    const content = "count: 120";
    const classes = async (serving: ServingProcess, count: number): Promise<string[]> => {
      const told: string[] = [];
      for (let index = 0; index < count; index += 1) {
        const response = await call(serving, key, { content, tokens: 150 });
        told.push(response.headers.get("x-sluice-served-by") ?? String(response.status));
      }
      return told;
    };
    const before = await startServing(["--config", path, "--unsupervised"]);
    expect(await classes(before, 1)).toEqual(["provisioned"]);
    before.signal(signal);
    await before.exited;
    await using after = await startServing(["--config", path]);
    const spillover = ["spillover", "spillover", "spillover"];
    expect(await classes(after, 4)).toEqual([...spillover, "429"]);
  },
);
