import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { errorOf } from "../support/bodies.ts";
import { createKeyOf } from "../support/process-key.ts";
import { startServing, type ServingProcess } from "../support/sluice-process.ts";

let folder: string;
let simulator: Simulator;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-signal-"));
  simulator = startSimulator();
});
afterEach(async () => {
  await simulator[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

function configText(): string {
  return `
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
storage: { url: "sqlite:${folder}/sluice.db" }
data_dir: ${folder}
shutdown: { pre_stop: 0s, drain_timeout: 1s }
overload: { loop_delay: 10s }
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams: { simulator: { kind: openai, base_url: "${simulator.url}" } }
models:
  chat-model:
    kind: chat
    context_window: 200000
    targets: [{ upstream: simulator, model: m }]
`;
}

interface Serving extends AsyncDisposable {
  readonly process: ServingProcess;
  readonly path: string;
  post(content: string): Promise<Response>;
}

async function serve(): Promise<Serving> {
  const path = join(folder, "sluice.yaml");
  await Bun.write(path, configText());
  const key = await createKeyOf(path);
  const process = await startServing(["--config", path]);
  return {
    process,
    path,
    post: (content) =>
      fetch(`${process.dataUrl}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: "chat-model",
          stream: true,
          messages: [{ role: "user", content }],
        }),
      }),
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  };
}

test("SIGHUP applies a changed file and refuses an invalid one", async () => {
  await using serving = await serve();
  const { path, process } = serving;
  const until = async (text: string): Promise<void> => {
    while (!process.text().includes(text)) await Bun.sleep(5);
  };
  await Bun.write(path, `${readFileSync(path, "utf8")}\nnonsense: 1\n`);
  process.signal("SIGHUP");
  await until("configuration rejected");
  const stillServes = await serving.post("count: 1");
  expect(stillServes.status).toBe(200);
  await stillServes.text();
  await Bun.write(path, configText().replace("chat-model", "renamed-model"));
  process.signal("SIGHUP");
  await until("configuration reloaded");
  // The main thread follows moments later.
  let answer = await serving.post("count: 1");
  for (; answer.ok; answer = await serving.post("count: 1")) await answer.text();
  expect((await errorOf(answer)).code).toBe("invalid_model");
});
