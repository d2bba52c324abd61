import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { ProcessBench, until } from "../support/ledger-truth-process.ts";
import { childrenOf, type ServingProcess } from "../support/sluice-process.ts";

let bench: ProcessBench;
afterEach(() => bench[Symbol.asyncDispose]());

async function isServing({ dataUrl }: ServingProcess): Promise<boolean> {
  return (await fetch(`${dataUrl}/readyz`).catch(() => undefined))?.status === 200;
}

/** The worker and the standby, once both run. */
async function pairOf({ pid }: ServingProcess): Promise<readonly [number, number]> {
  await until("there is a standby", () => childrenOf(pid).length === 2);
  const [worker = 0, standby = 0] = childrenOf(pid);
  return [worker, standby];
}

/** Whether it has loaded the program and is idle. */
function hasSettled(pid: number): () => Promise<boolean> {
  const used = (): string =>
    readFileSync(`/proc/${pid}/stat`, "utf8").split(" ").slice(13, 15).join();
  return async () => {
    const before = used();
    await Bun.sleep(500);
    return before === used();
  };
}

describe("a gateway with a standby", () => {
  let serving: ServingProcess;
  beforeEach(async () => {
    bench = await ProcessBench.create({ keys: 1 });
    serving = await bench.serve();
  });
  afterEach(() => serving[Symbol.asyncDispose]());

  test("replaces a worker that ends by the standby, with the current configuration", async () => {
    const [worker, standby] = await pairOf(serving);
    await until("it has settled", hasSettled(standby));
    const text = await Bun.file(bench.configPath).text();
    await Bun.write(bench.configPath, `${text}\ntelemetry: { log_format: json }\n`);
    expect(serving.text()).not.toContain('"message":"listening"');
    process.kill(worker, "SIGKILL");
    await until("it serves", () => serving.text().includes('"message":"listening"'));
    await until("it is ready", () => isServing(serving));
    expect(childrenOf(serving.pid)[0]).toBe(standby);
    const [, next] = await pairOf(serving);
    expect([worker, standby]).not.toContain(next);
    serving.signal("SIGINT");
    expect(await serving.exited).toBe(0);
    expect(existsSync(`/proc/${next}`)).toBe(false);
  });

  test("lets the standby open neither the gateway's files nor ports before it is needed", async () => {
    const [worker, standby] = await pairOf(serving);
    await until("it has settled", hasSettled(standby));
    expect(openFiles(worker).some((path) => path.startsWith(bench.folder))).toBe(true);
    expect(openFiles(standby).filter((path) => path.startsWith(bench.folder))).toEqual([]);
    const listening = new Set(listeningSockets());
    expect(openFiles(worker).some((path) => listening.has(path))).toBe(true);
    expect(openFiles(standby).filter((path) => listening.has(path))).toEqual([]);
  });

  test("replaces a standby that ends, and logs it once", async () => {
    const [worker, standby] = await pairOf(serving);
    process.kill(standby, "SIGKILL");
    await until("another waits", () => {
      const [first, second = standby] = childrenOf(serving.pid);
      return first === worker && second !== standby;
    });
    expect(serving.text().split("there is no standby worker for now")).toHaveLength(2);
    expect(serving.text()).not.toContain("crashed");
    expect(await isServing(serving)).toBe(true);
  });

  test("ends its standby when it is killed", async () => {
    const pids = await pairOf(serving);
    serving.signal("SIGKILL");
    await until("both are gone", () => pids.every((pid) => !existsSync(`/proc/${pid}`)));
  });

  test("starts a new worker if there is no standby yet", async () => {
    const [worker, standby] = await pairOf(serving);
    process.kill(standby, "SIGKILL");
    process.kill(worker, "SIGKILL");
    await until("another serves", async () => {
      const [first = worker] = childrenOf(serving.pid);
      return first !== worker && (await isServing(serving));
    });
  });
});

test("a gateway without a standby, by configuration, recovers too", async () => {
  bench = await ProcessBench.create({ keys: 1, sections: { supervisor: "{ standby: false }" } });
  await using serving = await bench.serve();
  const [worker = 0] = childrenOf(serving.pid);
  // Several times the duration with a standby.
  await Bun.sleep(2_000);
  expect(childrenOf(serving.pid)).toEqual([worker]);
  process.kill(worker, "SIGKILL");
  await until("another serves", async () => {
    const [first = worker] = childrenOf(serving.pid);
    return first !== worker && (await isServing(serving));
  });
});

function openFiles(pid: number): readonly string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${name}`)];
    } catch {
      return [];
    }
  });
}

/** The names in the links of open files. */
function listeningSockets(): readonly string[] {
  const rows = readFileSync("/proc/net/tcp", "utf8").trim().split("\n").slice(1);
  const cells = rows.map((row) => row.trim().split(/\s+/));
  return cells.flatMap(([, , , state, , , , , , inode]) => {
    return state === "0A" ? [`socket:[${inode}]`] : [];
  });
}
