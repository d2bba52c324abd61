import { expect, test } from "bun:test";
import { rotatedKeySchema } from "../../src/control/contract/keys.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { bearer, Operator } from "../support/operator.ts";
import { isComplete, sizeOf } from "../support/requirement.ts";

const rotations = isComplete ? 20 : 5;
const liveCalls = sizeOf({ quick: 400, all: 2_000, measured: 10_000 });
const clients = 12;

const chat = (isStreamed = false) => ({
  model: "chat-model",
  stream: isStreamed,
  max_tokens: 5,
  messages: [{ role: "user", content: "echo: hi" }],
});

async function statusWith(gateway: TestGateway, text: string): Promise<number> {
  const response = await gateway.post("/v1/chat/completions", chat(), bearer(text));
  await response.text();
  return response.status;
}

/** Programs that share a key and adopt a new secret at different times. */
class Clients {
  readonly statuses = new Map<number, number>();
  calls = 0;
  readonly #gateway: TestGateway;
  readonly #secrets: string[];
  #newest: string;
  /** The number of calls after which each adopts the newest secret. */
  readonly #switchAt: number[];

  constructor(gateway: TestGateway, secret: string) {
    this.#gateway = gateway;
    this.#newest = secret;
    this.#secrets = Array.from({ length: clients }, () => secret);
    this.#switchAt = this.#secrets.map(() => Number.POSITIVE_INFINITY);
  }

  get haveAllSwitched(): boolean {
    return this.#secrets.every((secret) => secret === this.#newest);
  }

  roll(secret: string, withinCalls: number): void {
    this.#newest = secret;
    for (const index of this.#switchAt.keys()) {
      this.#switchAt[index] = this.calls + Math.floor(Math.random() * withinCalls);
    }
  }

