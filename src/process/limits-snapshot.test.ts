import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  closedCall,
  copySpools,
  FallibleStore,
  LedgerLog,
  openedCall,
  spoolPaths,
  TestFolder,
} from "../../test/support/ledger-fixtures.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { endUserScopeId, guaranteeScopeId, keyScopeId } from "../admission/plan-scopes.ts";
import { type LimitScope, minuteScopes } from "../domain/limits/limit-scope.ts";
import { Ingest } from "../ledger/ingest/ingest.ts";
import { listProcessFolders, processFolderName } from "../ledger/spool/process-folder.ts";
import { SpoolWriter } from "../ledger/spool/spool-writer.ts";
import { LimitsSnapshot } from "./limits-snapshot.ts";
import { OwnLimits } from "./own-limits.ts";

const limits = { requestsPerMinute: 60, tokensPerMinute: 1_000 };
const scopes = minuteScopes(keyScopeId("key_a"), limits);
const settings = { batchRows: 10, sync: "none", spoolLimitBytes: 1e9, segmentBytes: 1e6 } as const;

let processes = 0;

/** Nothing is kept but when the test says so. */
const never = () => () => undefined;

/** A process with limits in memory and a spool. It keeps its limits when the test says so. */
function processIn(root: string, clock: ManualClock) {
  const failures: unknown[] = [];
  const spool = new SpoolWriter({
    root,
    name: processFolderName(1, clock.now() + (processes += 1), process.pid),
    settings,
    clock,
    on: new LedgerLog(),
    direct: new FallibleStore(),
  });
  const own = new OwnLimits({
    clock,
    random: () => 0,
  });
  const snapshot = new LimitsSnapshot({
    root,
    spool,
    limits: own,
    clock: { now: () => clock.now(), monotonic: () => clock.monotonic(), schedule: never },
    keys: { limitScopeOf: () => undefined },
    onFailed: (error) => void failures.push(error),
  });
  let calls = 0;
  /** Admits a call and records it, as the gateway does. */
  const open = (tokens: number, of: readonly LimitScope[] = scopes): string | undefined => {
    const id = `req_${processes}_${(calls += 1)}`;
    if (!own.acquire({ callId: id, scopes: of, tokens }).isAdmitted) return undefined;
    const capacityClass = of === scopes ? "on-demand" : "provisioned";
    const facts = { startedAt: clock.now(), capacityClass, inputTokens: 0 } as const;
    void spool.open(openedCall(id, { ...facts, reservedTokens: tokens }));
    return id;
  };
  const close = (id: string | undefined, outputTokens: number): void => {
    if (id === undefined) throw new Error("it was refused");
    own.settle(id, outputTokens);
    void spool.close(closedCall(id, { inputTokens: 0, outputTokens, startedAt: clock.now() }));
  };
  const left = (tokens = 1_000): number => {
    for (let wanted = tokens; wanted > 0; wanted -= 1) {
      if (own.acquire({ callId: "probe", scopes, tokens: wanted }).isAdmitted) return wanted;
    }
    return 0;
  };
  return { spool, own, snapshot, failures, open, close, left };
}

/** What a kill leaves, for the next process. */
function killedIn(root: string, folder: TestFolder): string {
  const target = join(folder.path, `after-${(processes += 1)}`);
  mkdirSync(target);
  copySpools(root, target);
  return target;
}

test("a process that was killed three times leaves no more of a limit than it had", async () => {
  using folder = new TestFolder();
  const clock = new ManualClock();
  let root = join(folder.path, "spool");
  let admitted = 0;
  for (let kill = 0; kill < 4; kill += 1) {
    const one = processIn(root, clock);
    one.snapshot.restore();
    await one.snapshot.start();
    // Some are in the snapshot, others only in the spool.
    for (let call = 0; call < 10; call += 1) if (one.open(1) !== undefined) admitted += 1;
    if (kill === 1) await one.snapshot.start();
    for (let call = 0; call < 10; call += 1) if (one.open(1) !== undefined) admitted += 1;
    expect(one.failures).toEqual([]);
    one.spool.beginSegment();
    root = killedIn(root, folder);
    clock.advance(1_000);
  }
  expect(admitted).toBe(60);
});

