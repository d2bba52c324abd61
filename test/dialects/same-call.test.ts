import { afterAll, beforeAll, expect, test } from "bun:test";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { metricsOf } from "../support/metrics-of.ts";

/** One call, asked for in each dialect. */
const say = "echo: one two three four";
const asked = { model: "chat-model", stream: false };
const dialects = {
  chat: {
    path: "/v1/chat/completions",
    body: { ...asked, messages: [{ role: "user", content: say }], max_completion_tokens: 50 },
  },
  responses: {
    path: "/v1/responses",
    body: { ...asked, input: [{ role: "user", content: say }], max_output_tokens: 50 },
  },
  messages: {
    path: "/v1/messages",
    body: { ...asked, messages: [{ role: "user", content: say }], max_tokens: 50 },
  },
} as const;
const names = ["chat", "responses", "messages"] as const;

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

test.each([false, true])("a call costs the same in every dialect; streamed: %p", async (stream) => {
  const rows: UsageRecord[] = [];
  for (const name of names) {
    const { path, body } = dialects[name];
    const response = await gateway.post(path, { ...body, stream });
    expect(response.status).toBe(200);
    await response.text();
    const [row] = await gateway.usage();
    if (row === undefined) throw new Error("the call has no row");
    expect(row.dialect).toBe(name);
    rows.push(row);
  }
  const [first, ...others] = rows;
  for (const row of others) {
    const { id, startedAt, durationMs, firstEventMs, dialect, reservedTokens } = row;
    expect<unknown>({
      ...first,
      id,
      startedAt,
      durationMs,
      firstEventMs,
      dialect,
      reservedTokens,
    }).toEqual(row);
    // The frame of a body differs by some bytes.
    expect(Math.abs((reservedTokens ?? 0) - (first?.reservedTokens ?? 0))).toBeLessThan(15);
  }
});

test("a plan refuses the same call in every dialect", async () => {
  for (const name of names) {
    const limits = { requestsPerMinute: 1, tokensPerMinute: 100_000 };
    const { text } = await gateway.createKey({ plan: "enterprise", limits });
    const headers = { authorization: `Bearer ${text}` };
    const statuses: number[] = [];
    for (const each of [name, ...names]) {
      const { path, body } = dialects[each];
      const response = await gateway.post(path, body, { headers });
      await response.text();
      statuses.push(response.status);
    }
    expect(statuses).toEqual([200, 429, 429, 429]);
  }
});

test("metrics, reports and single calls name the dialect", async () => {
  const page = await metricsOf(gateway.adminUrl);
  for (const name of names) {
    expect(page).toContain(
      `sluice_calls_total{environment="test",model="chat-model",dialect="${name}",status="200"`,
    );
  }
  const totals = (await (
    await gateway.admin("GET", "/admin/v1/usage/totals?by=dialect")
  ).json()) as {
    readonly data: readonly {
      readonly group: { readonly dialect: string };
      readonly calls: number;
    }[];
  };
  expect(totals.data.map(({ group }) => group.dialect).toSorted()).toEqual(names.toSorted());
  const calls = (await (
    await gateway.admin("GET", "/admin/v1/usage/calls?dialect=messages")
  ).json()) as {
    readonly data: readonly { readonly dialect: string }[];
  };
  expect(calls.data.length).toBeGreaterThan(1);
  expect(new Set(calls.data.map(({ dialect }) => dialect))).toEqual(new Set(["messages"]));
  const unknown = await gateway.admin("GET", "/admin/v1/usage/calls?dialect=other");
  expect(unknown.status).toBe(400);
});
