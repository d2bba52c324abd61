import { Database, SQLiteError } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { z } from "zod";
import {
  refusalSchema,
  refusalsSchema,
  type RefusalView,
} from "../../src/control/contract/refusals.ts";
import { issuedTokenSchema } from "../../src/control/contract/access.ts";
import { generateApiKey } from "../../src/domain/keys/api-key.ts";
import { startGateway, type GatewayOptions, type TestGateway } from "../support/gateway.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { bearer, Operator } from "../support/operator.ts";
import { runSluice } from "../support/sluice-process.ts";
import { eventually } from "./outage-gateway.ts";

const chat = (rest: object = {}) => ({
  model: "chat-model",
  max_tokens: 5,
  messages: [{ role: "user", content: "echo: hi" }],
  ...rest,
});

async function read<Answer>(schema: z.ZodType<Answer>, response: Response): Promise<Answer> {
  return schema.parse(await response.json());
}

/** The explanation of the request that the gateway has just refused. */
async function explained(gateway: TestGateway, response: Response): Promise<RefusalView> {
  await response.text();
  const id = response.headers.get("x-request-id") ?? "";
  const path = `/admin/v1/refusals/${id}`;
  // A process tells of its refusals while it answers.
  await eventually("the refusal is known", async () => (await gateway.admin("GET", path)).ok);
  const refusal = await read(refusalSchema, await gateway.admin("GET", path));
  expect([refusal.id, refusal.status]).toEqual([id, response.status]);
  return refusal;
}

async function ruleOf(gateway: TestGateway, response: Response): Promise<string> {
  return (await explained(gateway, response)).rule;
}

const twoEnvironments = `
  - { name: test, hosts: ["*"], models: ["*"] }
  - { name: other, hosts: [other.example.com], models: ["*"] }`;

test("every 401 is explained by its rule, which callers do not see", async () => {
  const clock = new ManualClock();
  await using gateway = await startGateway({
    overrides: { clock },
    sections: { environments: twoEnvironments },
  });
  const operator = new Operator(gateway);
  const ask = async (text: string): Promise<readonly [string, string | null]> => {
    const { rule, key_id: id } = await explained(
      gateway,
      await gateway.get("/v1/models", bearer(text)),
    );
    return [rule, id];
  };
  const missing = await fetch(`${gateway.url}/v1/models`);
  expect(await ruleOf(gateway, missing)).toBe("key_missing");
  expect(await ask("sk-something-else")).toEqual(["key_malformed", null]);
  const stranger = generateApiKey((target) => crypto.getRandomValues(target)).text;
  expect(await ask(stranger)).toEqual(["key_unknown", null]);
  const forged = generateApiKey(withPublicId(gateway.key.slice(7, 15))).text;
  expect(await ask(forged)).toEqual(["key_mismatch", null]);
  const other = await gateway.createKey({ environment: "other" });
  expect(await ask(other.text)).toEqual(["other_environment", other.id]);
  const dated = await gateway.createKey({ expiresAt: clock.now() + 1_000 });
  clock.advance(1_000);
  expect(await ask(dated.text)).toEqual(["key_expired", dated.id]);
  const rotated = await gateway.createKey();
  await operator.rotate(rotated.id, { compromised: true });
  expect(await ask(rotated.text)).toEqual(["secret_ended", rotated.id]);
  const disabled = await gateway.createKey();
  await operator.change(`/admin/v1/keys/${disabled.id}`, { disabled: true });
  expect(await ask(disabled.text)).toEqual(["key_disabled", disabled.id]);
  const revoked = await gateway.createKey();
  await operator.revoke(revoked.id);
  expect(await ask(revoked.text)).toEqual(["key_revoked", revoked.id]);
});

/** A generated key with a known public id. */
function withPublicId(publicId: string): (target: Uint8Array) => Uint8Array {
  const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  let isFirst = true;
  return (target) => {
    if (!isFirst) return crypto.getRandomValues(target);
    isFirst = false;
    return target.map((_, index) => digits.indexOf(publicId.charAt(index % publicId.length)));
  };
}

