import { metricsOf } from "../support/metrics-of.ts";
import { expect, test } from "bun:test";
import { errorOf } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { Operator } from "../support/operator.ts";
import { ManualClock } from "../support/manual-clock.ts";

const chat = (content: string, rest: object = {}) => ({
  model: "chat-model",
  messages: [{ role: "user", content }],
  ...rest,
});

const custom = (requestsPerMinute: number, tokensPerMinute: number) => ({
  plan: "enterprise",
  limits: { requestsPerMinute, tokensPerMinute },
});

async function statusesOf(
  gateway: TestGateway,
  bodies: readonly object[],
): Promise<readonly number[]> {
  const responses = await Promise.all(
    bodies.map((body) => gateway.post("/v1/chat/completions", body)),
  );
  await Promise.all(responses.map((response) => response.text()));
  return responses.map(({ status }) => status);
}

test("exactly the plan's requests are admitted of a burst", async () => {
  await using gateway = await startGateway({ key: custom(40, 1_000_000) });
  const bodies = Array.from({ length: 100 }, () => chat("echo: hi", { max_tokens: 5 }));
  const statuses = await statusesOf(gateway, bodies);
  expect(statuses.filter((status) => status === 200)).toHaveLength(40);
  expect(statuses.filter((status) => status === 429)).toHaveLength(60);
});

test("100 parallel calls on a small token limit never use more than the limit", async () => {
  await using gateway = await startGateway({ key: custom(1_000, 2_000) });
  const bodies = Array.from({ length: 100 }, (_, index) =>
    chat("count: 500", { max_tokens: 100, stream: index % 2 === 0 }),
  );
  const statuses = await statusesOf(gateway, bodies);
  expect(statuses.every((status) => status === 200 || status === 429)).toBe(true);
  expect(statuses).toContain(200);
  const rows = await gateway.usage();
  const used = rows.reduce((sum, row) => sum + row.inputTokens + row.outputTokens, 0);
  expect(used).toBeLessThanOrEqual(2_000);
  expect(rows).toHaveLength(100);
});

test("a first call with a cap is admitted under even the smallest token limit", async () => {
  await using gateway = await startGateway();
  const sizes = [
    ...Array.from({ length: 60 }, (_, index) => index + 1),
    100,
    200,
    500,
    1_000,
    2_000,
  ];
  for (const tokensPerMinute of sizes) {
    const key = await gateway.createKey(custom(1_000, tokensPerMinute));
    const headers = { authorization: `Bearer ${key.text}` };
    const uncapped = await gateway.post("/v1/chat/completions", chat("echo: a"), { headers });
    const { status } = uncapped;
    const text = await uncapped.text();
    if (status === 200) continue;
    const body = chat("echo: a", { max_tokens: 1 });
    const response = await gateway.post("/v1/chat/completions", body, { headers });
    if (response.status === 200) {
      expect(text).toContain("set `max_completion_tokens`");
      await response.text();
      continue;
    }
    // Only an input larger than the limit itself is refused, permanently.
    expect([tokensPerMinute, response.status]).toEqual([tokensPerMinute, 429]);
    expect((await errorOf(response)).message).toContain("Request too large");
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(response.headers.has("retry-after")).toBe(false);
    expect(tokensPerMinute).toBeLessThan(40);
  }
});

test("a refusal has a Retry-After, and then the same call is admitted", async () => {
  const clock = new ManualClock();
  const random = (): number => 0.5;
  await using gateway = await startGateway({
    key: custom(2, 1_000_000),
    overrides: { clock, random },
  });
  const send = (): Promise<Response> => gateway.post("/v1/chat/completions", chat("echo: hi"));
  await (await send()).text();
  clock.advance(10_000);
  await (await send()).text();
  const refused = await send();
  const { code, type, message } = await errorOf(refused);
  expect([refused.status, code, type]).toEqual([429, "rate_limit_exceeded", "requests"]);
  const waitMs = Number(refused.headers.get("retry-after-ms"));
  expect(Number(refused.headers.get("retry-after"))).toBe(Math.ceil(waitMs / 1_000));
  expect(message).toContain("Limit 2, Used 2, Requested 1. Please try again in");
  expect(refused.headers.get("x-ratelimit-remaining-requests")).toBe("0");
  // After the first call has left the window of 60 seconds, and not much later.
  expect(waitMs).toBeGreaterThan(49_000);
  expect(waitMs).toBeLessThan(57_000);
  clock.advance(waitMs);
  const admitted = await send();
  expect(admitted.status).toBe(200);
  await admitted.text();
});

