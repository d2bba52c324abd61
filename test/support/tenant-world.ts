import { noLabels } from "../../src/call/labels.ts";
import { Calendar } from "../../src/domain/money/calendar.ts";
import { PublishedPrices } from "../../src/domain/money/price.ts";
import { insertKey } from "../../src/control/keys/issue-key.ts";
import type { Application } from "../../src/store/entities.ts";
import { GatewayError } from "../../src/domain/errors/gateway-error.ts";
import type { Key } from "../../src/domain/keys/key.ts";
import type { Limits, Plan } from "../../src/domain/limits/plan.ts";
import type { TokenUsage, UsageRecord } from "../../src/domain/usage/usage.ts";
import { admit, countRequest } from "../../src/admission/admit.ts";
import type { Call } from "../../src/snapshot/call.ts";
import { TokenEstimator } from "../../src/admission/estimate/estimate.ts";
import { Meter, type MeterServices } from "../../src/call/metering/meter.ts";
import { accountOf } from "../contracts/control-fixtures.ts";
import { MemoryLimitStore } from "../../src/store/limits/memory/limit-store.ts";
import { openStores } from "../../src/store/sqlite/open-stores.ts";
import { KeptLedger } from "./ledger-fixtures.ts";
import { ManualClock } from "./manual-clock.ts";
import { callerOf, callOf, modelOf, snapshotOf } from "./pipeline-fixtures.ts";
import { testPeppers } from "./test-peppers.ts";

/** A caller's request. */
export interface Asking {
  readonly bodyBytes: number;
  readonly cap: number | undefined;
  readonly choices: number;
}

/** A call under way. */
interface RunningCall {
  readonly account: number;
  readonly meter: Meter;
  /** The most output that its upstream may write. */
  readonly mostOutput: number;
  written: number;
  readonly most: number;
}

export interface WorldOptions {
  readonly accounts: number;
  /** Most calls at once of each account. */
  readonly keysOfAccount: number;
  readonly limits: Limits;
  readonly terms: Pick<Plan, "uncapped" | "overrunFactor">;
}

/** How the upstream's final count comes, if there is one. */
export type Report = "right" | "nothing" | "too-little" | "far-too-much";

export const mostOutputTokens = 1_200;

/**
 * Tenants of one gateway: keys in a real database, real admission, meters and ledger rows, and a
 * process that may end and start again with the database.
 */
export class TenantWorld implements AsyncDisposable {
  readonly clock = new ManualClock({ monotonicMs: 7_250 });
  /** The results of each step, by account. */
  readonly outcomes: unknown[][];
  /** Tokens reported by upstreams beyond what a call could have used, by account. */
  readonly lies: number[];
  readonly #options: WorldOptions;
  readonly #stores = openStores(":memory:", this.clock, { peppers: testPeppers() });
  readonly #applications: Application[] = [];
  readonly #keys: Key[][] = [];
  #limits: MemoryLimitStore;
  readonly #calendar = new Calendar();
  #services: MeterServices;
  #ledger = new KeptLedger();
  #storedRows = 0;
  #running: RunningCall[] = [];
  #calls = 0;
  #random = 1;

  private constructor(options: WorldOptions) {
    this.#options = options;
    this.#limits = this.#newLimits();
    this.#services = this.#newServices();
    this.outcomes = Array.from({ length: options.accounts }, () => []);
    this.lies = Array.from({ length: options.accounts }, () => 0);
  }

  static async start(options: WorldOptions): Promise<TenantWorld> {
    const world = new TenantWorld(options);
    for (let account = 0; account < options.accounts; account += 1) await world.#open(account);
    world.#begin();
    return world;
  }

  /** Rows of an account, oldest first. */
  async rows(account: number): Promise<readonly UsageRecord[]> {
    await this.#store();
    const filter = { since: 0, until: Number.MAX_SAFE_INTEGER, accountId: `acct_${account}` };
    const page = await this.#stores.reports.calls(filter, { limit: 5_000 });
    return page.items.toReversed();
  }