test("what an interrupted call could still have used is forgotten", async () => {
  using folder = new TestFolder();
  const clock = new ManualClock();
  const root = join(folder.path, "spool");
  const bounded = minuteScopes(keyScopeId("key_a"), limits, { overrunFactor: 1 });
  const request = { callId: "long", scopes: bounded, tokens: 10, mostTokens: 900 };
  const one = processIn(root, clock);
  await one.snapshot.start();
  expect(one.own.acquire(request).isAdmitted).toBe(true);
  expect(one.own.acquire({ ...request, callId: "next" }).isAdmitted).toBe(false);
  await one.snapshot.start();
  const two = processIn(killedIn(root, folder), clock);
  two.snapshot.restore();
  expect(two.own.acquire({ ...request, callId: "next" }).isAdmitted).toBe(true);
  expect(two.left()).toBe(980);
});

test("what calls have used since counts, and what they gave back does not", async () => {
  using folder = new TestFolder();
  const clock = new ManualClock();
  const root = join(folder.path, "spool");
  const before = processIn(root, clock);
  const known = before.open(500);
  const stays = before.open(100);
  await before.snapshot.start();
  before.close(known, 200);
  before.close(before.open(300), 50);
  expect(stays).toBeDefined();
  before.spool.beginSegment();
  const after = processIn(killedIn(root, folder), clock);
  after.snapshot.restore();
  expect(after.left()).toBe(1_000 - 200 - 100 - 50);
});

test("calls of a plan with weights count as it weighs them", async () => {
  using folder = new TestFolder();
  const clock = new ManualClock();
  const root = join(folder.path, "spool");
  const before = processIn(root, clock);
  const weights = { input: 100, output: 500 };
  const open = (id: string): void => {
    expect(before.own.acquire({ callId: id, scopes, tokens: 20 + 5 * 10 }).isAdmitted).toBe(true);
    const opened = openedCall(id, { startedAt: clock.now(), inputTokens: 20, reservedTokens: 30 });
    void before.spool.open({ ...opened, weights });
  };
  const close = (id: string, planTokens: number): void => {
    before.own.settle(id, planTokens);
    const record = closedCall(id, { inputTokens: 20, outputTokens: 4, startedAt: clock.now() });
    void before.spool.close({ ...record, planTokens });
  };
  open("ended");
  await before.snapshot.start();
  close("ended", 25);
  open("brief");
  close("brief", 21);
  open("waits");
  open("writes");
  before.spool.checkpoint("writes", { outputTokens: 11 });
  before.spool.beginSegment();
  const after = processIn(killedIn(root, folder), clock);
  after.snapshot.restore();
  expect(after.left()).toBe(1_000 - 25 - 21 - 70 - (20 + 5 * 11));
});

test("what a successor has given back counts after a kill", async () => {
  using folder = new TestFolder();
  const clock = new ManualClock();
  const root = join(folder.path, "spool");
  const before = processIn(root, clock);
  before.open(700);
  await before.snapshot.start();
  before.own.give(() => undefined);
  const isGone = before.snapshot.keep();
  before.own.takeBack();
  await Promise.all([isGone, before.snapshot.keep()]);
  const after = processIn(killedIn(root, folder), clock);
  after.snapshot.restore();
  expect(after.left()).toBe(300);
});

test("windows end as late as they would have, and a debt is paid first", async () => {
  using folder = new TestFolder();
  const clock = new ManualClock();
  const root = join(folder.path, "spool");
  const before = processIn(root, clock);
  before.close(before.open(1_000), 1_500);
  clock.advance(30_000);
  await before.snapshot.start();
  const next = killedIn(root, folder);
  clock.advance(20_000);
  const after = processIn(next, clock);
  after.snapshot.restore();
  expect(after.left()).toBe(0);
  clock.advance(11_000);
  expect(after.left()).toBe(500);
});

