import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { startSimulator } from "../../simulator/simulator.ts";
import { formatProblems, parseConfig } from "../../src/config/load.ts";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { type App, createApp, type AppOverrides } from "../support/app.ts";
import { cheapPasswords } from "../support/cheap-passwords.ts";
import { simulatorUpstream } from "../support/gateway.ts";
import { ensureApplication, issueKey } from "../support/issue-key.ts";
import type { ValkeyLimits } from "../../src/store/limits/valkey/limit-store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { clientOf, emptied, limitsOver, steeredBy } from "../support/valkey-limits.ts";
import { describeWithValkey, valkeyOfTests } from "../support/valkey-server.ts";

/**
 * Minutes of calls at a steady rate, of which each tenant sends several times what its plan allows.
 * The test moves the clock of windows; HTTP, gateways, upstreams and their caches are real.
 */

const stepMs = 500;
const minutes = 5;
const windowMs = 60_000;
const weights = { cached: 0.1, output: 5 };
/** In a minute: tokens of a key, requests of each end user, tokens of each end user. */
const limits = { agent: 30_000, "few-requests": 6, "few-tokens": 8_000 };
const upstreams = 3;

const tokenWeights = `token_weights: { cached_input: ${weights.cached}, output: ${weights.output} }`;
const plans = `
  agent: { requests_per_minute: 100000, tokens_per_minute: ${limits.agent}, ${tokenWeights} }
  few-requests:
    requests_per_minute: 100000
    tokens_per_minute: 100000000
    each_end_user: { requests_per_minute: ${limits["few-requests"]}, tokens_per_minute: 100000000 }
  few-tokens:
    requests_per_minute: 100000
    tokens_per_minute: 100000000
    ${tokenWeights}
    each_end_user: { requests_per_minute: 100000, tokens_per_minute: ${limits["few-tokens"]} }`;

/**
 * Who calls, every how many steps, and how many calls at once. All calls of a plan begin alike, and
 * are of one session. `least`: answers in each minute, however the windows lie; at the edge of one,
 * a reservation of 1,900 tokens has to fit, and answers count 300. Undefined: none is refused.
 */
const callers = [
  { plan: "agent", user: undefined, every: 1, atOnce: 3, least: 70 },
  { plan: "few-requests", user: "heavy", every: 1, atOnce: 2, least: 2 },
  // Five in a minute, of six.
  { plan: "few-requests", user: "light", every: 24, atOnce: 1, least: undefined },
  { plan: "few-requests", user: undefined, every: 10, atOnce: 1, least: undefined },
  { plan: "few-tokens", user: "heavy", every: 2, atOnce: 1, least: 15 },
  { plan: "few-tokens", user: "light", every: 40, atOnce: 1, least: undefined },
] as const;
type Caller = (typeof callers)[number];

interface Answered {
  readonly id: string;
  readonly caller: Caller;
  readonly status: number;
}

/** A gateway's parts on one folder, each begun again as often as the test likes. */
class Installation implements AsyncDisposable {
  readonly clock = new ManualClock({ monotonicMs: 1_000_000 });
  readonly answered: Answered[] = [];
  readonly #apps: App[] = [];
  readonly #keys = new Map<string, string>();
  readonly #folder = mkdtempSync(join(tmpdir(), "sluice-sustained-"));
  readonly #simulators = Array.from({ length: upstreams }, () => startSimulator());
  #turn = 0;

  async start(number: number, overrides: AppOverrides = {}): Promise<void> {
    const all = { clock: this.clock, passwords: cheapPasswords(), ...overrides };
    this.#apps[number - 1] = await createApp(this.#config(), all, number);
  }

  async stop(number: number): Promise<void> {
    await this.#apps[number - 1]?.[Symbol.asyncDispose]();
  }

  async createKeys(): Promise<void> {
    const { admin } = this.#first;
    for (const plan of new Set(callers.map((caller) => caller.plan))) {
      const names = { account: plan, application: plan, environment: "test" };
      const { id } = await ensureApplication(admin, names);
      this.#keys.set(plan, (await issueKey(admin, { applicationId: id, plan })).text);
    }
    await admin.onKeysChanged();
  }

