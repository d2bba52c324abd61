import { beforeEach, describe, expect, test } from "bun:test";
import {
  type UsageRecord,
  type UsageDimension,
  usageDimensions,
  usageSteps,
} from "../../src/domain/usage/usage.ts";
import { InvalidCursor } from "../../src/store/errors.ts";
import {
  type CallFilter,
  type UsageFilter,
  type UsageTotal,
} from "../../src/store/usage-reports.ts";
import {
  allTime,
  integerOf,
  type Ledger,
  midnight,
  pickOf,
  type Random,
  randomOf,
  randomRecords,
  recordOf,
  removeAll,
} from "./usage-fixtures.ts";

const minuteMs = 60_000;
const dayMs = 86_400_000;
const stepsMs = { minute: minuteMs, hour: 3_600_000, day: dayMs };
const days = 4;

/** What every backend's reports must tell. */
export function usageReportsContract(name: string, create: () => Ledger | Promise<Ledger>): void {
  describe(`usage reports contract: ${name}`, () => {
    let ledger: Ledger;
    beforeEach(async () => {
      ledger = await create();
    });

    async function fill(seed: number, count = 1_500): Promise<UsageRecord[]> {
      const records = randomRecords(randomOf(seed), count, days);
      for (let first = 0; first < count; first += 100) {
        await ledger.store.insert(records.slice(first, first + 100));
      }
      return records;
    }

    test("totals of any time, filter and grouping equal the sums over single calls", async () => {
      const records = await fill(1);
      const random = randomOf(2);
      for (let round = 0; round < 60; round += 1) {
        const filter = randomFilter(random);
        const by = usageDimensions.filter(() => random() < 0.25);
        const totals = await ledger.reports.totals({ filter, by, limit: 10_000 });
        const expected = groupsOf(records.filter(fits(wholeMinutes(filter))), by);
        expect(countsByGroup(totals)).toEqual(expected);
        const calls = totals.map((total) => total.calls);
        expect(calls).toEqual(calls.toSorted((one, other) => other - one));
      }
    });

    test("a series of any step adds up to single calls, step by step", async () => {
      const records = await fill(3);
      const random = randomOf(4);
      for (let round = 0; round < 40; round += 1) {
        const step = pickOf(random, usageSteps);
        const filter = randomFilter(random);
        const by = usageDimensions.filter(() => random() < 0.15);
        const points = await ledger.reports.series({ filter, by, limit: 10_000, step });
        const within = records.filter(fits(wholeMinutes(filter)));
        const times = [...new Set(points.map(({ at }) => at))];
        expect(times).toEqual(times.toSorted((one, other) => one - other));
        const starts = within.map(({ startedAt }) => startedAt - (startedAt % stepsMs[step]));
        expect(new Set(times)).toEqual(new Set(starts));
        for (const at of times) {
          const ofStep = within.filter((_, index) => starts[index] === at);
          const found = points.filter((point) => point.at === at);
          expect(countsByGroup(found)).toEqual(groupsOf(ofStep, by));
        }
      }
    });

    test("percentiles are within 5 % of the exact ones, however sums were merged", async () => {
      const records = await fill(5);
      const random = randomOf(6);
      for (let round = 0; round < 30; round += 1) {
        const filter = randomFilter(random);
        const [total] = await ledger.reports.totals({ filter, by: [], limit: 1 });
        const within = records.filter(fits(wholeMinutes(filter)));
        const completed = within.filter(({ outcome }) => outcome === "completed");
        expectClose(
          total?.duration,
          completed.map(({ durationMs }) => durationMs),
        );
        expectClose(
          total?.firstEvent,
          within.flatMap(({ firstEventMs }) => firstEventMs ?? []),
        );
      }
    });

    test("the groups with the most calls are kept, in totals and in every step", async () => {
      const records = await fill(7, 600);
      const filter = { since: midnight, until: midnight + days * dayMs };
      const counts = groupsOf(records, ["key"]);
      const largest = Object.entries(counts)
        .toSorted(([, one], [, other]) => (other[0] ?? 0) - (one[0] ?? 0))
        .slice(0, 2)
        .map(([group]) => group);
      const totals = await ledger.reports.totals({ filter, by: ["key"], limit: 2 });
      expect(totals.map(({ group }) => JSON.stringify(group))).toEqual(largest);
      const points = await ledger.reports.series({ filter, by: ["key"], limit: 2, step: "day" });
      expect(points).toHaveLength(2 * days);
      expect(new Set(points.map(({ group }) => JSON.stringify(group)))).toEqual(new Set(largest));
    });

    test("a series of the groups with the most tokens has the sum of the others, too", async () => {
      const records = await fill(8, 600);
      const filter = { since: midnight, until: midnight + days * dayMs };
      const tokens = new Map<string, number>();
      for (const { keyId, inputTokens, outputTokens } of records) {
        tokens.set(keyId, (tokens.get(keyId) ?? 0) + inputTokens + outputTokens);
      }
      const largest = [...tokens].toSorted(([, one], [, other]) => other - one)[0]?.[0];
      const points = await ledger.reports.series({
        filter,
        by: ["key"],
        limit: 1,
        step: "day",
        rank: "tokens",
        hasRest: true,
      });
      const own = points.filter(({ group }) => group.key === largest);
      const rest = points.filter(({ group }) => group.key === undefined);
      expect(own.length + rest.length).toBe(points.length);
      expect(sumOf(own.map(({ calls }) => calls))).toBe(
        records.filter(({ keyId }) => keyId === largest).length,
      );
      expect(sumOf(points.map(({ outputTokens }) => outputTokens))).toBe(
        sumOf(records.map(({ outputTokens }) => outputTokens)),
      );
      expect(rest).toHaveLength(days);
    });

    test("a time without calls has no totals, no series and no calls", async () => {
      await ledger.store.insert([recordOf("req_1")]);
      for (const filter of [
        { since: 60_000, until: 120_000 },
        { since: 20_000, until: 10_000 },
        { ...allTime, keyId: "key_x" },
      ]) {
        expect(await ledger.reports.totals({ filter, by: [], limit: 9 })).toEqual([]);
        expect(await ledger.reports.series({ filter, by: [], limit: 9, step: "hour" })).toEqual([]);
        expect(await ledger.reports.calls(filter, { limit: 9 })).toEqual({
          items: [],
          next: undefined,
        });
      }
    });

    test("a call of which no target was tried is in a group without a target", async () => {
      await ledger.store.insert([recordOf("req_1", { target: undefined })]);
      const totals = await ledger.reports.totals({ filter: allTime, by: ["target"], limit: 9 });
      expect(totals.map(({ group }) => group)).toEqual([{ target: null }]);
    });

    test("pages of any size list what fits the filter, once, newest first", async () => {
      const records = await fill(8, 400);
      // Calls of the same millisecond are told apart by their ids.
      const same = Array.from({ length: 25 }, (_, index) =>
        recordOf(`same_${index}`, { startedAt: midnight + dayMs, keyId: "key_1" }),
      );
      await ledger.store.insert(same);
      const random = randomOf(9);
      for (let round = 0; round < 80; round += 1) {
        if (round === 40) await pruneSums(ledger);
        const filter = randomCallFilter(random);
        const limit = 1 + integerOf(random, 60);
        const expected = [...records, ...same].filter(fits(filter)).toSorted(newestFirst);
        const { found, sizes } = await readPages(ledger, filter, limit);
        expect(found).toEqual(expected);
        expect(sizes.every((size, index) => size === limit || index === sizes.length - 1)).toBe(
          true,
        );
      }
    });

    test("calls that arrive while a list is paged through repeat and skip nothing", async () => {
      const records = await fill(10, 50);
      const first = await ledger.reports.calls(allTime, { limit: 20 });
      await ledger.store.insert([recordOf("later", { startedAt: midnight + days * dayMs })]);
      const rest = await ledger.reports.calls(allTime, { limit: 100, after: first.next });
      const ids = [...first.items, ...rest.items].map(({ id }) => id);
      expect(ids).toEqual(records.toSorted(newestFirst).map(({ id }) => id));
    });

    test("a cursor that no list gave is refused", async () => {
      for (const after of ["", "%", "eyJ9", Buffer.from("[1]").toString("base64url")]) {
        const page = ledger.reports.calls(allTime, { limit: 5, after });
        const failure = await page.catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(InvalidCursor);
      }
    });
  });
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}