test("refusals of the network, the plan, the upstream and the control plane are explained", async () => {
  await using gateway = await startGateway({
    sections: { models: modelsWithFault },
  });
  const bound = await gateway.createKey({ allowedNetworks: ["10.0.0.0/8"] });
  const network = await explained(gateway, await gateway.get("/v1/models", bearer(bound.text)));
  expect(network).toMatchObject({ status: 403, rule: "network_not_allowed", key_id: bound.id });
  expect(network.summary).toContain("127.0.0.1");
  expect(network.summary).toContain("10.0.0.0/8");
  const stranded = await gateway.createKey({ plan: "ghost" });
  const plan = await explained(gateway, await gateway.get("/v1/models", bearer(stranded.text)));
  expect(plan).toMatchObject({ status: 503, rule: "plan_missing", key_id: stranded.id });
  const failing = await gateway.post("/v1/chat/completions", chat({ model: "failing" }));
  expect(await explained(gateway, failing)).toMatchObject({
    status: 503,
    rule: "upstream",
    model: "failing",
  });
  const nobody = await fetch(`${gateway.adminUrl}/admin/v1/keys`);
  expect(await ruleOf(gateway, nobody)).toBe("not_signed_in");
  const reader = await tokenOf(gateway, { role: "auditor" });
  const refused = await fetch(`${gateway.adminUrl}/admin/v1/accounts`, {
    method: "POST",
    headers: { ...bearer(reader).headers, "content-type": "application/json" },
    body: JSON.stringify({ name: "mine" }),
  });
  expect([refused.status, await ruleOf(gateway, refused)]).toEqual([403, "not_permitted"]);
});

test("refusals of the control plane before a sign-in are explained too", async () => {
  await using gateway = await startGateway();
  const signIn = (headers: Record<string, string>) =>
    fetch(`${gateway.adminUrl}/admin/v1/session`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ email: "nobody@example.com", password: "none of the right ones" }),
    });
  expect(await ruleOf(gateway, await signIn({}))).toBe("wrong_credentials");
  const foreign = await signIn({ origin: "https://elsewhere.example" });
  expect(await ruleOf(gateway, foreign)).toBe("wrong_origin");
  let last = await signIn({});
  for (let turn = 0; turn < 10 && last.status === 401; turn += 1) last = await signIn({});
  expect(await explained(gateway, last)).toMatchObject({ status: 429, rule: "too_many_requests" });
});

const modelsWithFault = `
  failing:
    kind: chat
    context_window: 200000
    targets: [{ upstream: simulator, model: fault-error-500 }]`;

/** A management token of a new user. */
async function tokenOf(gateway: TestGateway, user: object): Promise<string> {
  const email = `${crypto.randomUUID()}@example.com`;
  const made = await gateway.admin("POST", "/admin/v1/users", { email, ...user });
  const { id } = (await made.json()) as { id: string };
  const wanted = { name: "test", user_id: id, scopes: ["read"] };
  const answer = await gateway.admin("POST", "/admin/v1/tokens", wanted);
  return (await read(issuedTokenSchema, answer)).secret;
}

test("keys that cannot be checked are explained, known ones only after a long outage", async () => {
  const clock = new ManualClock();
  await using gateway = await startGateway({ overrides: { clock } });
  const { text: stranger } = generateApiKey((target) => crypto.getRandomValues(target));
  // Keys are refreshed twice a second: repeats until a request falls between two refreshes.
  const untilStale = async (text: string, passMs: number): Promise<Response> => {
    for (let tries = 0; tries < 20; tries += 1) {
      clock.advance(passMs);
      const response = await gateway.get("/v1/models", bearer(text));
      if (response.status === 503) return response;
    }
    throw new Error("the keys never were stale");
  };
  const unknown = await explained(gateway, await untilStale(stranger, 10_000));
  expect(unknown).toMatchObject({ rule: "snapshot_stale", key_id: null });
  const known = await explained(gateway, await untilStale(gateway.key, 901_000));
  expect(known).toMatchObject({ rule: "snapshot_stale" });
  expect(known.key_id).toStartWith("key_");
});

test("refusals of a gateway that shuts down are explained", async () => {
  await using gateway = await startGateway({ simulator: { tokensPerSecond: 50 } });
  const body = chat({
    stream: true,
    messages: [{ role: "user", content: "count: 40" }],
    max_tokens: 40,
  });
  const running = await gateway.post("/v1/chat/completions", body);
  const draining = gateway.app.drain();
  const refused = await gateway.get("/v1/models");
  expect([refused.status, await ruleOf(gateway, refused)]).toEqual([503, "draining"]);
  await running.text();
  await draining;
});