  /** Sends what is due until so many minutes of the clock have passed. */
  async run(fromMinute: number, untilMinute: number, tick?: () => Promise<void>): Promise<void> {
    const stepsOfMinute = windowMs / stepMs;
    for (let step = fromMinute * stepsOfMinute; step < untilMinute * stepsOfMinute; step += 1) {
      const due = callers.flatMap((caller, index) =>
        step % caller.every === index % caller.every
          ? Array.from({ length: caller.atOnce }, () => caller)
          : [],
      );
      await Promise.all(due.map((caller) => this.#ask(caller, step)));
      this.clock.advance(stepMs);
      await tick?.();
    }
  }

  async rows(): Promise<readonly UsageRecord[]> {
    for (const app of this.#apps.toReversed()) await app.flushUsage();
    const rows: UsageRecord[] = [];
    let after: string | undefined;
    do {
      const filter = { since: 0, until: Number.MAX_SAFE_INTEGER };
      const page = await this.#first.admin.reports.calls(filter, { limit: 500, after });
      rows.push(...page.items);
      after = page.next;
    } while (after !== undefined);
    return rows.filter(({ status }) => status === 200);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const app of this.#apps.toReversed()) await app[Symbol.asyncDispose]();
    for (const simulator of this.#simulators) await simulator[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #first(): App {
    const [app] = this.#apps;
    if (app === undefined) throw new Error("no gateway was started");
    return app;
  }

  async #ask(caller: Caller, step: number): Promise<void> {
    const { plan, user } = caller;
    this.#turn += 1;
    const { dataUrl } = this.#apps[this.#turn % this.#apps.length] ?? this.#first;
    const response = await fetch(`${dataUrl}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${this.#keys.get(plan)}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({
        model: "chat-model",
        max_tokens: 20,
        stream: step % 2 === 0,
        user,
        messages: [
          { role: "system", content: `Rules of ${plan}. ${"word ".repeat(1_100)}` },
          { role: "user", content: "count: 100" },
          ...(step % 3 === 0 ? [{ role: "user", content: `Question ${step}` }] : []),
        ],
      }),
    });
    await response.text();
    const id = response.headers.get("x-request-id") ?? "";
    this.answered.push({ id, caller, status: response.status });
  }

  #config() {
    const names = this.#simulators.map((_, index) => `upstream-${index}`);
    const targets = names.map((name) => `{ upstream: ${name}, model: simulated-chat }`);
    const listed = this.#simulators.map((simulator, index) => {
      return `${names[index]}: ${simulatorUpstream(simulator, "openai")}`;
    });
    const text = `
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
storage: { url: "sqlite:${this.#folder}/sluice.db" }
data_dir: ${this.#folder}
shutdown: { pre_stop: 0s }
overload: { loop_delay: 10s }
auth: { peppers: ["a pepper for tests that is long enough"] }
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams: { ${listed.join(", ")} }
models:
  chat-model: { kind: chat, context_window: 200000, max_output_tokens: 4000, targets: [${targets.join(", ")}] }
plans: ${plans}
`;
    const result = parseConfig(text, { name: "test", env: {} });
    if (!result.ok) throw new Error(formatProblems("test", result.problems));
    return result.config;
  }
}

/** What a call counts under its plan. */
function weighted({ inputTokens, cachedInputTokens, outputTokens }: UsageRecord): number {
  const fresh = inputTokens - cachedInputTokens;
  return fresh + cachedInputTokens * weights.cached + outputTokens * weights.output;
}

/** Every window of the time but the first minute, in which the limits fill. */
function windowsOf(rows: readonly UsageRecord[], sizeOf: (row: UsageRecord) => number) {
  const times = rows.map(({ startedAt }) => startedAt);
  const sums: number[] = [];
  for (let end = Math.min(...times) + windowMs; end <= Math.max(...times); end += stepMs) {
    const within = rows.filter(({ startedAt: at }) => at > end - windowMs && at <= end);
    sums.push(within.reduce((sum, row) => sum + sizeOf(row), 0));
  }
  return { least: Math.min(...sums), most: Math.max(...sums) };
}

async function expectSustained(installation: Installation): Promise<void> {
  const { answered } = installation;
  expect(new Set(answered.map(({ status }) => status))).toEqual(new Set([200, 429]));
  const rows = new Map((await installation.rows()).map((row) => [row.id, row]));
  for (const caller of callers) {
    const { plan, user, least } = caller;
    const own = answered.filter((each) => each.caller === caller);
    const served = own
      .filter(({ status }) => status === 200)
      .flatMap(({ id }) => rows.get(id) ?? []);
    const name = `${plan} of ${user ?? "nobody"}`;
    if (least === undefined) {
      expect([name, served.length]).toEqual([name, own.length]);
      continue;
    }
    const { most } = windowsOf(served, plan === "few-requests" ? () => 1 : weighted);
    expect([name, most, most <= limits[plan]]).toEqual([name, most, true]);
    const calls = windowsOf(served, () => 1).least;
    expect([name, calls, calls >= least]).toEqual([name, calls, true]);
  }
  // A session stays where its prompt is cached, also after the restart.
  for (const of of Map.groupBy(rows.values(), ({ application }) => application).values()) {
    const cached = of.filter(({ cachedInputTokens }) => cachedInputTokens > 0);
    expect(cached.length / of.length).toBeGreaterThan(0.9);
  }
}

test("limits in memory hold at a steady rate, and over a restart", async () => {
  await using installation = new Installation();
  await installation.start(1);
  await installation.createKeys();
  await installation.run(0, minutes / 2);
  await installation.stop(1);
  await installation.start(1);
  await installation.run(minutes / 2, minutes);
  await expectSustained(installation);
}, 120_000);

describeWithValkey(() => {
  const valkey = valkeyOfTests();

  test("limits of two gateways over a server hold at a steady rate, and over a restart of one", async () => {
    const { server } = valkey;
    await emptied(server);
    await using installation = new Installation();
    const { clock } = installation;
    const client = steeredBy(clock, await clientOf(server));
    const stores = new Map<number, ValkeyLimits>();
    const start = async (number: number): Promise<void> => {
      const store = await limitsOver(client, { clock, processes: () => 2 });
      stores.set(number, store);
      await installation.start(number, { limits: store });
    };
    const tick = async (): Promise<void> => {
      for (const store of stores.values()) await store.tick();
    };
    await start(1);
    await start(2);
    await installation.createKeys();
    await installation.run(0, minutes / 2, tick);
    await installation.stop(2);
    await start(2);
    await installation.run(minutes / 2, minutes, tick);
    await expectSustained(installation);
  }, 120_000);
});