function randomFilter(random: Random): UsageFilter {
  const some = <Value>(value: () => Value): Value | undefined =>
    random() < 0.15 ? value() : undefined;
  const since = midnight + integerOf(random, days * dayMs);
  const longest = pickOf(random, [5 * minuteMs, 5 * 3_600_000, days * dayMs]);
  return {
    since,
    until: since + 1 + integerOf(random, longest),
    environment: some(() => "production"),
    accountId: some(() => `acct_${integerOf(random, 2)}`),
    applicationId: some(() => `app_${integerOf(random, 3)}_0`),
    keyId: some(() => `key_${integerOf(random, 5)}`),
    model: some(() => "alpha-sonnet-4"),
    dialect: some(() => "messages" as const),
    target: some(() => "east/model"),
    outcome: some(() => pickOf(random, ["completed", "abandoned"] as const)),
    status: some(() => pickOf(random, [200, 503])),
    code: some(() => "rate_limit_exceeded"),
    capacityClass: some(() => "spillover" as const),
  };
}

function randomCallFilter(random: Random): CallFilter {
  const outcome =
    random() < 0.3 ? pickOf(random, ["completed", "failed", "interrupted"] as const) : undefined;
  const range = random() < 0.5 ? allTime : {};
  const mayBeBilledTwice = random() < 0.3 ? (true as const) : undefined;
  return { ...randomFilter(random), ...range, outcome, mayBeBilledTwice };
}