test("the remaining tokens fall by the used ones, not the reserved ones", async () => {
  await using gateway = await startGateway({ key: custom(100, 100_000) });
  const send = async (): Promise<number> => {
    const body = chat("echo: hi", { max_tokens: 1_000 });
    const response = await gateway.post("/v1/chat/completions", body);
    await response.text();
    return Number(response.headers.get("x-ratelimit-remaining-tokens"));
  };
  await send();
  const [first] = await gateway.usage();
  const second = await send();
  const used = (first?.inputTokens ?? 0) + (first?.outputTokens ?? 0);
  expect(used).toBeLessThan(50);
  // While the second runs: the limit minus the first's use and the second's reservation.
  expect(100_000 - second).toBeGreaterThan(1_000 + used);
  expect(100_000 - second).toBeLessThan(1_200 + used);
});

test("two keys of one application do not share a limit", async () => {
  await using gateway = await startGateway({ key: custom(1, 100_000) });
  const other = await gateway.createKey(custom(1, 100_000));
  const headers = { authorization: `Bearer ${other.text}` };
  const first = await gateway.post("/v1/chat/completions", chat("echo: a"));
  const second = await gateway.post("/v1/chat/completions", chat("echo: a"), { headers });
  const third = await gateway.post("/v1/chat/completions", chat("echo: a"), { headers });
  expect([first.status, second.status, third.status]).toEqual([200, 200, 429]);
});

test("the larger of two caps is reserved", async () => {
  await using gateway = await startGateway({ key: custom(100, 1_000) });
  const caps = { max_tokens: 1, max_completion_tokens: 2_000 };
  const response = await gateway.post("/v1/chat/completions", chat("echo: hi", caps));
  expect(response.status).toBe(429);
  expect((await errorOf(response)).message).toContain("Request too large");
});

test("every request counts on arrival, even if it fails", async () => {
  const clock = new ManualClock();
  await using gateway = await startGateway({ key: custom(6, 1_000), overrides: { clock } });
  const send = async (body: unknown): Promise<number> => {
    const response = await gateway.post("/v1/chat/completions", body);
    await response.text();
    return response.status;
  };
  const statuses = [
    await send("{ not json"),
    await send({ model: "nobody", messages: [{ role: "user", content: "a" }] }),
    await send(chat("a", { max_tokens: 1_000_000_000 })),
    await send(chat("long ".repeat(20_000), { max_tokens: 1 })),
    await send(chat("echo: a", { max_tokens: 1 })),
    await send(chat("echo: a", { max_tokens: 1 })),
    await send(chat("echo: a", { max_tokens: 1 })),
    await send("{ not json"),
  ];
  expect(statuses).toEqual([400, 400, 400, 429, 200, 200, 429, 429]);
  const models = await Promise.all(Array.from({ length: 8 }, () => gateway.get("/v1/models")));
  const listed = models.map(({ status }) => status).toSorted((one, other) => one - other);
  expect(listed).toEqual([200, 200, 200, 200, 200, 200, 429, 429]);
  const metrics = await metricsOf(gateway.adminUrl);
  expect(metrics).toMatch(/sluice_repeated_refusals_total\{of="key"\} [12]\b/);
  clock.advance(61_000);
  expect(await send(chat("echo: a", { max_tokens: 1 }))).toBe(200);
});

