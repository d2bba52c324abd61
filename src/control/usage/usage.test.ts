import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { AdminFixture, type FixtureRequest } from "../../../test/support/admin-fixture.ts";
import { StorageUnavailable } from "../../store/errors.ts";
import { recordOf } from "../../../test/contracts/usage-fixtures.ts";
import {
  callDetailSchema,
  callRowSchema,
  listOf,
  seriesSchema,
  totalsSchema,
} from "../contract.ts";

import { exportUsage } from "./usage-export.ts";

const minuteMs = 60_000;

let admin: AdminFixture;
beforeEach(() => {
  admin = new AdminFixture();
});
afterEach(() => admin[Symbol.asyncDispose]());

async function insert(count: number, values: Parameters<typeof recordOf>[1] = {}): Promise<void> {
  const startedAt = admin.clock.now() - 5 * minuteMs;
  const name = JSON.stringify(values);
  await admin.stores.usage.insert(
    Array.from({ length: count }, (_none, index) =>
      recordOf(`req_${name}_${String(index).padStart(5, "0")}`, { startedAt, ...values }),
    ),
  );
}

function downloadOf(body: unknown): ReadableStream<Uint8Array> {
  if (body instanceof Response && body.body !== null) return body.body;
  throw new Error("not a download");
}

async function download(request: FixtureRequest): Promise<string> {
  const { body } = await admin.result("exportUsage", request);
  return new Response(downloadOf(body)).text();
}