/** Reports are of whole minutes. */
function wholeMinutes<Filter extends UsageFilter>(filter: Filter): Filter {
  const since = Math.floor(filter.since / minuteMs) * minuteMs;
  return { ...filter, since, until: Math.ceil(filter.until / minuteMs) * minuteMs };
}

function fits(filter: CallFilter): (record: UsageRecord) => boolean {
  const { since, until, ...wanted } = filter;
  const fields = Object.entries(wanted).filter(([, value]) => value !== undefined);
  return (record) =>
    record.startedAt >= since &&
    record.startedAt < until &&
    fields.every(([field, value]) => record[field as keyof UsageRecord] === value);
}

const fieldsOf = {
  environment: "environment",
  account: "accountId",
  application: "applicationId",
  key: "keyId",
  model: "model",
  dialect: "dialect",
  target: "target",
  outcome: "outcome",
  status: "status",
  code: "code",
  class: "capacityClass",
} as const satisfies Record<UsageDimension, keyof UsageRecord>;

/** Calls, failed, abandoned, input, output, cached and estimated tokens, and costs, by group. */
function groupsOf(
  records: readonly UsageRecord[],
  by: readonly UsageDimension[],
): Record<string, number[]> {
  const groups: Record<string, number[]> = {};
  for (const record of records) {
    const group = by.map((dimension) => [dimension, record[fieldsOf[dimension]] ?? null]);
    const name = JSON.stringify(Object.fromEntries(group));
    const counts = [
      1,
      record.outcome === "completed" ? 0 : 1,
      record.outcome === "abandoned" ? 1 : 0,
      record.inputTokens,
      record.outputTokens,
      record.cachedInputTokens,
      record.cacheWriteTokens ?? 0,
      record.usageSource === "upstream" ? 0 : record.inputTokens + record.outputTokens,
      record.costNano ?? 0,
      record.costNano === undefined ? 1 : 0,
    ];
    const known = groups[name] ?? counts.map(() => 0);
    groups[name] = known.map((count, index) => count + (counts[index] ?? 0));
  }
  return groups;
}

function countsByGroup(totals: readonly UsageTotal[]): Record<string, number[]> {
  const entries = totals.map((total) => [
    JSON.stringify(total.group),
    [
      total.calls,
      total.failedCalls,
      total.abandonedCalls,
      total.inputTokens,
      total.outputTokens,
      total.cachedInputTokens,
      total.cacheWriteTokens,
      total.estimatedTokens,
      Number(total.costNano ?? 0),
      total.unpricedCalls,
    ],
  ]);
  const groups = Object.fromEntries(entries) as Record<string, number[]>;
  expect(Object.keys(groups)).toHaveLength(totals.length);
  return groups;
}

function expectClose(found: UsageTotal["duration"], values: readonly number[]): void {
  if (values.length === 0) {
    expect(found).toBeUndefined();
    return;
  }
  const sorted = values.toSorted((one, other) => one - other);
  for (const [name, share] of [
    ["p50", 0.5],
    ["p95", 0.95],
    ["p99", 0.99],
  ] as const) {
    const exact = sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
    expect(Math.abs((found?.[name] ?? Number.NaN) / exact - 1)).toBeLessThanOrEqual(0.05);
  }
}

function newestFirst(one: UsageRecord, other: UsageRecord): number {
  return other.startedAt - one.startedAt || (one.id < other.id ? 1 : -1);
}

/** Sums of the first days go, and their calls stay. */
async function pruneSums({ store }: Ledger): Promise<void> {
  const limits = { calls: 0, hours: midnight + 2 * dayMs, days: 0 };
  await removeAll(() => store.prune(limits, 1_000));
}

async function readPages(
  { reports }: Ledger,
  filter: CallFilter,
  limit: number,
): Promise<{ readonly found: readonly UsageRecord[]; readonly sizes: readonly number[] }> {
  const found: UsageRecord[] = [];
  const sizes: number[] = [];
  let after: string | undefined;
  do {
    const page = await reports.calls(filter, { limit, after });
    found.push(...page.items);
    sizes.push(page.items.length);
    after = page.next;
  } while (after !== undefined);
  return { found, sizes };
}
