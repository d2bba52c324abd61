import { describe, expect, test } from "bun:test";
import { type UsageStep, usageSteps, type UsageRecord } from "../../src/domain/usage/usage.ts";
import type { UsageRetention } from "../../src/store/store.ts";
import {
  integerOf,
  type Ledger,
  midnight,
  pickOf,
  type Random,
  randomOf,
  randomRecord,
  removeAll,
} from "./usage-fixtures.ts";

const days = 6;
const end = midnight + days * 86_400_000;
const stepsMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/**
 * Random histories of batches, of which many are repeated, of retention and of erasures. Afterwards
 * every report equals that of a plain list of calls.
 */
export function usageHistoryContract(name: string, create: () => Ledger | Promise<Ledger>): void {
  describe(`usage history contract: ${name}`, () => {
    test.each([1, 2, 3, 4, 5, 6])("history %d", async (seed) => {
      const random = randomOf(seed);
      const ledger = await create();
      const model = new LedgerModel();
      for (let step = 0; step < 40; step += 1) {
        await change(ledger, model, random, step);
        if (step % 5 === 4) await compare(ledger, model, random);
      }
    });
  });
}

async function change(
  { store }: Ledger,
  model: LedgerModel,
  random: Random,
  step: number,
): Promise<void> {
  const choice = random();
  if (choice < 0.8) {
    const fresh = Array.from({ length: integerOf(random, 60) }, (_, index) =>
      randomRecord(random, `req_${step}_${index}`, days),
    );
    // The crash of an ingest repeats what it had stored, in batches of another size.
    const again = model.sent.filter(() => random() < 0.2);
    const batch = [...fresh, ...again].toSorted(() => random() - 0.5);
    await store.insert(batch);
    model.insert(batch);
  } else if (choice < 0.93) {
    const time = (): number =>
      random() < 0.3 ? 0 : midnight + integerOf(random, (days / 2) * stepsMs.day);
    const retention = { calls: time(), hours: time(), days: time() };
    const limit = 1 + integerOf(random, 200);
    await removeAll(() => store.prune(retention, limit));
    model.prune(retention);
  } else {
    const accountId = pickOf(random, ["acct_0", "acct_1"]);
    const limit = 1 + integerOf(random, 200);
    await removeAll(() => store.erase(accountId, limit));
    model.erase(accountId);
  }
}

async function compare({ reports }: Ledger, model: LedgerModel, random: Random): Promise<void> {
  for (let round = 0; round < 8; round += 1) {
    const since = midnight + integerOf(random, end - midnight);
    const until = since + integerOf(random, end - since + stepsMs.day);
    const accountId = random() < 0.3 ? "acct_0" : undefined;
    const by = random() < 0.5 ? (["model", "status"] as const) : [];
    const ofAccount = (record: UsageRecord): boolean =>
      accountId === undefined || record.accountId === accountId;
    const filter = { since, until, accountId };

    const totals = await reports.totals({ filter, by, limit: 1_000 });
    const counted = model.counted(since, until).filter(ofAccount);
    const inTotals = totals.map(({ group, ...sums }) => ({ at: 0, group, ...sums }));
    expect(sumsOf(inTotals)).toEqual(sumsOfCalls(counted, by, undefined));

    const step = pickOf(random, usageSteps);
    const firstKept = { minute: model.callsSince, hour: model.keptSince, day: midnight }[step];
    if (since >= firstKept) {
      const points = await reports.series({ filter, by, limit: 1_000, step });
      const inSteps = model.counted(since, until, step).filter(ofAccount);
      expect(sumsOf(points)).toEqual(sumsOfCalls(inSteps, by, step));
    }

    const status = random() < 0.5 ? 429 : undefined;
    const { items } = await reports.calls({ ...filter, status }, { limit: 10_000 });
    const fits = (record: UsageRecord): boolean =>
      ofAccount(record) && (status === undefined || record.status === status);
    const listed = model.calls.filter(
      (record) => record.startedAt >= since && record.startedAt < until && fits(record),
    );
    expect(items.map(({ id }) => id).toSorted()).toEqual(listed.map(({ id }) => id).toSorted());
  }
}

