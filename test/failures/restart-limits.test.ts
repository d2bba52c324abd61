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
    const response = await fetch(`${serving.dataUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "chat-model",
        max_tokens: 10,
        messages: [{ role: "user", content: "count: 1" }],
      }),
    });
    await response.text();
    answers.push(response.status);
  }
  return answers;
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
