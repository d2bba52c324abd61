import { portsInThread } from "../../../test/support/thread-ports.ts";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RefusalLog } from "../../admission/refusals/refusal-log.ts";
import { systemClock } from "../../domain/clock.ts";
import type { Refusal } from "../../domain/errors/refusal.ts";
import type { Progress } from "../../ledger/spool/spool.ts";
import { Metrics } from "../../telemetry/metrics/metrics.ts";
import type { ToControl, ToMain } from "../messages.ts";
import { ThreadLink, type Handlers } from "../thread-link.ts";
import { ProcessPages } from "./process-pages.ts";
import { serveSiblings } from "./siblings.ts";

let dataDir: string;
const started: Disposable[] = [];
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "sluice-pages-"));
});
afterEach(() => {
  for (const each of started.splice(0)) each[Symbol.dispose]();
  rmSync(dataDir, { recursive: true });
});

type Asked = Pick<ToMain, "metrics.read" | "refusals" | "live.read">;

interface Told {
  /** Open requests, of the main thread. */
  readonly openRequests?: number;
  readonly ofCalls?: readonly Refusal[];
  readonly ofAdmin?: readonly Refusal[];
  readonly progress?: Progress;
  /** Its main thread answers nothing. */
  readonly hangs?: boolean;
}

/** A process among those of the machine, as its control thread sees it. */
function processOf(number: number, told: Told = {}): ProcessPages {
  const [main, control] = portsInThread();
  const calls = logOf(told.ofCalls);
  const page = new Metrics({ sluice_open_requests: () => told.openRequests ?? 0 });
  const handlers: Handlers<Asked> = {
    "metrics.read": () => page.collect(),
    refusals: ({ filter, limit }) => calls.list(filter, limit),
    "live.read": (wanted) => ({ ...noFacts, process: number, openCalls: wanted.publicIds.length }),
  };
  const link = new ThreadLink<ToControl, Asked>(main, systemClock);
  if (told.hangs !== true) link.handle(handlers);
  const toMain = new ThreadLink<ToMain, ToControl>(control, systemClock);
  // It is asked nothing.
  toMain.handle({});
  if (told.hangs === true) toMain.lose("it hangs");
  const pages = new ProcessPages({
    dataDir,
    number,
    refusals: logOf(told.ofAdmin),
    link: toMain,
    metrics: new Metrics({}),
    status: () => ({ number, leads: number === 1, notReady: undefined, facts: undefined }),
    recentSecrets: () => [],
    followKeys: () => Promise.resolve(),
    progressOf: (spool) => (spool === "its spool" ? told.progress : undefined),
  });
  pages.start((error) => {
    throw error;
  });
  started.push({ [Symbol.dispose]: () => pages.stop() });
  return pages;
}

const noFacts = {
  loadBound: 9,
  spoolBytes: 0,
  spoolLimitBytes: 1,
  targets: [],
  gates: [],
  keys: [],
} as const;

function logOf(refusals: readonly Refusal[] = []): RefusalLog {
  const log = new RefusalLog();
  for (const refusal of refusals) log.record(refusal);
  return log;
}

function refusalOf(id: string, at: number, keyId: string, accountId = "acc_1"): Refusal {
  const explanation = { rule: "requests_per_minute", summary: "No.", keyId, accountId } as const;
  return { id, at, status: 429, code: "rate_limit_exceeded", explanation };
}