test("refusals of a gateway that cannot record usage are explained", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-full-"));
  const path = join(folder, "sluice.db");
  await using gateway = await startGateway({
    sections: {
      storage: `{ url: "sqlite:${path}" }`,
      ledger: "{ spool_limit: 64KiB, segment_size: 16KiB }",
    },
  });
  using holder = new Database(path);
  await whenUnlocked(() => holder.run("BEGIN IMMEDIATE"));
  let response = await gateway.post("/v1/chat/completions", chat());
  for (let calls = 0; calls < 1_000 && response.status === 200; calls += 1) {
    await response.text();
    response = await gateway.post("/v1/chat/completions", chat());
  }
  const refusal = await explained(gateway, response);
  holder.run("ROLLBACK");
  expect(refusal).toMatchObject({ status: 503, rule: "ledger_full", environment: "test" });
  expect(refusal.key_id).toStartWith("key_");
  rmSync(folder, { recursive: true, force: true });
});

/** A job of the gateway in this process may hold the lock, and ends only while nobody blocks it. */
async function whenUnlocked(run: () => void): Promise<void> {
  for (;;) {
    try {
      return run();
    } catch (error) {
      if (!(error instanceof SQLiteError) || error.code !== "SQLITE_BUSY") throw error;
    }
    await Bun.sleep(20);
  }
}

interface Full {
  readonly refused: Response;
  readonly clock: ManualClock;
  readonly gateway: TestGateway;
  readonly send: () => Promise<Response>;
}

/** Uses a key for a minute until it is refused, and returns the refusal. */
async function fill(
  limits: { requestsPerMinute: number; tokensPerMinute: number },
  body: object,
  use: (full: Full) => Promise<void>,
): Promise<void> {
  const clock = new ManualClock();
  // The Retry-After of each caller has a random addition.
  const options: GatewayOptions = { overrides: { clock, random: () => 0.9 }, key: { limits } };
  await using gateway = await startGateway(options);
  const send = (): Promise<Response> => gateway.post("/v1/chat/completions", body);
  for (let calls = 0; calls < 200; calls += 1) {
    const response = await send();
    if (response.status !== 200) return await use({ refused: response, clock, gateway, send });
    await response.text();
    clock.advance(1_700);
  }
  throw new Error("nothing was refused");
}

async function expectFreeExactlyAt({ window }: RefusalView, { clock, send }: Full): Promise<void> {
  const freeAt = Date.parse(window?.free_at ?? "");
  clock.advance(freeAt - clock.now() - 1);
  const early = await send();
  await early.text();
  clock.advance(1);
  const due = await send();
  await due.text();
  expect([early.status, due.status]).toEqual([429, 200]);
}

test("a refusal for too many requests shows the minute's use and when there is room", async () => {
  const limits = { requestsPerMinute: 7, tokensPerMinute: 1_000_000 };
  await fill(limits, chat(), async (full) => {
    const refusal = await explained(full.gateway, full.refused);
    expect(refusal).toMatchObject({ rule: "requests_per_minute", model: null });
    expect(refusal.window).toMatchObject({ limit: 7, used: 7, requested: 1 });
    await expectFreeExactlyAt(refusal, full);
  });
});

test("a refusal for too many tokens shows the minute's use and when there is room", async () => {
  const limits = { requestsPerMinute: 1_000, tokensPerMinute: 1_000 };
  const body = chat({ max_tokens: 150, messages: [{ role: "user", content: "count: 120" }] });
  await fill(limits, body, async (full) => {
    const refusal = await explained(full.gateway, full.refused);
    expect(refusal).toMatchObject({
      rule: "tokens_per_minute",
      key_id: expect.stringMatching(/^key_/),
      public_id: expect.stringMatching(/^\w{8}$/),
      account_id: expect.stringMatching(/^acct_/),
      application: "test-application",
      environment: "test",
    });
    const rows = (await full.gateway.usage()).filter(({ status }) => status === 200);
    const tokens = rows.reduce((sum, row) => sum + row.inputTokens + row.outputTokens, 0);
    expect(refusal.window).toMatchObject({ limit: 1_000, used: tokens });
    expect((refusal.window?.requested ?? 0) + tokens).toBeGreaterThan(1_000);
    await expectFreeExactlyAt(refusal, full);
  });
});