  run(): Promise<unknown> {
    return Promise.all(this.#secrets.map((_, index) => this.#runOne(index)));
  }

  async #runOne(index: number): Promise<void> {
    while (this.calls < liveCalls || !this.haveAllSwitched) {
      this.calls += 1;
      if (this.calls >= (this.#switchAt[index] ?? 0)) this.#secrets[index] = this.#newest;
      const body = chat(this.calls % 3 === 0);
      const secret = this.#secrets[index] ?? "";
      const response = await this.#gateway.post("/v1/chat/completions", body, bearer(secret));
      await response.text();
      this.statuses.set(response.status, (this.statuses.get(response.status) ?? 0) + 1);
    }
  }
}

test(`${rotations} rotations during ${liveCalls} live calls refuse none of them`, async () => {
  await using gateway = await startGateway();
  const operator = new Operator(gateway);
  const key = await gateway.createKey();
  const programs = new Clients(gateway, key.text);
  const running = programs.run();
  const callsEach = Math.floor(liveCalls / (rotations + 1));
  for (let rotation = 1; rotation <= rotations; rotation += 1) {
    while (programs.calls < rotation * callsEach || !programs.haveAllSwitched) await Bun.sleep(1);
    const rotated = await operator.rotate(key.id, { overlap_seconds: 3_600 });
    programs.roll(rotated.api_key, callsEach * 0.8);
    expect(rotated.key.id).toBe(key.id);
    expect(rotated.key.secrets.filter(({ status }) => status === "live")).toHaveLength(2);
  }
  await running;
  const shown = [...programs.statuses].map(([status, count]) => `${count} x ${status}`).join(", ");
  process.stdout.write(`${rotations} rotations: ${programs.calls} calls, ${shown}\n`);
  expect([...programs.statuses]).toEqual([[200, programs.calls]]);
  const rows = await gateway.usage();
  expect(rows).toHaveLength(programs.calls);
  expect(new Set(rows.map(({ keyId }) => keyId))).toEqual(new Set([key.id]));
  const used = rows.reduce((sum, row) => sum + row.inputTokens + row.outputTokens, 0);
  const { entries } = gateway.simulator.truth;
  const counted = entries.reduce((sum, call) => sum + call.promptTokens + call.completionTokens, 0);
  expect(used).toBe(counted);
}, 120_000);

test("two secrets of a key share its requests per minute, and a rotation returns none", async () => {
  const clock = new ManualClock();
  const limits = { requestsPerMinute: 20, tokensPerMinute: 1_000_000 };
  await using gateway = await startGateway({ overrides: { clock } });
  const operator = new Operator(gateway);
  const key = await gateway.createKey({ limits });
  expect(await statusWith(gateway, key.text)).toBe(200);
  const { api_key: newer } = await operator.rotate(key.id);
  const statuses = await Promise.all(
    Array.from({ length: 60 }, (_, index) => statusWith(gateway, index % 2 ? newer : key.text)),
  );
  expect(statuses.filter((status) => status === 200)).toHaveLength(19);
  expect(statuses.filter((status) => status === 429)).toHaveLength(41);
  const { api_key: newest } = await operator.rotate(key.id, { compromised: true });
  expect(await statusWith(gateway, newest)).toBe(429);
  clock.advance(59_000);
  expect(await statusWith(gateway, newest)).toBe(429);
  clock.advance(2_000);
  expect(await statusWith(gateway, newest)).toBe(200);
});

test("two secrets of a key together use no more than its tokens per minute", async () => {
  const clock = new ManualClock();
  const limits = { requestsPerMinute: 1_000, tokensPerMinute: 2_000 };
  await using gateway = await startGateway({ overrides: { clock } });
  const operator = new Operator(gateway);
  const key = await gateway.createKey({ limits });
  const { api_key: newer } = await operator.rotate(key.id);
  const body = { ...chat(), max_tokens: 100, messages: [{ role: "user", content: "count: 500" }] };
  const statuses: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    // So few calls are never shed, though the clock's jumps look like delays of the event loop.
    const sent = Array.from({ length: 30 }, async (_, index) => {
      const init = bearer(index % 2 ? newer : key.text);
      const response = await gateway.post("/v1/chat/completions", body, init);
      await response.text();
      return response.status;
    });
    statuses.push(...(await Promise.all(sent)));
    clock.advance(15_000);
  }
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
  const rows = await gateway.usage();
  const used = rows.reduce((sum, row) => sum + row.inputTokens + row.outputTokens, 0);
  expect(used).toBeGreaterThan(1_000);
  expect(used).toBeLessThanOrEqual(2_000);
});

test("a repeated rotation has the same answer, including the secret, and rotates nothing", async () => {
  await using gateway = await startGateway();
  const operator = new Operator(gateway);
  const key = await gateway.createKey();
  const ask = () => operator.rotateOnce(key.id, { overlap_seconds: 60 }, "rotation-1");
  const answers = await Promise.all(Array.from({ length: 10 }, ask));
  answers.push(await ask());
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(answers.filter(({ isReplayed }) => !isReplayed)).toHaveLength(1);
  const { api_key: newer } = rotatedKeySchema.parse(JSON.parse(answers[0]?.text ?? ""));
  expect(await statusWith(gateway, newer)).toBe(200);
  expect(await statusWith(gateway, key.text)).toBe(200);
  expect((await operator.key(key.id)).secrets).toHaveLength(2);
  const other = await operator.rotateOnce(key.id, { overlap_seconds: 61 }, "rotation-1");
  expect(other.status).toBe(422);
  expect((await operator.key(key.id)).secrets).toHaveLength(2);
});

test("after a lost answer another rotation replaces the unused secret", async () => {
  await using gateway = await startGateway();
  const operator = new Operator(gateway);
  const key = await gateway.createKey();
  expect(await statusWith(gateway, key.text)).toBe(200);
  const lost = await operator.rotate(key.id, { overlap_seconds: 600 });
  for (let again = 0; again < 3; again += 1) {
    const rotated = await operator.rotate(key.id, { overlap_seconds: 86_400 });
    // The used secret keeps its end: another rotation does not extend it.
    expect(rotated.overlap_until).toBe(lost.overlap_until);
    expect(rotated.ended).toHaveLength(1);
    expect(await statusWith(gateway, key.text)).toBe(200);
    expect(rotated.key.secrets.filter(({ status }) => status === "live")).toHaveLength(2);
  }
  expect(await statusWith(gateway, lost.api_key)).toBe(401);
});

test("a compromised key has one live secret at once", async () => {
  await using gateway = await startGateway();
  const operator = new Operator(gateway);
  const key = await gateway.createKey();
  const second = await operator.rotate(key.id);
  expect(await statusWith(gateway, second.api_key)).toBe(200);
  expect(await statusWith(gateway, key.text)).toBe(200);
  const third = await operator.rotate(key.id, { compromised: true });
  expect(await statusWith(gateway, key.text)).toBe(401);
  expect(await statusWith(gateway, second.api_key)).toBe(401);
  expect(await statusWith(gateway, third.api_key)).toBe(200);
  expect(third.ended).toHaveLength(2);
  expect(third.overlap_until).toBeNull();
});

test("20 concurrent rotations leave the newest secret and one earlier one", async () => {
  await using gateway = await startGateway();
  const operator = new Operator(gateway);
  const key = await gateway.createKey();
  expect(await statusWith(gateway, key.text)).toBe(200);
  const rotated = await Promise.all(
    Array.from({ length: 20 }, () => operator.rotate(key.id, { overlap_seconds: 60 })),
  );
  const live = (await operator.key(key.id)).secrets.filter(({ status }) => status === "live");
  expect(live).toHaveLength(2);
  const statuses = await Promise.all(rotated.map(({ api_key: text }) => statusWith(gateway, text)));
  expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  expect(statuses.filter((status) => status === 401)).toHaveLength(19);
  // The ones between were unused, so the used one stays live.
  expect(await statusWith(gateway, key.text)).toBe(200);
});

test("the old secret works exactly until the end of the overlap", async () => {
  const clock = new ManualClock();
  await using gateway = await startGateway({ overrides: { clock } });
  const operator = new Operator(gateway);
  const key = await gateway.createKey();
  const { api_key: newer } = await operator.rotate(key.id, { overlap_seconds: 3_600 });
  const statuses = async () => [
    await statusWith(gateway, key.text),
    await statusWith(gateway, newer),
  ];
  for (let minute = 0; minute < 60; minute += 5) {
    expect(await statuses()).toEqual([200, 200]);
    clock.advance(300_000);
    // Without a refresh the keys would be too stale.
    await gateway.app.admin.onKeysChanged();
  }
  clock.jumpWall(-1);
  expect(await statuses()).toEqual([200, 200]);
  clock.advance(1);
  expect(await statuses()).toEqual([401, 200]);
});
