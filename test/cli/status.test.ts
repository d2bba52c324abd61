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

test("the process is shown, also while it is started again", async () => {
  using folder = createFolder({ isOffline: false });
  await using gateway = await serve(folder);
  await callOnce(folder, gateway);
  const { processPid } = gateway;
  const [process_, ...others] = await processesOf(folder);
  expect(process_).toMatchObject({
    process: 1,
    leads: true,
    ready: true,
    pid: processPid,
    open_calls: 0,
  });
  expect(others).toEqual([]);
  expect(process_?.["resident_bytes"]).toBeGreaterThan(1_000_000);
  expect(process_?.["loop_delay_longest_ms"]).toBeGreaterThan(0);
  process.kill(processPid, "SIGKILL");
  await until("another one serves", async () => {
    const [other] = await processesOf(folder).catch(() => []);
    return other?.["ready"] === true && other["pid"] !== processPid;
  });
  const { output } = await folder.run("status");
  expect(output).toMatch(/^PROCESS +PID .*\n +1 +\d+ +\d+ s +ready +0 +0 /);
});

test.skipIf(valkeyProgram === null)(
  "each of two processes is shown, and when the leader is killed the other one leads",
  async () => {
    await using limits = await startValkey();
    const settings = `limits: { store: "${limits.url}" }`;
    await using folder = makeProcessFolder({ processes: 2, settings });
    await using gateway = await startServing(["--config", folder.configPath]);
    const read = async (): Promise<JsonRecord[]> => {
      const args = ["status", "--json", "--config", folder.configPath];
      const { output, exitCode } = await runHere(args);
      if (exitCode !== 0) return [];
      return (JSON.parse(output) as { data: JsonRecord[] }).data;
    };
    const untilBothServe = (what: string): Promise<void> =>
      until(what, async () => {
        const found = await read();
        return found.length === 2 && found.every(({ ready }) => ready === true);
      });
    await untilBothServe("both serve");
    const leader = (await read()).find(({ leads }) => leads === true)?.["pid"];
    process.kill(Number(leader), "SIGKILL");
    await until("another one leads", async () =>
      (await read()).some(({ leads, pid }) => leads === true && pid !== leader),
    );
    await untilBothServe("both serve again");
    const page = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    const labels = [...page.matchAll(/^process_resident_memory_bytes\{(.*)\} [1-9]/gm)];
    expect(new Set(labels.map(([, label]) => label))).toEqual(
      new Set(['process="1"', 'process="2"']),
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
  const { output } = await folder.run("status", ...config);
  expect(output).toMatch(/\n +1 +.* ready +.* \d+\.\d+\.\d+\n/);
  expect(output).toContain(`503  chat  ${failed.headers.get("x-request-id")}\n`);
});