describe("reports", () => {
  test("totals are those of the last day, grouped as requested", async () => {
    await insert(3, { model: "m1", keyId: "key_1" });
    await insert(2, { model: "m2", keyId: "key_1", outcome: "abandoned", status: 499 });
    await insert(1, { model: "old", startedAt: admin.clock.now() - 25 * 60 * minuteMs });
    const all = await admin.run(totalsSchema, "getUsageTotals");
    expect(all.data).toHaveLength(1);
    expect(all.data[0]).toMatchObject({ group: {}, calls: 5, input_tokens: 50 });
    const byModel = await admin.run(totalsSchema, "getUsageTotals", { query: { by: "model,key" } });
    const calls = Object.fromEntries(
      byModel.data.map(({ group, calls: count }) => [group["model"], [group["key"], count]]),
    );
    expect(calls).toEqual({ m1: ["key_1", 3], m2: ["key_1", 2] });
    const query = { since: "2025-12-30", by: "model", model: "old" };
    expect((await admin.run(totalsSchema, "getUsageTotals", { query })).data).toHaveLength(1);
  });

  test("durations have tenths of a millisecond, in sums, calls and downloads", async () => {
    await insert(1, { durationMs: 1234.5678901, firstEventMs: 3.14159 });
    const isRounded = (value: number): boolean => Math.round(value * 10) / 10 === value;
    const { data: totals } = await admin.run(totalsSchema, "getUsageTotals");
    const { data: points } = await admin.run(seriesSchema, "getUsageSeries");
    for (const { duration_ms: duration, first_event_ms: first } of [...totals, ...points]) {
      const sums = [...Object.values(duration ?? {}), ...Object.values(first ?? {})];
      expect(sums).toHaveLength(6);
      expect(sums.filter((value) => !isRounded(value))).toEqual([]);
    }
    const { data: calls } = await admin.run(listOf(callRowSchema), "listCalls");
    expect(calls[0]).toMatchObject({ duration_ms: 1234.6, first_event_ms: 3.1 });
    expect(await download({ query: { format: "csv" } })).toContain(",3.1,1234.6,false,,,\r\n");
  });

  test("a series has points, in steps that suit its length or are requested", async () => {
    await insert(4);
    const step = async (query: Record<string, string>) =>
      (await admin.run(seriesSchema, "getUsageSeries", { query })).step;
    expect(await step({ since: "1h" })).toBe("minute");
    expect(await step({ since: "7d" })).toBe("hour");
    expect(await step({ since: "30d" })).toBe("day");
    const query = { since: "1h", step: "hour" };
    const series = await admin.run(seriesSchema, "getUsageSeries", { query });
    expect(series.data.map(({ calls }) => calls)).toEqual([4]);
    const refusal = await admin.refusal("getUsageSeries", {
      query: { since: "30d", step: "minute" },
    });
    expect(refusal.param).toBe("step");
  });

  test("sums are grouped and filtered by outcome and code", async () => {
    const refused = { outcome: "failed", status: 429 } as const;
    await insert(2, { ...refused, code: "rate_limit_exceeded" });
    await insert(1, { ...refused, code: "budget_exceeded" });
    await insert(3);
    const by = "outcome,code";
    for (const since of ["1h", "3d"]) {
      const { data } = await admin.run(totalsSchema, "getUsageTotals", { query: { by, since } });
      expect(data.map(({ group, calls }) => [group["outcome"], group["code"], calls])).toEqual([
        ["completed", null, 3],
        ["failed", "rate_limit_exceeded", 2],
        ["failed", "budget_exceeded", 1],
      ]);
      const query = { by, since, code: "budget_exceeded", outcome: "failed", step: "day" };
      const series = await admin.run(seriesSchema, "getUsageSeries", { query });
      expect(series.data.map(({ calls }) => calls)).toEqual([1]);
    }
    const query = { code: "rate_limit_exceeded" };
    const calls = await admin.run(listOf(callRowSchema), "listCalls", { query });
    expect(calls.data).toHaveLength(2);
    expect((await download({ query })).trimEnd().split("\r\n")).toHaveLength(3);
  });

  test("groups have names beside ids, also of keys without one and of what was removed", async () => {
    const { id: applicationId, accountId } = await admin.application("Shop", "search");
    const { key } = await admin.issue(applicationId);
    const { key: named } = await admin.issue(applicationId, { name: "=nightly" });
    const owners = { accountId, applicationId };
    await insert(3, { ...owners, keyId: key.id });
    await insert(2, { ...owners, keyId: named.id });
    await insert(1, { accountId, applicationId: "app_gone", keyId: "key_gone" });
    const query = { by: "account,application,key,model", since: "1h" };
    const names = [
      { account: "Shop", application: "search", key: "search" },
      { account: "Shop", application: "search", key: "=nightly" },
      { account: "Shop", application: null, key: null },
    ];
    const totals = await admin.run(totalsSchema, "getUsageTotals", { query });
    expect(totals.data.map((total) => total.names)).toEqual(names);
    const series = await admin.run(seriesSchema, "getUsageSeries", { query });
    expect(series.data.map((point) => point.names)).toEqual(names);
    const plain = await admin.run(totalsSchema, "getUsageTotals", { query: { by: "model" } });
    expect(plain.data[0]?.names).toEqual({});
  });

  test("invalid queries are refused with their field", async () => {
    for (const [query, param] of [
      [{ by: "model,colour" }, "by"],
      [{ since: "yesterday" }, "since"],
      [{ since: "1h", until: "2h" }, "since"],
      [{ status: "many" }, "status"],
      [{ outcome: "lost" }, "outcome"],
      [{ class: "first" }, "class"],
      [{ limit: "1001" }, "limit"],
    ] as const) {
      expect((await admin.refusal("getUsageTotals", { query })).param).toBe(param);
    }
  });

  test("calls are listed page by page, and one is shown by its id", async () => {
    await insert(5);
    const first = await admin.run(listOf(callRowSchema), "listCalls", { query: { limit: "3" } });
    const query = { limit: "3", cursor: first.next_cursor ?? "" };
    const rest = await admin.run(listOf(callRowSchema), "listCalls", { query });
    const rows = [...first.data, ...rest.data];
    expect(rows).toHaveLength(5);
    expect(rest.next_cursor).toBeNull();
    const [row] = rows;
    expect(await admin.run(callDetailSchema, "getCall", { id: row?.id ?? "" })).toEqual({
      ...(row ?? callRowSchema.parse({})),
      cost_parts: null,
      routing: null,
    });
    const failed = { query: { outcome: "failed" } };
    expect((await admin.run(listOf(callRowSchema), "listCalls", failed)).data).toEqual([]);
  });
});

