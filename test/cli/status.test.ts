import { expect, test } from "bun:test";
import { makeProcessFolder } from "../failures/outage-process.ts";
import { until } from "../support/ledger-truth-process.ts";
import { startServing, type ServingProcess } from "../support/sluice-process.ts";
import { startValkey, valkeyProgram } from "../support/valkey-server.ts";
import { runHere } from "./run-here.ts";
import { createFolder, type JsonRecord, type SluiceFolder } from "./sluice-folder.ts";

const anyPort = ["--data", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

async function serve(folder: SluiceFolder, ...options: string[]): Promise<ServingProcess> {
  const gateway = await startServing(["--data-dir", folder.path, ...anyPort, ...options]);
  await until("the demo is introduced", async () =>
    gateway.text().includes("process.stdout.write"),
  );
  return gateway;
}

async function processesOf(folder: SluiceFolder): Promise<JsonRecord[]> {
  return (await folder.json("status"))["data"] as JsonRecord[];
}

/** Makes a call, and waits until the processes told of it. */
async function callOnce(folder: SluiceFolder, gateway: ServingProcess): Promise<void> {
  const [, key = ""] = /API key {2}(\S+)/.exec(gateway.text()) ?? [];
  const body = JSON.stringify({ model: "embed-text-v2", input: "text" });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const url = `${gateway.dataUrl}/v1/embeddings`;
  expect((await fetch(url, { method: "POST", headers, body })).status).toBe(200);
  await until("the call is counted", async () => {
    const processes = await processesOf(folder);
    return processes.some(({ calls, waiting_rows }) => calls === 1 && waiting_rows === 0);
  });
}

test("control and its worker are shown, also while the worker is started again", async () => {
  using folder = createFolder({ isOffline: false });
  await using gateway = await serve(folder);
  await callOnce(folder, gateway);
  const { workerPid, controlPid } = gateway;
  const [control, worker] = await processesOf(folder);
  expect(control).toMatchObject({ process: "control", ready: true, pid: controlPid, calls: null });
  expect(worker).toMatchObject({
    process: "worker",
    number: 1,
    ready: true,
    pid: workerPid,
    open_calls: 0,
    configured_at: control?.["configured_at"],
    keys_generation: control?.["keys_generation"],
  });
  expect(worker?.["resident_bytes"]).toBeGreaterThan(1_000_000);
  expect(worker?.["loop_delay_longest_ms"]).toBeGreaterThan(0);
  process.kill(workerPid, "SIGKILL");
  await until("another worker serves", async () => {
    const [, other] = await processesOf(folder);
    expect(other).toMatchObject({ process: "worker", number: 1 });
    return other?.["ready"] === true && other["pid"] !== workerPid;
  });
  const { output } = await folder.run("status");
  expect(output).toMatch(/^PROCESS +PID .*\ncontrol +\d+ .*\nworker 1 +\d+ +\d+ s +ready +0 +0 /);
});

test.skipIf(valkeyProgram === null)(
  "each of two workers is shown, the one that is not there as such",
  async () => {
    await using limits = await startValkey();
    const settings = `limits: { store: "${limits.url}" }`;
    await using folder = makeProcessFolder({ processes: 2, settings });
    await using gateway = await startServing(["--config", folder.configPath]);
    const read = async (): Promise<JsonRecord[]> => {
      const { output } = await runHere(["status", "--json", "--config", folder.configPath]);
      const { data } = JSON.parse(output) as { data: JsonRecord[] };
      expect(data.map(({ process, number }) => [process, number])).toEqual([
        ["control", null],
        ["worker", 1],
        ["worker", 2],
      ]);
      return data;
    };
    const untilReady = (what: string, except?: unknown): Promise<void> =>
      until(what, async () =>
        (await read()).every(({ ready, pid }) => ready === true && pid !== except),
      );
    await untilReady("both serve");
    const killed = (await read())[2]?.["pid"];
    process.kill(Number(killed), "SIGKILL");
    await until("it is missing", async () => (await read())[2]?.["pid"] !== killed);
    await untilReady("another one serves", killed);
    const page = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    const labels = [...page.matchAll(/^sluice_resident_memory_bytes\{(.*)\} [1-9]/gm)];
    expect(new Set(labels.map(([, label]) => label))).toEqual(
      new Set(['worker="1"', 'worker="2"', 'worker="control"']),
    );
  },
);

test("without a gateway there are no processes", async () => {
  using folder = createFolder({ isOffline: true });
  expect(await processesOf(folder)).toEqual([]);
  const { output, errors } = await folder.run("status");
  expect(`${output}${errors}`).toContain("Only a running gateway has processes.");
});

test("the last calls that failed by no fault of their callers are shown", async () => {
  using folder = createFolder({ isOffline: false });
  const path = await folder.write(
    "sluice.yaml",
    `data_dir: ${folder.path}
storage: { url: "sqlite:${folder.path}/sluice.db" }
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams: { away: { kind: openai, base_url: "http://127.0.0.1:9/v1" } }
models: { chat: { kind: chat, context_window: 900, targets: [{ upstream: away, model: m }] } }
`,
  );
  const config = ["--config", path];
  await using gateway = await startServing([...config, ...anyPort]);
  await folder.run("accounts", "create", "Shop", ...config);
  const place = ["--account", "Shop", "--environment", "production"];
  await folder.run("applications", "create", "search", ...place, ...config);
  const issue = ["keys", "create", "--application", "search", "--plan", "pilot"];
  const key = (await folder.run(...issue, ...config)).output.trim();
  const body = JSON.stringify({ model: "chat", messages: [{ role: "user", content: "hi" }] });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const url = `${gateway.dataUrl}/v1/chat/completions`;
  const failed = await fetch(url, { method: "POST", headers, body });
  expect(failed.status).toBe(503);
  const shown = async (): Promise<string> => (await folder.run("status", ...config)).output;
  const line = `503  chat  ${failed.headers.get("x-request-id")}\n`;
  await until("the call is stored", async () => (await shown()).includes(line));
  expect(await shown()).toMatch(/\nworker +1 .* ready +.* \d+\.\d+\.\d+\n/);
});