test("the explanation of a request larger than the limit states that it never fits", async () => {
  await using gateway = await startGateway();
  const limits = { requestsPerMinute: 1_000, tokensPerMinute: 1_000 };
  const key = await gateway.createKey({ limits });
  const body = chat({ max_tokens: 2_000 });
  const refused = await gateway.post("/v1/chat/completions", body, bearer(key.text));
  const { rule, window } = await explained(gateway, refused);
  expect(rule).toBe("request_too_large");
  expect(window).toMatchObject({ limit: 1_000, used: 0, free_at: null });
  expect(window?.requested).toBeGreaterThan(2_000);
});

test("the last 20 refusals of each key are kept, and no prompt is in any", async () => {
  await using gateway = await startGateway();
  const limits = { requestsPerMinute: 1, tokensPerMinute: 1_000_000 };
  const busy = await gateway.createKey({ limits });
  const quiet = await gateway.createKey({ limits });
  const word = "xylophone-canary-4417";
  const send = async (text: string): Promise<string> => {
    const body = chat({ messages: [{ role: "user", content: word }] });
    const response = await gateway.post("/v1/chat/completions", body, bearer(text));
    await response.text();
    return response.headers.get("x-request-id") ?? "";
  };
  await send(quiet.text);
  const once = await send(quiet.text);
  const ids: string[] = [];
  for (let calls = 0; calls <= 50; calls += 1) ids.push(await send(busy.text));
  const path = `/admin/v1/refusals?key_id=${busy.id}&limit=500`;
  const last = `/admin/v1/refusals/${ids.at(-1)}`;
  await eventually("the last is known", async () => (await gateway.admin("GET", last)).ok);
  const { data } = await read(refusalsSchema, await gateway.admin("GET", path));
  expect(data.map(({ id }) => id)).toEqual(ids.slice(-20).toReversed());
  expect((await gateway.admin("GET", `/admin/v1/refusals/${ids[1]}`)).status).toBe(404);
  expect((await gateway.admin("GET", `/admin/v1/refusals/${once}`)).status).toBe(200);
  expect(JSON.stringify(data)).not.toContain(word);
});

test("an account holder sees explanations of its own refusals only", async () => {
  await using gateway = await startGateway();
  const operator = new Operator(gateway);
  const limits = { requestsPerMinute: 1, tokensPerMinute: 1_000_000 };
  const own = await gateway.createKey({ account: "own", application: "own", limits });
  const other = await gateway.createKey({ account: "other", application: "other", limits });
  const refuse = async (text: string): Promise<string> => {
    await (await gateway.post("/v1/chat/completions", chat(), bearer(text))).text();
    const refused = await gateway.post("/v1/chat/completions", chat(), bearer(text));
    await refused.text();
    expect(refused.status).toBe(429);
    return refused.headers.get("x-request-id") ?? "";
  };
  const ids = { own: await refuse(own.text), other: await refuse(other.text) };
  const stray = await fetch(`${gateway.url}/v1/models`);
  const { account_id: accountId } = await operator.key(own.id);
  const token = await tokenOf(gateway, { role: "account_holder", account_id: accountId });
  const get = (path: string): Promise<Response> =>
    fetch(`${gateway.adminUrl}/admin/v1/refusals${path}`, bearer(token));
  const mine = await read(refusalSchema, await get(`/${ids.own}`));
  expect(mine).toMatchObject({ id: ids.own, key_id: own.id, account_id: accountId });
  expect((await get(`/${ids.other}`)).status).toBe(404);
  expect((await get(`/${stray.headers.get("x-request-id")}`)).status).toBe(404);
  expect((await read(refusalsSchema, await get("?limit=500"))).data.map(({ id }) => id)).toEqual([
    ids.own,
  ]);
  expect((await read(refusalsSchema, await get(`?key_id=${other.id}`))).data).toEqual([]);
  const told = await runSluice([
    "explain",
    ids.other,
    "--data-dir",
    gateway.config.dataDir,
    "--json",
  ]);
  expect([told.exitCode, told.errors]).toEqual([0, ""]);
  const shown = refusalSchema.parse(JSON.parse(told.output));
  expect(shown).toMatchObject({ rule: "requests_per_minute", key_id: other.id });
});