describe("a call with several attempts", () => {
  const attempt = { model: "alpha-sonnet-4", startMs: 0.43, durationMs: 2000, mayBeBilled: false };
  const routing = {
    candidates: [{ target: "east/m", model: "alpha-sonnet-4", why: "priority 1" }],
    attempts: [
      {
        ...attempt,
        target: "east/m",
        outcome: "connection-lost",
        mayBeBilled: true,
        decision: "tried the next target",
      },
      { ...attempt, target: "west/m", outcome: "answered" },
    ],
  } as const;

  test("is shown with its candidates and every attempt", async () => {
    await insert(1, { id: "req_routed", routing, mayBeBilledTwice: true, attempts: 2 });
    const shown = await admin.run(callDetailSchema, "getCall", { id: "req_routed" });
    expect(shown.may_be_billed_twice).toBe(true);
    expect(shown.routing?.candidates).toEqual([...routing.candidates]);
    expect(shown.routing?.attempts.map((each) => Object.values(each))).toEqual([
      ["east/m", "alpha-sonnet-4", 0.4, 2000, "connection-lost", true, "tried the next target"],
      ["west/m", "alpha-sonnet-4", 0.4, 2000, "answered", false, null],
    ]);
  });

  test("shows its account holder the upstreams, without their own identifiers", async () => {
    const arn = "arn:aws:bedrock:us-east-1:111122223333:provisioned-model/abcd";
    const secret = {
      candidates: [{ ...routing.candidates[0], target: `east/${arn}` }],
      attempts: routing.attempts.map((each) => ({ ...each, target: `east/${arn}` })),
    };
    await insert(1, { id: "req_routed", routing: secret, target: `east/${arn}` });
    const { principal } = inputOf(new AbortController().signal).call;
    const as = { ...principal, role: "account_holder", accountId: "acct_a" } as const;
    const shown = await admin.run(callDetailSchema, "getCall", { id: "req_routed", as });
    expect(shown).toMatchObject({ target: "east", model: "alpha-sonnet-4" });
    expect(shown.routing?.candidates.map(({ target }) => target)).toEqual(["east"]);
    expect(shown.routing?.attempts.map(({ target }) => target)).toEqual(["east", "east"]);
    const { data } = await admin.run(listOf(callRowSchema), "listCalls", { as });
    expect(data.map(({ target }) => target)).toEqual(["east"]);
    const csv = await download({ as });
    const lines = await download({ as, query: { format: "ndjson" } });
    expect(csv).toContain(",east,");
    expect(lines).toContain('"target":"east"');
    expect(JSON.stringify([shown, data, csv, lines])).not.toContain("arn:");
    expect(await download({})).toContain(arn);
    for (const [operation, query, param] of [
      ["getUsageTotals", { by: "key,target" }, "by"],
      ["getUsageSeries", { by: "target" }, "by"],
      ["getUsageTotals", { target: `east/${arn}` }, "target"],
      ["listCalls", { target: `east/${arn}` }, "target"],
      ["exportUsage", { target: `east/${arn}` }, "target"],
    ] as const) {
      expect((await admin.refusal(operation, { query, as })).param).toBe(param);
    }
    const byTarget = await admin.run(totalsSchema, "getUsageTotals", { query: { by: "target" } });
    expect(byTarget.data[0]?.group).toEqual({ target: `east/${arn}` });
  });

  test("is found among calls that may be billed twice, in lists and downloads", async () => {
    await insert(3, { keyId: "key_1" });
    await insert(1, { id: "req_routed", routing, mayBeBilledTwice: true });
    const query = { may_be_billed_twice: "true" };
    const { data } = await admin.run(listOf(callRowSchema), "listCalls", { query });
    expect(data.map(({ id, may_be_billed_twice: flag }) => [id, flag])).toEqual([
      ["req_routed", true],
    ]);
    expect(JSON.stringify(data)).not.toContain("west/m");
    const csv = (await download({})).trimEnd().split("\r\n");
    expect(csv[0]).toEndWith(",duration_ms,may_be_billed_twice,via,end_user,tags");
    expect(csv.filter((line) => line.endsWith(",true,,,"))).toHaveLength(1);
    const filtered = await download({ query: { ...query, format: "ndjson" } });
    expect(filtered.trimEnd().split("\n")).toHaveLength(1);
    const refusal = await admin.refusal("listCalls", { query: { may_be_billed_twice: "no" } });
    expect(refusal.param).toBe("may_be_billed_twice");
  });
});

