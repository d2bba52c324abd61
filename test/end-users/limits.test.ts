import { afterAll, beforeAll, expect, test } from "bun:test";
import { parseConfig } from "../../src/config/load.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { describeWithValkey, valkeyOfTests } from "../support/valkey-server.ts";

let gateway: TestGateway;

const each = (requests: number, tokens: number) =>
  `each_end_user: { requests_per_minute: ${requests}, tokens_per_minute: ${tokens} }`;
const sections = {
  plans: `
  few: { requests_per_minute: 50, tokens_per_minute: 1000000, ${each(3, 1_000_000)} }
  small: { requests_per_minute: 1000, tokens_per_minute: 1000000, ${each(100, 5_000)} }`,
};

beforeAll(async () => {
  gateway = await startGateway({ sections });
});
afterAll(() => gateway[Symbol.asyncDispose]());

async function ask(
  key: string,
  user: string | undefined,
  cap = 10,
  asked: Pick<TestGateway, "post"> = gateway,
): Promise<Response> {
  const response = await asked.post(
    "/v1/chat/completions",
    {
      model: "chat-model",
      messages: [{ role: "user", content: "Hi" }],
      max_completion_tokens: cap,
      user,
    },
    { headers: { authorization: `Bearer ${key}` } },
  );
  return response;
}

async function statuses(calls: readonly Promise<Response>[]): Promise<Record<number, number>> {
  const counts: Record<number, number> = {};
  for (const response of await Promise.all(calls)) {
    await response.body?.cancel();
    counts[response.status] = (counts[response.status] ?? 0) + 1;
  }
  return counts;
}

const times = <Made>(count: number, make: (index: number) => Made): Made[] =>
  Array.from({ length: count }, (_none, index) => make(index));

test("each end user gets its requests and no more, however many come at once", async () => {
  const { text: key } = await gateway.createKey({ plan: "few" });
  expect(await statuses(times(10, () => ask(key, "jane")))).toEqual({ 200: 3, 429: 7 });
  expect(await statuses(times(3, () => ask(key, "john")))).toEqual({ 200: 3 });
  // Calls of nobody are under the limits of the key alone.
  expect(await statuses(times(5, () => ask(key, undefined)))).toEqual({ 200: 5 });
  const refused = await ask(key, "jane");
  expect(refused.status).toBe(429);
  expect(refused.headers.get("x-ratelimit-limit-requests")).toBe("3");
  expect(Number(refused.headers.get("retry-after-ms"))).toBeGreaterThan(0);
  const { error } = (await refused.json()) as { error: { message: string; type: string } };
  expect(error.type).toBe("requests");
  expect(error.message).toContain("this end user of application test-application");
  expect(error.message).not.toContain("jane");
});

test("a flood of names is under the limit of the key, and refusals of one leave the others theirs", async () => {
  const { text: key } = await gateway.createKey({ plan: "few", application: "flood" });
  const flood = await statuses(times(80, (index) => ask(key, `user-${index}`)));
  expect(flood).toEqual({ 200: 50, 429: 30 });
});

test("tokens of an end user are reserved and settled beside those of the key", async () => {
  // One call is still under way when the next arrives.
  await using slow = await startGateway({ sections, simulator: { firstTokenDelayMs: 1_000 } });
  const { text: key } = await slow.createKey({ plan: "small" });
  const askSlow = (user: string | undefined, cap: number) => ask(key, user, cap, slow);
  const large = await askSlow("jane", 6_000);
  expect(large.status).toBe(429);
  const { error } = (await large.json()) as { error: { message: string } };
  expect(error.message).toContain("Request too large");
  expect(error.message).toContain("Limit 5000");
  // Two at once do not fit; one after the other do, since their answers are short.
  expect(await statuses(times(2, () => askSlow("john", 3_000)))).toEqual({ 200: 1, 429: 1 });
  expect(await statuses([askSlow("john", 3_000)])).toEqual({ 200: 1 });
  expect(await statuses([askSlow("jane", 4_000), askSlow(undefined, 6_000)])).toEqual({ 200: 2 });
});

test("limits of end users need end users", () => {
  const text = `
upstreams: { a: { kind: openai, base_url: "http://127.0.0.1:1" } }
models: { m: { kind: chat, context_window: 1000, targets: [{ upstream: a, model: x }] } }
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
end_users: off
plans:
  pilot: { each_end_user: { requests_per_minute: 1, tokens_per_minute: 1 } }
`;
  const result = parseConfig(text, { name: "test", env: {} });
  const problems = result.ok
    ? []
    : result.problems.map(({ path, message }) => `${path} ${message}`);
  expect(problems).toEqual([
    "plans.pilot.each_end_user needs end users, and end_users is off: set it to pseudonym, or remove this",
  ]);
});

describeWithValkey(() => {
  const valkey = valkeyOfTests();

  test("two processes give an end user its requests together, and no more", async () => {
    await using both = await startGateway({
      processes: 2,
      sections: {
        limits: `{ store: "${valkey.server.url}", timeout: 5s }`,
        plans: `
  shared:
    requests_per_minute: 60
    tokens_per_minute: 1000000
    each_end_user: { requests_per_minute: 5, tokens_per_minute: 100000 }`,
      },
    });
    const { text: key } = await both.createKey({ plan: "shared" });
    const all = times(30, (index) => ask(key, `user-${index % 3}`, 10, both));
    expect(await statuses(all)).toEqual({ 200: 15, 429: 15 });
    const keys = String(await valkey.server.command("KEYS", "*"));
    expect(keys).toContain("end-user:");
    expect(keys).not.toContain("user-0");
    expect(keys).not.toContain("eu_");
  }, 180_000);
});