test("calls refused for their tokens return their requests, up to the plan's number", async () => {
  const clock = new ManualClock();
  await using gateway = await startGateway({ key: custom(10, 1_000), overrides: { clock } });
  const held = gateway.post(
    "/v1/chat/completions",
    chat("count: 800", { max_tokens: 900, stream: true }),
  );
  const answer = await held;
  expect(answer.status).toBe(200);
  const dimensions: (string | undefined)[] = [];
  for (let index = 0; index < 25; index += 1) {
    const body = chat("echo: a", { max_tokens: 900 });
    const response = await gateway.post("/v1/chat/completions", body);
    expect(response.status).toBe(429);
    dimensions.push((await errorOf(response)).type ?? undefined);
  }
  // Ten are returned, nine more fit beside the stream, then the requests are used up.
  expect(dimensions.filter((type) => type === "tokens")).toHaveLength(19);
  expect(dimensions.slice(19).every((type) => type === "requests")).toBe(true);
  await answer.text();
});

test("a key that replaces a revoked one gets no new minute", async () => {
  const clock = new ManualClock();
  await using gateway = await startGateway({ key: custom(5, 100_000), overrides: { clock } });
  const statuses: number[] = [];
  const use = async ({ id, text }: { id: string; text: string }): Promise<void> => {
    for (let index = 0; index < 6; index += 1) {
      const headers = { authorization: `Bearer ${text}` };
      const response = await gateway.post("/v1/chat/completions", chat("echo: a"), { headers });
      await response.text();
      statuses.push(response.status);
    }
    expect((await gateway.admin("DELETE", `/admin/v1/keys/${id}`)).status).toBe(200);
    clock.advance(1_000);
  };
  const operator = new Operator(gateway);
  for (let cycle = 0; cycle < 4; cycle += 1) {
    // Another application of the account does not help, nor does removing the first one.
    const application = `application ${cycle % 2}`;
    const key = await gateway.createKey({ ...custom(5, 100_000), account: "cycler", application });
    const { application_id: id } = await operator.key(key.id);
    await use(key);
    if (cycle === 2) continue;
    expect((await gateway.admin("DELETE", `/admin/v1/applications/${id}`)).status).toBe(200);
  }
  expect(statuses.filter((status) => status === 200)).toHaveLength(5);
  const other = await gateway.createKey({ ...custom(5, 100_000), account: "bystander" });
  const headers = { authorization: `Bearer ${other.text}` };
  const response = await gateway.post("/v1/chat/completions", chat("echo: a"), { headers });
  expect(response.status).toBe(200);
  await response.text();
  clock.advance(61_000);
  statuses.length = 0;
  await use(await gateway.createKey({ ...custom(5, 100_000), account: "cycler" }));
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
});

test("all keys of an account share its ceiling, with any plans", async () => {
  const clock = new ManualClock();
  await using gateway = await startGateway({ overrides: { clock } });
  const wanted = { ...custom(100, 100_000), account: "shared" };
  const keys = [await gateway.createKey(wanted), await gateway.createKey(wanted)];
  const found = await gateway.admin("GET", "/admin/v1/accounts?name=shared");
  const [account] = ((await found.json()) as { data: { id: string; revision: number }[] }).data;
  const path = `/admin/v1/accounts/${account?.id}`;
  const change = async (revision: number | undefined, limits: object | null): Promise<void> => {
    expect((await gateway.admin("PATCH", path, { revision, limits })).status).toBe(200);
  };
  const use = async (calls: number): Promise<number> => {
    let served = 0;
    for (let index = 0; index < calls; index += 1) {
      const headers = { authorization: `Bearer ${keys[index % 2]?.text}` };
      const response = await gateway.post("/v1/chat/completions", chat("echo: a"), { headers });
      const text = await response.text();
      if (response.status === 200) served += 1;
      else expect(text).toContain("all applications of the account");
    }
    return served;
  };
  expect(await use(4)).toBe(4);
  await change(account?.revision, { requests_per_minute: 6, tokens_per_minute: 1_000_000 });
  expect(await use(10)).toBe(6);
  expect(await (await gateway.admin("GET", path)).json()).toMatchObject({
    limits: { requests_per_minute: 6, tokens_per_minute: 1_000_000 },
  });
  await change((account?.revision ?? 0) + 1, null);
  expect(await use(4)).toBe(4);
});