describe("the download", () => {
  test("has every call once, over many pages, as one line of JSON each", async () => {
    await insert(1203);
    const text = await download({ query: { format: "ndjson" } });
    const rows = text
      .trimEnd()
      .split("\n")
      .map((line) => callRowSchema.parse(JSON.parse(line)));
    expect(new Set(rows.map(({ id }) => id)).size).toBe(1203);
    expect(rows).toHaveLength(1203);
  });

  test("is CSV with a head, quoted where needed and without formulas", async () => {
    await insert(1, { id: "req_csv", application: '=HYPERLINK("x"), y' });
    const [head, line, end] = (await download({})).split("\r\n");
    expect(head).toStartWith("id,started_at,environment,account_id,");
    expect(line).toContain(`,"'=HYPERLINK(""x""), y",`);
    expect(line?.split(",")).toHaveLength((head?.split(",").length ?? 0) + 1);
    expect(end).toBe("");
  });

  test("has no formula for a spreadsheet that splits at semicolons or reads wide characters", async () => {
    const names = ["x;=1+1", 'x; "=1+1', "\uff1d1+1", "\uff20SUM(1)", ";+1;-1", "a-b=c"];
    for (const [index, application] of names.entries()) {
      await insert(1, { id: `req_${index}`, application });
    }
    const csv = await download({});
    expect(csv).toContain(",x;'=1+1,");
    expect(csv).toContain(`,"x; ""'=1+1",`);
    expect(csv).toContain(",'\uff1d1+1,");
    expect(csv).toContain(",'\uff20SUM(1),");
    expect(csv).toContain(",;'+1;'-1,");
    expect(csv).toContain(",a-b=c,");
  });

  test("without calls has only its header", async () => {
    const lines = (await download({})).split("\r\n");
    expect(lines).toHaveLength(2);
    expect(await download({ query: { format: "ndjson" } })).toBe("");
  });

  test("reads no page ahead of its reader, and none after the reader left", async () => {
    await insert(2000);
    let pages = 0;
    const { reports } = admin.services;
    const counting = {
      totals: reports.totals.bind(reports),
      series: reports.series.bind(reports),
      call: reports.call.bind(reports),
      calls: (...args: Parameters<typeof reports.calls>) => {
        pages += 1;
        return reports.calls(...args);
      },
    };
    const operation = exportUsage({ ...admin.services, reports: counting });
    const body = await operation.run(inputOf(new AbortController().signal));
    const reader = downloadOf(body).getReader();
    await reader.read();
    await reader.read();
    expect(pages).toBe(2);
    await reader.cancel();
    expect(pages).toBe(2);
  });

  test("is one of two that a user may have open, until they end or are left", async () => {
    await insert(1200);
    const operation = exportUsage(admin.services);
    const open = async () =>
      downloadOf(await operation.run(inputOf(new AbortController().signal))).getReader();
    const readers = [await open(), await open()];
    expect(open()).rejects.toMatchObject({ status: 429 });
    await readers[0]?.cancel();
    readers.push(await open());
    expect(open()).rejects.toMatchObject({ status: 429 });
    while (!(await readers[1]?.read())?.done);
    await (await open()).cancel();
    await readers[2]?.cancel();
  });

  test("with an unavailable store is an error, not an empty file", async () => {
    const { reports } = admin.services;
    const broken = {
      totals: reports.totals.bind(reports),
      series: reports.series.bind(reports),
      call: reports.call.bind(reports),
      calls: () => Promise.reject(new StorageUnavailable("gone")),
    };
    const operation = exportUsage({ ...admin.services, reports: broken });
    const run = operation.run(inputOf(new AbortController().signal));
    const failure: unknown = await run.catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StorageUnavailable);
  });

  test("ends with its caller", async () => {
    await insert(1200);
    const caller = new AbortController();
    const { body } = await admin.result("exportUsage", { signal: caller.signal });
    const reader = downloadOf(body).getReader();
    await reader.read();
    caller.abort(new Error("left"));
    const failure: unknown = await reader.read().catch((error: unknown) => error);
    expect(failure).toEqual(new Error("left"));
  });
});

function inputOf(signal: AbortSignal) {
  const principal = {
    kind: "local",
    userId: undefined,
    name: "local",
    role: "operator",
    accountId: undefined,
    scopes: ["read"],
  } as const;
  const call = { id: "req_1", principal, signal, address: undefined };
  return { call, parameters: {}, query: undefined, body: undefined };
}
