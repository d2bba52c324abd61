import { metricsOf } from "../support/metrics-of.ts";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { Random } from "../../simulator/answer/random.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { makeCall, type CallPlace, type SeenCall } from "../support/ledger-truth-caller.ts";
import { mixSections, planCall, wholeMix } from "../support/ledger-truth-mix.ts";
import { checkLedger, sumRollUps, sumRows, type LedgerReport } from "../support/ledger-truth.ts";
import { sizeOf } from "../support/requirement.ts";

const callCount = sizeOf({ quick: 1_000, all: 10_000, measured: 40_000 });
const callersAtOnce = 64;
const seed = 20_260_104;

describe(`${callCount} mixed calls, ${callersAtOnce} at a time,`, () => {
  let gateway: TestGateway;
  let rows: readonly UsageRecord[];
  let report: LedgerReport;

  beforeAll(async () => {
    gateway = await startGateway({
      simulator: { truthLogLimit: callCount * 4 },
      sections: { telemetry: "{ log_level: error, log_format: json }" },
    });
    await gateway.reconfigure(mixSections(gateway.simulator));
    const startedAt = performance.now();
    const calls = await makeCalls(gateway);
    const seconds = (performance.now() - startedAt) / 1000;
    while (gateway.simulator.openCalls > 0) await Bun.sleep(5);
    rows = await gateway.usage();
    report = checkLedger({ calls, rows, truth: gateway.simulator.truth.entries });
    process.stdout.write(`${(callCount / seconds).toFixed(0)} calls/s: ${Bun.inspect(report)}\n`);
  }, 600_000);
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
  });

  test("have exactly one row each", () => {
    expect(report.calls).toBe(callCount);
    expect(report).toMatchObject({ missing: 0, extra: 0 });
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
  });

  test("have the outcome and the status that their callers saw", () => {
    expect({ wrongEnds: report.wrongEnds, problems: report.problems }).toEqual({
      wrongEnds: 0,
      problems: [],
    });
  });

  test("have exactly the upstream's tokens, or the delivered ones without its count", () => {
    expect(report.wrongTokens).toBe(0);
    expect(report.exact).toBeGreaterThan(callCount * 0.75);
    expect(report.uncounted.calls).toBeGreaterThan(callCount * 0.04);
  });

  test("are of every kind of the mix", () => {
    const left = report.outcomes["left: abandoned, counted"] ?? 0;
    const leftEarly = report.outcomes["left: abandoned, estimated"] ?? 0;
    expect(left).toBeGreaterThan(callCount * 0.04);
    expect(leftEarly).toBeGreaterThan(callCount * 0.02);
    expect(rows.filter(({ attempts }) => attempts > 1).length).toBeGreaterThan(callCount * 0.015);
    const ends = Object.keys(report.outcomes);
    expect(ends.filter((name) => /lost|interrupted|turned-away/.test(name))).toEqual([]);
  });

  test("have roll-ups that equal the sums of their rows", async () => {
    const { reports } = gateway.app.admin;
    expect(await sumRollUps(reports)).toEqual(sumRows(rows));
  });

  test("have the same numbers in the metrics and the ledger", async () => {
    const text = await metricsOf(gateway.adminUrl);
    expect(metricsIn(text, "sluice_calls_total")).toEqual(
      countRows(rows, (row) => [
        [
          `environment="${row.environment}",model="${row.model}",dialect="${row.dialect}",status="${row.status}",outcome="${row.outcome}"`,
          1,
        ],
      ]),
    );
    expect(metricsIn(text, "sluice_tokens_total")).toEqual(
      countRows(rows, ({ model, usageSource, inputTokens, outputTokens }) => [
        [`model="${model}",direction="input",source="${usageSource}"`, inputTokens],
        [`model="${model}",direction="output",source="${usageSource}"`, outputTokens],
      ]),
    );
  });
});

/** Callers with one key each, which make calls in sequence. */
async function makeCalls(gateway: TestGateway): Promise<readonly SeenCall[]> {
  const random = new Random(seed);
  const calls: SeenCall[] = [];
  let planned = 0;
  const callUntilDone = async (place: CallPlace, caller: number): Promise<void> => {
    while (planned < callCount) {
      planned += 1;
      const mark = `c${caller}-${planned}`;
      calls.push(await makeCall(planCall(wholeMix, random, mark), place));
    }
  };
  const places: CallPlace[] = [];
  while (places.length < callersAtOnce) {
    const { id: keyId, text: key } = await gateway.createKey();
    places.push({ url: gateway.url, key, keyId });
  }
  await Promise.all(places.map(callUntilDone));
  return calls;
}

/** Values by labels. */
function metricsIn(text: string, name: string): Readonly<Record<string, number>> {
  const lines = text.split("\n").filter((line) => line.startsWith(`${name}{`));
  const values = lines.map((line) => {
    const [, labels = "", value] = /\{(.*)\} (\S+)$/.exec(line) ?? [];
    return [labels, Number(value)] as const;
  });
  return sorted(values);
}

function countRows(
  rows: readonly UsageRecord[],
  countsOf: (row: UsageRecord) => readonly (readonly [string, number])[],
): Readonly<Record<string, number>> {
  const sums = new Map<string, number>();
  for (const row of rows) {
    for (const [labels, count] of countsOf(row)) sums.set(labels, (sums.get(labels) ?? 0) + count);
  }
  return sorted([...sums]);
}

function sorted(values: readonly (readonly [string, number])[]): Readonly<Record<string, number>> {
  return Object.fromEntries(values.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
