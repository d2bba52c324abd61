import { expect, test } from "bun:test";
import { errorOf } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { bearer, Operator } from "../support/operator.ts";

const chat = (content = "echo: hi") => ({
  model: "chat-model",
  max_tokens: 5,
  messages: [{ role: "user", content }],
});

const embedding = { model: "embedding-model", input: "hi" };

async function statusOf(gateway: TestGateway, text: string, headers: object = {}): Promise<number> {
  const init = { headers: { ...bearer(text).headers, ...headers } };
  const response = await gateway.post("/v1/chat/completions", chat(), init);
  await response.text();
  return response.status;
}

/** Returns how many calls of a burst are served; only limits may refuse the others. */
async function admittedOf(gateway: TestGateway, text: string, calls: number): Promise<number> {
  const statuses = await Promise.all(Array.from({ length: calls }, () => statusOf(gateway, text)));
  expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
  return statuses.filter((status) => status === 200).length;
}

async function modelsOf(gateway: TestGateway, text: string): Promise<readonly string[]> {
  const response = await gateway.get("/v1/models", bearer(text));
  const { data } = (await response.json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

test("a key lists and calls only its allowed models, and a change applies at once", async () => {
  await using gateway = await startGateway();
  const operator = new Operator(gateway);
  const key = await gateway.createKey({ allowedModels: ["chat-model"] });
  expect(await modelsOf(gateway, key.text)).toEqual(["chat-model"]);
  expect(await statusOf(gateway, key.text)).toBe(200);
  const refused = await gateway.post("/v1/embeddings", embedding, bearer(key.text));
  expect([refused.status, (await errorOf(refused)).code]).toEqual([400, "invalid_model"]);
  const hidden = await gateway.get("/v1/models/embedding-model", bearer(key.text));
  expect([hidden.status, (await errorOf(hidden)).code]).toEqual([404, "model_not_found"]);
  const path = `/admin/v1/keys/${key.id}`;
  expect(await operator.change(path, { allowed_models: ["no-such-model"] })).toBe(400);
  expect(await operator.change(path, { allowed_models: ["embedding-model"] })).toBe(200);
  expect(await modelsOf(gateway, key.text)).toEqual(["embedding-model"]);
  expect(await statusOf(gateway, key.text)).toBe(400);
  expect((await gateway.post("/v1/embeddings", embedding, bearer(key.text))).status).toBe(200);
  expect(await operator.change(path, { allowed_models: null })).toBe(200);
  expect(await modelsOf(gateway, key.text)).toEqual(["chat-model", "embedding-model"]);
  // Calls that are refused before the model is known have no row.
  expect((await gateway.usage()).map(({ status }) => status)).toEqual([200, 200]);
});

test("without a trusted proxy a forwarded address does not count", async () => {
  await using gateway = await startGateway();
  const key = await gateway.createKey({ allowedNetworks: ["10.0.0.0/8", "2001:db8::/32"] });
  const here = await gateway.createKey({ allowedNetworks: ["127.0.0.0/8"] });
  for (const forwarded of [
    "10.1.2.3",
    "10.1.2.3, 10.1.2.4",
    "127.0.0.1, 10.1.2.3",
    "2001:db8::1",
  ]) {
    const headers = {
      "x-forwarded-for": forwarded,
      "x-real-ip": "10.1.2.3",
      forwarded: "for=10.1.2.3",
    };
    expect([forwarded, await statusOf(gateway, key.text, headers)]).toEqual([forwarded, 403]);
    expect([forwarded, await statusOf(gateway, here.text, headers)]).toEqual([forwarded, 200]);
  }
  const refused = await gateway.get("/v1/models", bearer(key.text));
  const { code, message } = await errorOf(refused);
  expect([refused.status, code]).toEqual([403, "network_not_allowed"]);
  expect(message).not.toContain("10.0.0.0");
});

test("behind trusted proxies the address that the outermost one saw counts", async () => {
  await using gateway = await startGateway({
    sections: { http: `{ trusted_proxies: ["127.0.0.0/8", "192.0.2.0/24"] }` },
  });
  const key = await gateway.createKey({ allowedNetworks: ["10.0.0.0/8", "2001:db8::/32"] });
  const expected: readonly (readonly [string, number])[] = [
    ["10.1.2.3", 200],
    ["10.1.2.3:4711", 200],
    ["2001:db8::1", 200],
    ["[2001:db8::1]:4711", 200],
    ["::ffff:10.1.2.3", 200],
    ["203.0.113.9, 10.1.2.3", 200],
    ["10.1.2.3, 192.0.2.7", 200],
    ["10.1.2.3, 203.0.113.9", 403],
    ["10.1.2.3, 203.0.113.9, 192.0.2.7", 403],
    ["10.1.2.3, unknown", 403],
    ["10.1.2.3, 203.0.113.9,", 403],
    ["10.1.2", 403],
    ["0x0a.1.2.3", 403],
    ["", 403],
  ];
  for (const [forwarded, status] of expected) {
    const headers = { "x-forwarded-for": forwarded };
    expect([forwarded, await statusOf(gateway, key.text, headers)]).toEqual([forwarded, status]);
  }
  expect(await statusOf(gateway, key.text)).toBe(403);
});

test("a key works until it expires, and again after its expiry is moved", async () => {
  const clock = new ManualClock();
  await using gateway = await startGateway({ overrides: { clock } });
  const operator = new Operator(gateway);
  const key = await gateway.createKey({ expiresAt: clock.now() + 60_000 });
  expect(await statusOf(gateway, key.text)).toBe(200);
  clock.advance(59_999);
  expect(await statusOf(gateway, key.text)).toBe(200);
  clock.advance(1);
  expect(await statusOf(gateway, key.text)).toBe(401);
  expect((await operator.key(key.id)).status).toBe("expired");
  const later = new Date(clock.now() + 60_000).toISOString();
  expect(await operator.change(`/admin/v1/keys/${key.id}`, { expires_at: later })).toBe(200);
  expect(await statusOf(gateway, key.text)).toBe(200);
  clock.advance(60_000);
  expect(await statusOf(gateway, key.text)).toBe(401);
  expect(await operator.change(`/admin/v1/keys/${key.id}`, { expires_at: null })).toBe(200);
  expect(await statusOf(gateway, key.text)).toBe(200);
});

test("a key's own limits apply, and changed ones apply to the next call", async () => {
  const clock = new ManualClock();
  await using gateway = await startGateway({ overrides: { clock } });
  const operator = new Operator(gateway);
  const limits = { requestsPerMinute: 10, tokensPerMinute: 1_000_000 };
  const key = await gateway.createKey({ limits });
  const path = `/admin/v1/keys/${key.id}`;
  const change = (requests_per_minute: number, tokens_per_minute = 1_000_000): Promise<number> =>
    operator.change(path, { limits: { requests_per_minute, tokens_per_minute } });
  expect(await admittedOf(gateway, key.text, 6)).toBe(6);
  clock.advance(1_000);
  // Lowered: past use counts against the new limit at once.
  expect(await change(5)).toBe(200);
  expect(await admittedOf(gateway, key.text, 5)).toBe(0);
  // Raised: there is room for exactly the difference.
  expect(await change(8)).toBe(200);
  expect(await admittedOf(gateway, key.text, 10)).toBe(2);
  expect(await change(20)).toBe(200);
  expect(await admittedOf(gateway, key.text, 20)).toBe(12);
  // The same for tokens: past use exceeds the new limit.
  expect(await change(1_000, 60)).toBe(200);
  expect(await admittedOf(gateway, key.text, 3)).toBe(0);
  clock.advance(61_000);
  expect(await admittedOf(gateway, key.text, 1)).toBe(1);
});

test("a change of the plan, by the key or the configuration, applies to the next call", async () => {
  const clock = new ManualClock();
  const plans = (small: number): string => `
  small: { requests_per_minute: ${small}, tokens_per_minute: 1000000 }
  large: { requests_per_minute: 30, tokens_per_minute: 1000000 }
  enterprise: { custom: true, provisioned: true }`;
  await using gateway = await startGateway({
    overrides: { clock },
    sections: { plans: plans(4) },
  });
  const operator = new Operator(gateway);
  const key = await gateway.createKey({ plan: "large" });
  const path = `/admin/v1/keys/${key.id}`;
  expect(await admittedOf(gateway, key.text, 10)).toBe(10);
  expect(await operator.change(path, { plan: "small" })).toBe(200);
  expect(await admittedOf(gateway, key.text, 5)).toBe(0);
  await gateway.reconfigure({ plans: plans(13) });
  expect(await admittedOf(gateway, key.text, 10)).toBe(3);
  await gateway.reconfigure({ plans: plans(2) });
  expect(await admittedOf(gateway, key.text, 5)).toBe(0);
  expect(await operator.change(path, { plan: "large" })).toBe(200);
  expect(await admittedOf(gateway, key.text, 30)).toBe(17);
  // Within one minute the key never got more than its largest plan.
  expect((await gateway.usage()).filter(({ status }) => status === 200)).toHaveLength(30);
});
