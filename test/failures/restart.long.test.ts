import { afterEach, beforeEach, expect, test } from "bun:test";
import { appendFileSync, cpSync } from "node:fs";
import { join } from "node:path";
import { ProcessBench, until, untilStored } from "../support/ledger-truth-process.ts";
import { isComplete, sizeOf } from "../support/requirement.ts";
import { runSluice, startServing, type ServingProcess } from "../support/sluice-process.ts";

const restarts = sizeOf({ quick: 3, all: 200, measured: 200 });
/** In a whole run. */
const mostConnections = 12_000;
const callers = 8;
const streams = 4;

let bench: ProcessBench;
let serving: ServingProcess;
beforeEach(async () => {
  bench = await ProcessBench.create({
    keys: 1,
    // Each process that still drains keeps half of what was left of the limits.
    plan: { plan: "enterprise", limits: { requestsPerMinute: 1e9, tokensPerMinute: 1e12 } },
    simulator: { tokensPerSecond: 20 },
    sections: { http: "{ idle_timeout: 2s }" },
  });
  serving = await bench.serve();
});
afterEach(async () => {
  await serving[Symbol.asyncDispose]();
  await bench[Symbol.asyncDispose]();
});

/** What callers got while the gateway was restarted. */
class Load {
  readonly ids: (string | null)[] = [];
  readonly failures: string[] = [];
  connections = 0;
  cut = 0;
  adminMs = 0;
  isOver = false;

  /** Calls one after the other, each on a connection of its own. */
  async callAnew(): Promise<void> {
    while (!this.isOver && this.connections < mostConnections) {
      this.connections += 1;
      await this.#call({ keepalive: false });
      // Spreads the connections over all restarts.
      await Bun.sleep((restarts * callers * 2_500) / mostConnections - 5);
    }
  }

  /** Calls one after the other, on connections that are kept. */
  async callOnKept(): Promise<void> {
    while (!this.isOver) {
      await this.#call({ keepalive: true });
      await Bun.sleep(20);
    }
  }

  /** Streams one after the other, each longer than a restart of a process. */
  async stream(): Promise<void> {
    while (!this.isOver) {
      const text = await this.#call({ keepalive: true, tokens: 60 });
      if (text !== undefined && !text.includes("[DONE]")) this.cut += 1;
    }
  }

  /** Asks the administration, one request after the other. */
  async administer(): Promise<void> {
    while (!this.isOver) {
      const before = performance.now();
      try {
        await (await fetch(`${serving.adminUrl}/healthz`, { keepalive: false })).text();
      } catch (error) {
        this.failures.push(`admin: ${String(error)}`);
      }
      this.adminMs = Math.max(this.adminMs, performance.now() - before);
      await Bun.sleep(50);
    }
  }

  async #call({ keepalive, tokens }: { readonly keepalive: boolean; readonly tokens?: number }) {
    const stream = tokens !== undefined;
    const messages = [{ role: "user", content: `count: ${tokens ?? 1}` }];
    const body = { model: "chat-openai", messages, stream };
    try {
      const path = "/v1/chat/completions";
      const response = await bench.fetch(serving, { path, body }, {}, { keepalive });
      this.ids.push(response.headers.get("x-request-id"));
      const text = await response.text();
      if (response.status !== 200) this.failures.push(`${response.status}: ${text}`);
      return text;
    } catch (error) {
      this.failures.push(String(error));
      return undefined;
    }
  }
}

test(
  "restarts under load refuse and reset no connection, cut no stream and lose no row",
  async () => {
    const load = new Load();
    const running = [
      ...Array.from({ length: callers }, () => load.callAnew()),
      ...Array.from({ length: 2 }, () => load.callOnKept()),
      ...Array.from({ length: streams }, () => load.stream()),
      load.administer(),
    ];
    await until("calls end", () => load.ids.length > 50);
    for (let count = 0; count < restarts; count += 1) {
      const before = [serving.processPid];
      const { exitCode, errors } = await runSluice(["restart", "--config", bench.configPath]);
      expect([exitCode, errors]).toEqual([0, "restarted\n"]);
      expect(before).not.toContain(serving.processPid);
    }
    load.isOver = true;
    await Promise.all(running);
    const { ids, connections, adminMs } = load;
    process.stdout.write(
      `${restarts} restarts, ${connections} new connections, ${ids.length} calls; ` +
        `the administration answered within ${Math.round(adminMs)} ms\n`,
    );
    expect([load.failures, load.cut]).toEqual([[], 0]);
    await untilStored(serving);
    serving.signal("SIGINT");
    expect(await serving.exited).toBe(0);
    const stored = (await bench.stored()).rows.map(({ id }) => id);
    expect(stored.toSorted()).toEqual(ids.map(String).toSorted());
    expect(serving.text()).not.toMatch(/crashed|keys cannot be read/);
  },
  isComplete ? 3_600_000 : 120_000,
);

test("SIGHUP reads the configuration again", async () => {
  const before = serving.processPid;
  appendFileSync(bench.configPath, "# changed\n");
  serving.signal("SIGHUP");
  await until("it has read the file", () => serving.text().includes("configuration"));
  expect(serving.processPid).toBe(before);
});

test("new processes that do not start change nothing", async () => {
  const before = [serving.processPid];
  const good = join(bench.folder, "good.yaml");
  cpSync(bench.configPath, good);
  await Bun.write(bench.configPath, "upstreams: nothing\n");
  const elsewhere = await runSluice(["restart", "--config", bench.configPath]);
  expect(elsewhere.exitCode).toBe(1);
  expect(elsewhere.errors).toContain("name its --data-dir");
  const { exitCode, errors } = await runSluice(["restart", "--config", good]);
  expect(exitCode).toBe(1);
  expect(errors).toContain("not restarted: the new process ended before it served");
  expect([serving.processPid]).toEqual(before);
  expect((await fetch(`${serving.dataUrl}/readyz`)).status).toBe(200);
});

test("where no gateway runs, or a demo, a restart says so", async () => {
  const nobody = await runSluice(["restart", "--data-dir", join(bench.folder, "nobody")]);
  expect(nobody.exitCode).toBe(1);
  expect(nobody.errors).toContain("no gateway");
  const demoOptions = ["--data-dir", join(bench.folder, "demo")];
  const anyPort = ["--data", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
  await using demo = await startServing([...demoOptions, ...anyPort]);
  const { exitCode, errors } = await runSluice(["restart", ...demoOptions]);
  expect(exitCode).toBe(1);
  expect(errors).toContain("simulated provider is in its process");
  expect((await fetch(`${demo.dataUrl}/readyz`)).status).toBe(200);
});