test("a guarantee is restored, an hour later none of it", async () => {
  using folder = new TestFolder();
  const clock = new ManualClock();
  const root = join(folder.path, "spool");
  const window = { seconds: 600 };
  const guarantee: readonly LimitScope[] = [
    { id: guaranteeScopeId("key_a"), unit: "requests", window, limit: Infinity },
    { id: guaranteeScopeId("key_a"), unit: "tokens", window, limit: 1_000 },
  ];
  const before = processIn(root, clock);
  before.open(400, guarantee);
  await before.snapshot.start();
  before.open(500, guarantee);
  before.spool.beginSegment();
  const next = killedIn(root, folder);
  clock.advance(500_000);
  const after = processIn(next, clock);
  after.snapshot.restore();
  expect(after.open(101, guarantee)).toBeUndefined();
  expect(after.open(100, guarantee)).toBeDefined();
  clock.advance(100_000);
  expect(after.open(900, guarantee)).toBeDefined();
});

test("the spool of a process that ended stays until the next one has its limits", async () => {
  using folder = new TestFolder();
  const clock = new ManualClock();
  const root = join(folder.path, "spool");
  const before = processIn(root, clock);
  await before.snapshot.start();
  before.open(1);
  await before.snapshot.start();
  before.close(before.open(1), 1);
  before.spool.beginSegment();
  const next = killedIn(root, folder);
  const store = new FallibleStore();
  const on = new LedgerLog();
  const options = { settings: { ...settings, flushIntervalMs: 1 }, clock };
  const ingest = new Ingest({ root: next, store, on, ...options });
  await ingest.flush();
  expect(store.rows.size).toBe(2);
  expect(spoolPaths(next).length).toBeGreaterThan(0);
  const after = processIn(next, clock);
  after.snapshot.restore();
  await after.snapshot.start();
  await ingest.flush();
  expect(after.left(60)).toBe(60);
  expect(listProcessFolders(next)).toEqual([String(after.spool.folder)]);
  await ingest.stop();
});

test("limits that cannot be read are reported, and the process starts", async () => {
  using folder = new TestFolder();
  const clock = new ManualClock();
  const root = join(folder.path, "spool");
  const before = processIn(root, clock);
  before.open(1);
  await before.snapshot.start();
  const next = killedIn(root, folder);
  const [left = ""] = listProcessFolders(next);
  const [name = ""] = readdirSync(left).filter((each) => each.endsWith(".limits"));
  const text = readFileSync(join(left, name), "utf8");
  writeFileSync(join(left, name), text.slice(0, -10));
  const after = processIn(next, clock);
  after.snapshot.restore();
  await after.snapshot.start();
  expect(after.failures).toHaveLength(1);
  expect(after.left()).toBe(1_000);
  // Only once.
  expect(existsSync(join(left, name))).toBe(false);
});

test("end users are in the last snapshot alone, because they may be many", async () => {
  using folder = new TestFolder();
  const clock = new ManualClock();
  const one = processIn(folder.path, clock);
  const ofJane = minuteScopes(endUserScopeId("key_a", "jane"), limits);
  one.own.acquire({ callId: "req_a", scopes: [...scopes, ...ofJane], tokens: 10 });
  const kept = (): string => {
    const paths = readdirSync(folder.path, { encoding: "utf8", recursive: true });
    const path = paths.find((each) => each.includes(".limits")) ?? "";
    return readFileSync(join(folder.path, path), "utf8");
  };
  await one.snapshot.keep();
  expect(kept()).toContain(keyScopeId("key_a"));
  expect(kept()).not.toContain("jane");
  await one.snapshot.stop();
  expect(kept()).toContain("jane");
});