  async ask(account: number, keyIndex: number, asking: Asking): Promise<void> {
    const keys = this.#keys[account] ?? [];
    const key = keys[keyIndex % keys.length];
    if (key === undefined) return;
    const { limits, terms } = this.#options;
    const plan: Plan = {
      name: key.plan,
      limits,
      provisioned: false,
      queueTimeoutMs: 0,
      isIdempotent: false,
      responsesKeepMs: 0,
      whenLimitsUnavailable: "local",
      ...terms,
    };
    this.#calls += 1;
    const model = modelOf({ contextWindow: 1_000_000, maxOutputTokens: mostOutputTokens });
    const arriving = callOf({
      id: `req_${this.#calls}`,
      caller: { ...callerOf(limits), key },
      environment: { name: "test", models: new Map([[model.alias, model]]) },
      snapshot: { ...snapshotOf(["up"]), plans: new Map([[plan.name, plan]]) },
      receivedAt: this.clock.monotonic(),
    });
    try {
      const counted = await countRequest("call", arriving, this.#services);
      await this.#run(account, { ...arriving, counted }, asking);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      this.outcomes[account]?.push([error.status, error.headers["retry-after-ms"]]);
    }
  }

  /** The upstream of a call continues to write up to its limit. */
  write(account: number, index: number, tokens: number): void {
    const call = this.#pick(account, index);
    if (call === undefined) return;
    const count = Math.min(tokens, call.mostOutput - call.written);
    call.written += count;
    for (let piece = 0; piece < count; piece += 1) call.meter.delivering(1);
  }

  finish(account: number, index: number, report: Report): void {
    const call = this.#pick(account, index);
    if (call === undefined) return;
    const { meter, most, written } = call;
    const usage = reportedUsage(report, { inputTokens: meter.inputTokens, outputTokens: written });
    meter.reported(usage);
    if (usage !== undefined) {
      const beyond = usage.inputTokens + usage.outputTokens - most;
      this.lies[account] = (this.lies[account] ?? 0) + Math.max(0, beyond);
    }
    meter.completed();
    this.#ended(call);
  }

  leave(account: number, index: number): void {
    const call = this.#pick(account, index);
    if (call === undefined) return;
    call.meter.abandoned();
    this.#ended(call);
  }

  /** Ends a key of an account and issues another. */
  async cycle(account: number, keyIndex: number): Promise<void> {
    const keys = this.#keys[account] ?? [];
    const index = keyIndex % keys.length;
    const [ended] = keys.splice(index, 1);
    if (ended === undefined) return;
    await this.#stores.control.change(async ({ keys: table }) => {
      await table.update({ ...ended, revokedAt: this.clock.now() });
    });
    await this.#issue(account);
  }

  /** Begins many calls at once, lets their upstreams write their most, and ends them one by one. */
  async rush(account: number, calls: number, asking: Asking): Promise<void> {
    for (let call = 0; call < calls; call += 1) await this.ask(account, call, asking);
    const own = this.#running.filter((call) => call.account === account);
    for (const { mostOutput } of own) {
      this.write(account, 0, mostOutput);
      this.finish(account, 0, "right");
    }
  }

  /** The process is killed and starts again: calls under way are interrupted. */
  async crash(): Promise<void> {
    const open = this.#ledger.opened.filter(
      ({ id }) => !this.#ledger.closed.some((row) => row.id === id),
    );
    await this.#store();
    await this.#stores.usage.insert(
      open.map((call) => ({
        ...call,
        target: undefined,
        outputTokens:
          this.#ledger.checkpoints.findLast(({ callId }) => callId === call.id)?.outputTokens ?? 0,
        cachedInputTokens: 0,
        usageSource: "estimated",
        outcome: "interrupted",
        status: 500,
        code: "gateway_interrupted",
        attempts: 1,
        firstEventMs: undefined,
        durationMs: 0,
      })),
    );
    this.#running = [];
    const before = this.#limits.state();
    this.#begin();
    this.#limits.goOn(before, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stores.connection[Symbol.asyncDispose]();
  }

  async #run(account: number, call: Call, asking: Asking): Promise<void> {
    const { estimator } = this.#services;
    const [model = modelOf()] = call.environment.models.values();
    const { accountId, id: keyId } = call.caller.key;
    const subject = { accountId, keyId, model, nowMs: this.clock.monotonic() };
    const size = { textBytes: asking.bodyBytes, attachmentTokens: 0 };
    const { cap, choices } = asking;
    const output = { cap, choices };
    const estimate = estimator.estimate(subject, size, output);
    const meter = new Meter(
      {
        call,
        model,
        size,
        output,
        estimate,
        inputs: choices,
        isStreamed: true,
        dialect: "chat",
        labels: noLabels,
      },
      this.#services,
    );
    const { arrivedAt } = meter;
    const work = { inputs: choices };
    const request = { call, model, estimate, output, arrivedAt, size, work };
    try {
      const admission = await admit(request, { ...this.#services, calendar: this.#calendar });
      await meter.admitted(admission);
      const ofChoice = Math.min(admission.outputCap ?? cap ?? mostOutputTokens, mostOutputTokens);
      const mostOutput = choices * ofChoice;
      const most = estimate.inputTokens + mostOutput;
      this.#running.push({ account, meter, mostOutput, most, written: 0 });
      this.outcomes[account]?.push([200, admission.reservedTokens]);
    } catch (error) {
      if (error instanceof GatewayError) meter.failed(error);
      throw error;
    }
  }

  #pick(account: number, index: number): RunningCall | undefined {
    const own = this.#running.filter((call) => call.account === account);
    return own[index % Math.max(1, own.length)];
  }

  #ended(call: RunningCall): void {
    this.#running = this.#running.filter((other) => other !== call);
    const row = this.#ledger.closed.at(-1);
    this.outcomes[call.account]?.push([row?.inputTokens, row?.outputTokens, row?.usageSource]);
  }

  #newLimits(): MemoryLimitStore {
    const random = (): number => 0;
    const bounds = {};
    return new MemoryLimitStore({ clock: this.clock, random, ...bounds });
  }

  #newServices(): MeterServices {
    const { clock } = this;
    return {
      clock,
      limits: this.#limits,
      estimator: new TokenEstimator({ defaultOutputTokens: 100, nowMs: clock.monotonic() }),
      ledger: new KeptLedger(),
      prices: new PublishedPrices(),
      onCallEnded: () => undefined,
      onSettleFailed: (_, error) => {
        throw error;
      },
    };
  }

  #begin(): void {
    this.#ledger = new KeptLedger();
    this.#storedRows = 0;
    this.#limits = this.#newLimits();
    this.#services = { ...this.#newServices(), ledger: this.#ledger };
  }

  async #store(): Promise<void> {
    const rows = this.#ledger.closed.slice(this.#storedRows);
    this.#storedRows = this.#ledger.closed.length;
    if (rows.length === 0) return;
    // Admitted calls have attempts, which these tests leave out.
    await this.#stores.usage.insert(
      rows.map((row) => (row.reservedTokens === undefined ? row : { ...row, attempts: 1 })),
    );
  }

  async #open(index: number): Promise<void> {
    const id = `acct_${index}`;
    const application: Application = {
      id: `app_${index}`,
      accountId: id,
      environment: "test",
      name: "search",
      note: "",
      createdAt: 0,
      disabledAt: undefined,
      disabledBy: undefined,
      revision: 1,
    };
    await this.#stores.control.change(async ({ accounts, applications }) => {
      await accounts.insert(accountOf(id, { name: id }));
      await applications.insert(application);
    });
    this.#applications.push(application);
    this.#keys.push([]);
    for (let key = 0; key < this.#options.keysOfAccount; key += 1) await this.#issue(index);
  }

  async #issue(account: number): Promise<void> {
    const application = this.#applications[account];
    if (application === undefined) return;
    const services = {
      peppers: testPeppers(),
      random: (target: Uint8Array) => {
        for (let place = 0; place < target.length; place += 1) target[place] = this.#random++ % 251;
        return target;
      },
    };
    const settings = { plan: "plan" };
    const now = this.clock.now();
    const { key } = await this.#stores.control.change((transaction) =>
      insertKey(transaction, { application, settings, now }, services),
    );
    this.#keys[account]?.push(key);
  }
}

function reportedUsage(
  report: Report,
  { inputTokens, outputTokens }: Pick<TokenUsage, "inputTokens" | "outputTokens">,
): TokenUsage | undefined {
  const rest = { cachedInputTokens: 0, reasoningTokens: 0 };
  switch (report) {
    case "right":
      return { inputTokens, outputTokens, ...rest };
    case "nothing":
      return undefined;
    case "too-little":
      return { inputTokens: 1, outputTokens: Math.min(1, outputTokens), ...rest };
    case "far-too-much":
      return { inputTokens: inputTokens + 3_000, outputTokens: outputTokens + 3_000, ...rest };
  }
}