describe("the processes of a machine", () => {
  test("are told together by any of them, in their order", async () => {
    processOf(2);
    const third = processOf(3);
    processOf(1);
    const all = await third.statuses();
    expect(all.map(({ number, leads }) => [number, leads])).toEqual([
      [1, true],
      [2, false],
      [3, false],
    ]);
  });

  test("have their metrics side by side, also when the main thread of one does not answer", async () => {
    const first = processOf(1, { openRequests: 3 });
    processOf(2, { openRequests: 4 });
    processOf(3, { hangs: true });
    const page = await first.renderAll();
    const lines = page.split("\n").filter((line) => line.startsWith("sluice_open_requests"));
    expect(lines).toEqual([
      'sluice_open_requests{process="1"} 3',
      'sluice_open_requests{process="2"} 4',
    ]);
    expect(page).toContain('sluice_ledger_dead_letters_total{process="3"} 0\n');
  });

  test("tell what is live however much is watched", async () => {
    const first = processOf(1);
    processOf(2);
    // As much as all live streams may watch: in rotation each key has two secrets.
    const publicIds = Array.from({ length: 620 }, (_, index) => `Pub1${1000 + index}`);
    const accountIds = Array.from(
      { length: 225 },
      (_, index) => `acct_oRVOcl0X955S${1000 + index}`,
    );
    const facts = await first.facts({ publicIds, accountIds });
    expect(facts.map(({ process, openCalls }) => [process, openCalls])).toEqual([
      [1, 620],
      [2, 620],
    ]);
  });

  test("tell how far the leader has stored a spool", async () => {
    const progress = { segment: 4, closes: 2 };
    processOf(1, { progress });
    const second = processOf(2);
    expect(await second.askProgress("its spool")).toEqual(progress);
    expect(await second.askProgress("another spool")).toBeUndefined();
  });

  test("are left out if they answer in another form", async () => {
    const first = processOf(1);
    const other = {
      "/metrics": () => ({ page: "" }),
      "/progress": () => "far",
      "/status": () => [],
    };
    started.push(serveSiblings({ dataDir, number: 2 }, other));
    expect(await first.renderAll()).not.toContain('process="2"');
    expect(await first.askProgress("its spool")).toBeUndefined();
  });

  test("cannot be asked if one cannot listen, which serves on", async () => {
    const alone = processOf(1, { openRequests: 3 });
    alone.stop();
    rmSync(join(dataDir, "processes"), { recursive: true });
    writeFileSync(join(dataDir, "processes"), "");
    const errors: unknown[] = [];
    alone.start((error) => errors.push(error));
    expect(errors).toHaveLength(1);
    expect(await alone.renderAll()).toContain('sluice_open_requests{process="1"} 3\n');
  });
});

describe("refusals", () => {
  const ofFirst = [refusalOf("req_1", 10, "key_a"), refusalOf("req_3", 30, "key_b")];
  const ofSecond = [refusalOf("req_2", 20, "key_a"), refusalOf("req_4", 40, "key_c", "acc_2")];
  const ofAdmin = [refusalOf("req_5", 50, "key_a")];

  function both(): ProcessPages {
    processOf(2, { ofCalls: ofSecond });
    return processOf(1, { ofCalls: ofFirst, ofAdmin });
  }

  test("are found in whichever process and thread they were made", async () => {
    const pages = both();
    for (const refusal of [...ofFirst, ...ofSecond, ...ofAdmin]) {
      expect(await pages.find(refusal.id)).toEqual(refusal);
    }
    expect(await pages.find("req_0")).toBeUndefined();
  });

  test("of other processes keep what they do not have", async () => {
    const [first] = ofSecond;
    if (first === undefined) throw new Error("there is none");
    const window = { scopeId: "key_a", limit: Infinity, used: 1, requested: 2, freeAt: undefined };
    const refusal = { ...first, explanation: { ...first.explanation, window } };
    processOf(2, { ofCalls: [refusal] });
    expect(await processOf(1).find(first.id)).toStrictEqual(refusal);
  });

  test("are listed from all processes, newest first, up to a number", async () => {
    const list = async (...[filter, limit]: Parameters<ProcessPages["list"]>) =>
      (await pages.list(filter, limit)).map(({ id }) => id);
    const pages = both();
    expect(await list({}, 10)).toEqual(["req_5", "req_4", "req_3", "req_2", "req_1"]);
    expect(await list({}, 2)).toEqual(["req_5", "req_4"]);
    expect(await list({ keyId: "key_a" }, 10)).toEqual(["req_5", "req_2", "req_1"]);
    expect(await list({ accountId: "acc_2" }, 10)).toEqual(["req_4"]);
    const nothing = { keyId: undefined, accountId: undefined };
    expect(await list(nothing, 2)).toEqual(["req_5", "req_4"]);
  });

  test("of other processes are told although the own main thread does not answer", async () => {
    processOf(2, { ofCalls: ofSecond });
    const pages = processOf(1, { ofAdmin, hangs: true });
    expect((await pages.list({}, 10)).map(({ id }) => id)).toEqual(["req_5", "req_4", "req_2"]);
    expect(await pages.find("req_2")).toEqual(ofSecond[0]);
  });
});
