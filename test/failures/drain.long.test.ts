import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Database } from "bun:sqlite";
import { startSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { errorOf, parseStream, streamOf } from "../support/bodies.ts";
import { createKeyOf } from "../support/process-key.ts";
import { startServing, type ServingProcess } from "../support/sluice-process.ts";

let folder: string;
let simulator: Simulator;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-drain-"));
  simulator = startSimulator({ tokensPerSecond: 20 });
});
afterEach(async () => {
  await simulator[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

function configText(drainTimeout: string, environmentName = "test"): string {
  return `
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
storage: { url: "sqlite:${folder}/sluice.db" }
data_dir: ${folder}
shutdown: { pre_stop: 0s, drain_timeout: ${drainTimeout} }
overload: { loop_delay: 10s }
environments: [{ name: ${environmentName}, hosts: ["*"], models: ["*"] }]
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

async function serve(drainTimeout: string): Promise<Serving> {
  const path = join(folder, "sluice.yaml");
  await Bun.write(path, configText(drainTimeout));
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

function rowsInLedger(): { outcome: string; output_tokens: number }[] {
  using database = new Database(join(folder, "sluice.db"), { readonly: true });
  return database
    .query<{ outcome: string; output_tokens: number }, []>(
      "SELECT outcome, output_tokens FROM usage",
    )
    .all();
}

test("SIGTERM lets open streams finish whole, refuses new work, and ends with 0", async () => {
  await using serving = await serve("30s");
  const responses = await Promise.all(Array.from({ length: 10 }, () => serving.post("count: 20")));
  const streams = responses.map(streamOf);
  serving.process.signal("SIGTERM");
  let ready: Response;
  do {
    ready = await fetch(`${serving.process.adminUrl}/readyz`);
    await Bun.sleep(5);
  } while (ready.status === 200);
  expect(ready.status).toBe(503);
  const refused = await serving.post("count: 1");
  expect(refused.status).toBe(503);
  expect((await errorOf(refused)).code).toBe("model_unavailable");
  for (const { chunks, isDone } of await Promise.all(streams)) {
    expect(isDone).toBe(true);
    const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
    expect(text).toEndWith("20");
  }
  expect(await serving.process.exited).toBe(0);
  expect(rowsInLedger().map(({ outcome }) => outcome)).toEqual(
    Array.from({ length: 10 }, () => "completed"),
  );
});

test("streams longer than the drain time end with an error that says why, and are accounted for", async () => {
  await using serving = await serve("1s");
  const response = await serving.post("count: 100000");
  const reading = response.text();
  serving.process.signal("SIGTERM");
  expect(await serving.process.exited).toBe(0);
  const { chunks, isDone } = parseStream(await reading);
  expect(isDone).toBe(false);
  expect(chunks.at(-1)?.error).toMatchObject({ type: "server_error", code: "model_unavailable" });
  expect(chunks.at(-1)?.error?.message).toContain("shutting down");
  const [row] = rowsInLedger();
  expect(row?.outcome).toBe("failed");
  expect(row?.output_tokens).toBeGreaterThan(0);
});

test("a second signal ends the process without waiting", async () => {
  await using serving = await serve("10m");
  const response = await serving.post("count: 100000");
  const reading = response.text().catch(() => "cut");
  serving.process.signal("SIGINT");
  while (!serving.process.text().includes("shutting down")) await Bun.sleep(5);
  await Bun.sleep(50);
  serving.process.signal("SIGINT");
  expect(await serving.process.exited).toBe(1);
  await reading;
});

test("SIGHUP takes over a changed file and refuses a bad one", async () => {
  await using serving = await serve("1s");
  const { path, process } = serving;
  const until = async (text: string): Promise<void> => {
    while (!process.text().includes(text)) await Bun.sleep(5);
  };
  await Bun.write(path, `${readFileSync(path, "utf8")}\nnonsense: 1\n`);
  process.signal("SIGHUP");
  await until("configuration refused");
  const stillServes = await serving.post("count: 1");
  expect(stillServes.status).toBe(200);
  await stillServes.text();
  await Bun.write(path, configText("1s").replace("chat-model", "renamed-model"));
  process.signal("SIGHUP");
  await until("configuration reloaded");
  expect((await errorOf(await serving.post("count: 1"))).code).toBe("invalid_model");
});
