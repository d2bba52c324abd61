import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { ProcessBench, until } from "../support/ledger-truth-process.ts";
import {
  childrenOf,
  standbysOf,
  workerOf,
  type ServingProcess,
} from "../support/sluice-process.ts";

let bench: ProcessBench;
afterEach(() => bench[Symbol.asyncDispose]());

async function isServing({ dataUrl }: ServingProcess): Promise<boolean> {
  return (await fetch(`${dataUrl}/readyz`).catch(() => undefined))?.status === 200;
}

/** The worker and the one that waits, once there are both. */
async function pairOf({ pid }: ServingProcess): Promise<readonly [number, number]> {
  let pair: readonly [number, number] | undefined;
  await until("there is a standby", () => {
    const worker = workerOf(pid);
    const [standby] = standbysOf(pid);
    pair = worker === undefined || standby === undefined ? undefined : [worker, standby];
    return pair !== undefined;
  });
  return pair ?? [0, 0];
}

/** Whether it has loaded the program and rests. */
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

  test.each(["worker", "control"] as const)(
    "has it take the place of a %s that ends",
    async (kind) => {
      const [worker, standby] = await pairOf(serving);
      await until("it has settled", hasSettled(standby));
      const pidOf = (): number => (kind === "worker" ? serving.workerPid : serving.controlPid);
      process.kill(pidOf(), "SIGKILL");
      await until("it has the role", () => pidOf() === standby);
      await until("it is ready", () => isServing(serving));
      expect(serving.workerPid).toBe(kind === "worker" ? standby : worker);
      const [, next] = await pairOf(serving);
      expect([worker, standby]).not.toContain(next);
      serving.signal("SIGINT");
      expect(await serving.exited).toBe(0);
      expect(existsSync(`/proc/${next}`)).toBe(false);
    },
  );

  test("has it open neither files of the gateway nor ports before it is needed", async () => {
    const [worker, standby] = await pairOf(serving);
    await until("it has settled", hasSettled(standby));
    expect(openFiles(worker).some((path) => path.startsWith(bench.folder))).toBe(true);
    expect(openFiles(standby).filter((path) => path.startsWith(bench.folder))).toEqual([]);
    const listening = new Set(listeningSockets());
    expect(openFiles(worker).some((path) => listening.has(path))).toBe(true);
    expect(openFiles(standby).filter((path) => listening.has(path))).toEqual([]);
  });

  test("has another when it ends while it waits, and says so once", async () => {
    const [worker, standby] = await pairOf(serving);
    process.kill(standby, "SIGKILL");
    await until("another waits", () => {
      const [next = standby] = standbysOf(serving.pid);
      return next !== standby;
    });
    expect(serving.workerPid).toBe(worker);
    expect(serving.text().split("no standby worker is available")).toHaveLength(2);
    expect(serving.text()).not.toContain("crashed");
    expect(await isServing(serving)).toBe(true);
  });

  test("takes it along when it is killed", async () => {
    const pids = await pairOf(serving);
    serving.signal("SIGKILL");
    await until("both are gone", () => pids.every((pid) => !existsSync(`/proc/${pid}`)));
  });

  test("starts a worker anew when none waits yet", async () => {
    const [worker, standby] = await pairOf(serving);
    process.kill(standby, "SIGKILL");
    process.kill(worker, "SIGKILL");
    await until("another serves", async () => {
      const now = workerOf(serving.pid) ?? worker;
      return now !== worker && (await isServing(serving));
    });
  });
});

test("a gateway has none where the configuration says so, and is mended all the same", async () => {
  bench = await ProcessBench.create({ keys: 1, sections: { supervisor: "{ standby: false }" } });
  await using serving = await bench.serve();
  const worker = serving.workerPid;
  // Several times what it takes where there is one.
  await Bun.sleep(2_000);
  expect(childrenOf(serving.pid)).toEqual([serving.controlPid, worker]);
  process.kill(worker, "SIGKILL");
  await until("another serves", async () => {
    const now = workerOf(serving.pid) ?? worker;
    return now !== worker && (await isServing(serving));
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

/** As links of open files name them. */
function listeningSockets(): readonly string[] {
  const rows = readFileSync("/proc/net/tcp", "utf8").trim().split("\n").slice(1);
  const cells = rows.map((row) => row.trim().split(/\s+/));
  return cells.flatMap(([, , , state, , , , , , inode]) => {
    return state === "0A" ? [`socket:[${inode}]`] : [];
  });
}
