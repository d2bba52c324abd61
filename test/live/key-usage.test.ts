import { expect, test } from "bun:test";
import { chatOf } from "../support/bodies.ts";
import { startGateway } from "../support/gateway.ts";
import { ManualClock } from "../support/manual-clock.ts";

const ask = { model: "chat-model", messages: [{ role: "user", content: "Hello" }] };
const path = "/v1/usage";
const bearer = (text: string) => ({ headers: { authorization: `Bearer ${text}` } });

interface KeyUsage {
  readonly object: string;
  readonly key_id: string;
  readonly limits: readonly {
    readonly scope: string;
    readonly requests: { readonly used: number; readonly remaining: number } | null;
    readonly tokens: { readonly limit: number; readonly used: number; readonly reset_ms: number };
  }[];
  readonly totals: Readonly<Record<"day" | "month", Readonly<Record<string, number>>>> | null;
}

async function readUsage(response: Promise<Response>): Promise<KeyUsage> {
  const answer = await response;
  const text = await answer.text();
  expect([answer.status, text]).toEqual([200, text]);
  expect(answer.headers.get("cache-control")).toBe("no-store");
  return JSON.parse(text) as KeyUsage;
}

test("a key reads its limits, its window and its totals, to the token, and nothing of others", async () => {
  const clock = new ManualClock();
  await using gateway = await startGateway({ overrides: { clock } });
  const limits = { requestsPerMinute: 100, tokensPerMinute: 100_000 };
  const mine = await gateway.createKey({ limits, account: "mine" });
  const other = await gateway.createKey({ limits, account: "other" });
  let input = 0;
  let output = 0;
  for (let count = 0; count < 3; count += 1) {
    const response = await gateway.post("/v1/chat/completions", ask, bearer(mine.text));
    const { usage } = await chatOf(response);
    input += usage?.prompt_tokens ?? 0;
    output += usage?.completion_tokens ?? 0;
  }
  await gateway.usage();
  const found = await readUsage(gateway.get(path, bearer(mine.text)));
  expect(found).toMatchObject({ object: "usage", key_id: mine.id, plan: "enterprise" });
  expect(found.limits).toMatchObject([
    {
      scope: "key",
      window_seconds: 60,
      requests: { limit: 100, used: 3, remaining: 97 },
      tokens: { limit: 100_000, used: input + output },
    },
  ]);
  const sums = { calls: 3, failed_calls: 0, input_tokens: input, output_tokens: output };
  const now = new Date(clock.now());
  const day = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()) / 1000;
  const month = Date.UTC(now.getUTCFullYear(), now.getUTCMonth()) / 1000;
  expect(found.totals).toMatchObject({
    day: { since: day, ...sums },
    month: { since: month, ...sums },
  });
  const unused = await readUsage(gateway.get("/usage", bearer(other.text)));
  expect(unused).toMatchObject({ key_id: other.id, totals: { month: { calls: 0 } } });
  expect(unused.limits[0]?.tokens.used).toBe(0);
  const named = await gateway.get(`${path}?key_id=${mine.id}`, bearer(other.text));
  expect(await named.text()).not.toContain(mine.id);
  expect((await gateway.get(path, bearer(`${mine.text}x`))).status).toBe(401);
});

test("a key that is out of tokens reads its usage, and no more often than it may list models", async () => {
  const clock = new ManualClock();
  await using gateway = await startGateway({ overrides: { clock } });
  const limits = { requestsPerMinute: 4, tokensPerMinute: 100 };
  const { text } = await gateway.createKey({ limits, account: "mine" });
  const calls: number[] = [];
  for (let count = 0; count < 2; count += 1) {
    const capped = { ...ask, max_tokens: 70 };
    const response = await gateway.post("/v1/chat/completions", capped, bearer(text));
    calls.push(response.status);
    await response.text();
  }
  expect(calls).toEqual([200, 429]);
  const { limits: found } = await readUsage(gateway.get(path, bearer(text)));
  expect(found[0]?.tokens.reset_ms).toBeGreaterThan(0);
  const statuses: number[] = [];
  for (let count = 0; count < 4; count += 1) {
    const response = await gateway.get(path, bearer(text));
    statuses.push(response.status);
    await response.text();
  }
  expect(statuses).toEqual([200, 200, 200, 429]);
});

test("the limits of the account and a guarantee are told beside the key's", async () => {
  const models = `
  chat-model:
    kind: chat
    context_window: 8192
    targets: [{ model: simulated-chat, upstream: simulator, pool: main }]`;
  const pools = "{ main: { tokens_per_minute: 1000000 } }";
  await using gateway = await startGateway({ sections: { models, pools } });
  const sold = { provisionedUnits: 2, provisionedPool: "main" };
  const { text } = await gateway.createKey({ account: "shop", ...sold });
  const listed = await gateway.admin("GET", "/admin/v1/accounts?name=shop");
  const { data } = (await listed.json()) as { data: { id: string; revision: number }[] };
  const changed = await gateway.admin("PATCH", `/admin/v1/accounts/${data[0]?.id}`, {
    revision: data[0]?.revision,
    limits: { requests_per_minute: 50, tokens_per_minute: 5_000 },
  });
  expect(changed.status).toBe(200);
  const { limits } = await readUsage(gateway.get(path, bearer(text)));
  expect(limits.map(({ scope }) => scope)).toEqual(["key", "account", "guarantee"]);
  expect(limits[1]?.tokens.limit).toBe(5_000);
  expect(limits[2]?.requests).toBeNull();
  expect(limits[2]?.tokens.limit).toBeGreaterThan(0);
});
