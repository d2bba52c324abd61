import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { bearer, Operator } from "../support/operator.ts";
import { sizeOf } from "../support/requirement.ts";

const revocations = sizeOf({ quick: 10, all: 20, measured: 50 });
const atOnce = 5;
/** How long calls continue after a key was stopped. */
const watchMs = 1_600;
/** The guarantee for every gateway of a database. */
const promisedMs = 1_000;

/** Two gateways of one database, each with its own data directory. */
class Pair implements AsyncDisposable {
  readonly first: TestGateway;
  readonly second: TestGateway;
  readonly operator: Operator;
  readonly #folder: string;

  private constructor(folder: string, first: TestGateway, second: TestGateway) {
    this.#folder = folder;
    this.first = first;
    this.second = second;
    this.operator = new Operator(first);
  }

  static async start(): Promise<Pair> {
    const folder = mkdtempSync(join(tmpdir(), "sluice-pair-"));
    const storage = `{ url: ${JSON.stringify(`sqlite:${join(folder, "keys.db")}`)} }`;
    const options = { sections: { storage, telemetry: "{ log_level: warn, log_format: json }" } };
    const first = await startGateway(options);
    return new Pair(folder, first, await startGateway(options));
  }

  /** A key with its own account and application, known to both gateways. */
  async createKey(name: string): Promise<StoppableKey> {
    const names = { account: `account ${name}`, application: `application ${name}` };
    const { id, text } = await this.first.createKey(names);
    await this.second.app.admin.onKeysChanged();
    const view = await this.operator.key(id);
    return { id, text, applicationId: view.application_id, accountId: view.account_id };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.second[Symbol.asyncDispose]();
    await this.first[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

interface StoppableKey {
  readonly id: string;
  readonly text: string;
  readonly applicationId: string;
  readonly accountId: string;
}

/** Makes calls with one key through one gateway in sequence, and records their results. */
class Caller {
  readonly #calls: { readonly sentAt: number; readonly status: number }[] = [];
  readonly #running: Promise<void>;
  #isOver = false;

  constructor(gateway: TestGateway, text: string) {
    this.#running = this.#run(gateway, text);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  get statuses(): ReadonlySet<number> {
    return new Set(this.#calls.map(({ status }) => status));
  }

  get count(): number {
    return this.#calls.length;
  }

  /** When the last accepted call was sent, after a given time; 0 if none was. */
  lastAcceptedAfter(time: number): number {
    const accepted = this.#calls.filter(({ status }) => status === 200);
    return Math.max(0, ...accepted.map(({ sentAt }) => sentAt - time));
  }

  async #run(gateway: TestGateway, text: string): Promise<void> {
    while (!this.#isOver) {
      const sentAt = performance.now();
      const { status } = await gateway.get("/v1/models", bearer(text));
      this.#calls.push({ sentAt, status });
      await Bun.sleep(3);
    }
  }
}

interface Stopped {
  /** For the gateway that revoked the key. */
  readonly hereMs: number;
  /** For the other gateway. */
  readonly thereMs: number;
  readonly calls: number;
}

/** Stops a key under traffic through both gateways. */
async function stopUnderLoad(
  { first, second }: Pair,
  key: StoppableKey,
  stop: () => Promise<number>,
): Promise<Stopped> {
  const here = [new Caller(first, key.text), new Caller(first, key.text)];
  const there = [new Caller(second, key.text), new Caller(second, key.text)];
  const callers = [...here, ...there];
  await Bun.sleep(100 + Math.random() * 500);
  for (const caller of callers) expect([...caller.statuses]).toEqual([200]);
  expect(await stop()).toBe(200);
  const answeredAt = performance.now();
  await Bun.sleep(watchMs);
  await Promise.all(callers.map((caller) => caller.stop()));
  const statuses = new Set(callers.flatMap((caller) => [...caller.statuses]));
  expect(statuses).toEqual(new Set([200, 401]));
  const last = (some: readonly Caller[]): number =>
    Math.max(...some.map((caller) => caller.lastAcceptedAfter(answeredAt)));
  return {
    hereMs: last(here),
    thereMs: last(there),
    calls: callers.reduce((sum, { count }) => sum + count, 0),
  };
}

function summary(times: readonly number[]): string {
  const sorted = times.toSorted((one, other) => one - other);
  const middle = sorted[Math.floor(sorted.length / 2)] ?? 0;
  return `p50 ${middle.toFixed(0)} ms, max ${(sorted.at(-1) ?? 0).toFixed(0)} ms`;
}

function expectKept(stopped: readonly Stopped[]): void {
  // The gateway that revokes applies it before it answers: no later call is accepted.
  expect(stopped.map(({ hereMs }) => hereMs)).toEqual(stopped.map(() => 0));
  expect(stopped.filter(({ thereMs }) => thereMs > promisedMs)).toEqual([]);
}

test(`none of ${revocations} keys revoked under load is accepted anywhere a second later`, async () => {
  await using pair = await Pair.start();
  const stopped: Stopped[] = [];
  for (let done = 0; done < revocations; done += atOnce) {
    const group = Array.from({ length: atOnce }, async (_, index) => {
      const key = await pair.createKey(`${done + index}`);
      return stopUnderLoad(pair, key, () => pair.operator.revoke(key.id));
    });
    stopped.push(...(await Promise.all(group)));
  }
  const here = summary(stopped.map(({ hereMs }) => hereMs));
  const there = summary(stopped.map(({ thereMs }) => thereMs));
  const all = stopped.reduce((sum, { calls }) => sum + calls, 0);
  process.stdout.write(
    `${revocations} revocations under ${all} calls, last accepted after the answer: ` +
      `here ${here}; other gateway ${there}\n`,
  );
  expectKept(stopped);
}, 180_000);

test("both gateways refuse a disabled key, application or account within a second, until it is enabled", async () => {
  await using pair = await Pair.start();
  const ways = await Promise.all(
    (["keys", "applications", "accounts"] as const).map(async (what) => {
      const key = await pair.createKey(what);
      const ids = { keys: key.id, applications: key.applicationId, accounts: key.accountId };
      const path = `/admin/v1/${what}/${ids[what]}`;
      return { key, path };
    }),
  );
  const stopped = await Promise.all(
    ways.map(({ key, path }) =>
      stopUnderLoad(pair, key, () => pair.operator.change(path, { disabled: true })),
    ),
  );
  expectKept(stopped);
  const there = summary(stopped.map(({ thereMs }) => thereMs));
  process.stdout.write(`key, application and account disabled: other gateway ${there}\n`);
  for (const { path } of ways) {
    expect(await pair.operator.change(path, { disabled: false })).toBe(200);
  }
  await Bun.sleep(promisedMs);
  for (const { key } of ways) {
    expect((await pair.first.get("/v1/models", bearer(key.text))).status).toBe(200);
    expect((await pair.second.get("/v1/models", bearer(key.text))).status).toBe(200);
  }
});

/** Longer than the interval at which last uses are stored. */
const lastUseStoredMs = 2_500;

test("neither running calls nor their later writes restore a revoked key", async () => {
  await using pair = await Pair.start();
  const { first, second, operator } = pair;
  const key = await pair.createKey("stale");
  const running = [first, second].flatMap((gateway) =>
    Array.from({ length: 10 }, () => {
      const body = {
        model: "chat-model",
        stream: true,
        messages: [{ role: "user", content: "count: 200" }],
      };
      return gateway.post("/v1/chat/completions", body, bearer(key.text));
    }),
  );
  await Bun.sleep(20);
  expect(await operator.revoke(key.id)).toBe(200);
  const statuses = async (): Promise<readonly number[]> => [
    (await first.get("/v1/models", bearer(key.text))).status,
    (await second.get("/v1/models", bearer(key.text))).status,
  ];
  expect((await statuses())[0]).toBe(401);
  await Promise.all((await Promise.all(running)).map((response) => response.text()));
  await Promise.all([first.usage(), second.usage()]);
  await Bun.sleep(lastUseStoredMs);
  expect(await statuses()).toEqual([401, 401]);
  const view = await operator.key(key.id);
  expect(view.status).toBe("revoked");
  expect(view.secrets[0]?.last_used_at).toBeString();
  await Promise.all([first, second].map(({ app }) => app.admin.onKeysChanged()));
  expect(await statuses()).toEqual([401, 401]);
});

test("concurrent calls and changes of one key never overwrite each other", async () => {
  await using pair = await Pair.start();
  const key = await pair.createKey("busy");
  const path = `/admin/v1/keys/${key.id}`;
  const callers = [new Caller(pair.first, key.text), new Caller(pair.second, key.text)];
  for (let round = 0; round < 15; round += 1) {
    expect(await pair.operator.change(path, { disabled: true })).toBe(200);
    expect((await pair.first.get("/v1/models", bearer(key.text))).status).toBe(401);
    expect(await pair.operator.change(path, { disabled: false })).toBe(200);
    expect((await pair.first.get("/v1/models", bearer(key.text))).status).toBe(200);
  }
  await Promise.all(callers.map((caller) => caller.stop()));
  const view = await pair.operator.key(key.id);
  expect([view.status, view.revision]).toEqual(["active", 31]);
});