/** The ledger as a list. */
class LedgerModel {
  /** All calls ever sent. */
  readonly sent: UsageRecord[] = [];
  /** Calls that are kept as rows. */
  calls: UsageRecord[] = [];
  /** Calls that are in the sums of their day. */
  #inDays: UsageRecord[] = [];
  /** The times before which calls and the sums of hours were removed. */
  callsSince = 0;
  #hoursSince = 0;

  get keptSince(): number {
    return Math.max(this.callsSince, this.#hoursSince);
  }

  insert(batch: readonly UsageRecord[]): void {
    const known = new Set(this.calls.map(({ id }) => id));
    for (const record of batch) {
      if (known.has(record.id) || record.startedAt < this.callsSince) continue;
      known.add(record.id);
      this.calls.push(record);
      this.#inDays.push(record);
    }
    const sent = new Set(this.sent.map(({ id }) => id));
    this.sent.push(...batch.filter(({ id }) => !sent.has(id)));
  }

  prune({ calls, hours, days: ofDays }: UsageRetention): void {
    const gone = this.calls.filter(({ startedAt }) => startedAt < calls);
    this.calls = this.calls.filter((record) => !gone.includes(record));
    this.callsSince = Math.max(this.callsSince, ...gone.map(({ startedAt }) => startedAt + 1));
    this.#hoursSince = Math.max(this.#hoursSince, floor(hours, "day"));
    const before = floor(Math.min(calls, hours, ofDays), "day");
    this.#inDays = this.#inDays.filter(({ startedAt }) => startedAt >= before);
  }

  /** An account that is not marked as erased may call again; its earlier calls, too. */
  erase(accountId: string): void {
    this.calls = this.calls.filter((record) => record.accountId !== accountId);
    this.#inDays = this.#inDays.filter((record) => record.accountId !== accountId);
  }

  /** The calls of a range, widened to what is kept. */
  counted(since: number, until: number, longest: UsageStep = "day"): UsageRecord[] {
    if (since >= until) return [];
    const [first, last] = [
      this.#widen(since, floor, longest),
      this.#widen(until, ceiling, longest),
    ];
    return this.#inDays.filter(({ startedAt }) => startedAt >= first && startedAt < last);
  }

  #widen(at: number, round: (at: number, step: UsageStep) => number, longest: UsageStep): number {
    const minute = round(at, "minute");
    if (longest === "minute" || floor(minute, "hour") >= this.keptSince) return minute;
    const hour = round(minute, "hour");
    if (longest === "hour" || floor(hour, "day") >= this.#hoursSince) return hour;
    return round(hour, "day");
  }
}

function floor(at: number, step: UsageStep): number {
  return Math.floor(at / stepsMs[step]) * stepsMs[step];
}

function ceiling(at: number, step: UsageStep): number {
  return Math.ceil(at / stepsMs[step]) * stepsMs[step];
}

interface Sums {
  readonly at: number;
  readonly group: object;
  readonly calls: number;
  readonly failedCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly estimatedTokens: number;
}

function sumsOf(points: readonly Sums[]): Record<string, number[]> {
  return Object.fromEntries(
    points.map(({ at, group, ...sums }) => [
      `${at} ${JSON.stringify(group)}`,
      [sums.calls, sums.failedCalls, sums.inputTokens, sums.outputTokens, sums.estimatedTokens],
    ]),
  );
}

function sumsOfCalls(
  records: readonly UsageRecord[],
  by: readonly ("model" | "status")[],
  step: UsageStep | undefined,
): Record<string, number[]> {
  const sums: Record<string, number[]> = {};
  for (const record of records) {
    const at = step === undefined ? 0 : floor(record.startedAt, step);
    const group = Object.fromEntries(by.map((dimension) => [dimension, record[dimension]]));
    const tokens = record.inputTokens + record.outputTokens;
    const counts = [
      1,
      record.outcome === "completed" ? 0 : 1,
      record.inputTokens,
      record.outputTokens,
      record.usageSource === "upstream" ? 0 : tokens,
    ];
    const name = `${at} ${JSON.stringify(group)}`;
    const known = sums[name] ?? counts.map(() => 0);
    sums[name] = known.map((count, index) => count + (counts[index] ?? 0));
  }
  return sums;
}
