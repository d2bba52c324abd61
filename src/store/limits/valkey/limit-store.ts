import {
  type CountedRequest,
  isTokenCount,
  type LimitScope,
  type LimitState,
} from "../../../domain/limits/limit-scope.ts";
import type { BudgetScope, SpendNote } from "../../../domain/money/budget.ts";
import type { CountDecision, LimitDecision, LimitRequest, LimitStore } from "../limit-store.ts";
import { type BudgetTally, refusedByBudgets } from "../budget-tally.ts";
import { auditedRefusal, firstOf, stateOf } from "../decision.ts";
import type { ValkeyClient } from "./client.ts";
import { type Asked, decideRequest, isRefused, type Outcome } from "./decide-request.ts";
import { Leases, type LeaseRest } from "./leases.ts";
import { decideScript } from "./limit-scripts.ts";
import { OpenCalls } from "./open-calls.ts";
import {
  charge,
  chargeAlone,
  isOfTokens,
  limitsClosed,
  openOverrun,
  OwnWindows,
  refusalByShare,
  type Demanded,
} from "./own-windows.ts";
import { readDecision, type Decided } from "./read-reply.ts";
import { readWindows } from "./read-windows.ts";
import { Reports, stepsOf, type ReportsOptions } from "./reports.ts";
import { WindowNames } from "./scopes.ts";
import { type BudgetRequest, ServerBudgets } from "./server-budgets.ts";
import { Trust, type TrustOptions } from "./trust.ts";

export interface ValkeyLimitsOptions
  extends Omit<ReportsOptions, "trust" | "client" | "process">, TrustOptions {
  readonly client: Pick<ValkeyClient, "run" | "shards" | "onConnection">;
  /** From 0 to 1; jitters the retries of callers that were refused together. */
  readonly random: () => number;
  /** How many processes share the limits, as far as is known. */
  readonly processes: () => number;
  /** Whether to ask for leases. Default: true. */
  readonly isLeasing?: boolean;
  /** Of this process. */
  readonly tally: BudgetTally;
}

/** Half of the time after which the server forgets what calls could still use. */
const openToldMs = 60_000;
const tickMs = 100;
/** A request whose tokens are not known yet. */
const oneRequest = { requests: 1, tokens: 0 };

/**
 * Limits that all processes share in Valkey. Every admission is also counted here, so that this
 * process can grant its share while the server does not decide, and notices what it has lost.
 */
export class ValkeyLimits implements LimitStore {
  readonly trust: Trust;
  readonly #options: ValkeyLimitsOptions;
  readonly #names: WindowNames;
  readonly #own: OwnWindows;
  readonly #reports: Reports;
  readonly #calls: OpenCalls;
  readonly #leases: Leases;
  readonly #budgets: ServerBudgets;
  #isEnded = false;
  #stopTimer = (): void => undefined;

  constructor(options: ValkeyLimitsOptions) {
    this.#options = options;
    const { client, clock } = options;
    const now = clock.monotonic();
    this.#names = new WindowNames(client.shards);
    this.#own = new OwnWindows(now);
    this.#leases = new Leases(now);
    this.trust = new Trust(options);
    this.#budgets = new ServerBudgets(options);
    this.#reports = new Reports({ ...options, process: this.process, trust: this.trust });
    const [own, leases, reports, trust] = [this.#own, this.#leases, this.#reports, this.trust];
    this.#calls = new OpenCalls({ own, leases, reports, trust });
    client.onConnection(() => this.trust.disconnected());
  }

  /**
   * What is left under lists of scopes of one id each, in the server; as this process has counted it
   * while the server does not decide.
   */
  async read(lists: readonly (readonly LimitScope[])[]): Promise<readonly LimitState[]> {
    this.#advance();
    const asked = lists.map((scopes) => this.#names.of(scopes));
    const states = this.trust.decides ? await readWindows(this.#options.client, asked) : undefined;
    return asked.map((names) => states?.get(names) ?? this.#stateOf(names.scopes));
  }

  #stateOf(scopes: readonly LimitScope[]): LimitState {
    const own = this.#own.peek(this.#names.of(scopes), this.#reports.slot);
    return stateOf(firstOf(own), own, this.#reports.serverMs);
  }

  /** Looks at the server, and does so each second from now on. */
  async begin(): Promise<void> {
    await this.#reports.look(this.#names.sinceKeys);
    await this.#writeBudgets();
    this.#schedule();
  }

  /** Gives back leases and tells what the server has not heard. */
  async end(): Promise<void> {
    this.#isEnded = true;
    this.#stopTimer();
    for (const ended of this.#leases.takeEnded(Infinity)) this.#giveBack(ended);
    await this.#reports.tellAll();
    await this.#writeBudgets();
  }

  /** Does what is due. Runs by itself once started. */
  async tick(): Promise<void> {
    const now = this.#advance();
    for (const ended of this.#leases.takeEnded(now)) this.#giveBack(ended);
    await this.#reports.look(this.#names.sinceKeys);
    for (const own of this.#own.openSince(now - openToldMs)) {
      const names = this.#names.of([own.scope]);
      await this.#reports.correct(this.#reports.accountOf(names), [], [own]);
    }
    await this.#reports.tellAll();
    await this.#writeBudgets();
  }

  /** What is stored of spend. */
  updateSpend(note: SpendNote): void {
    this.#budgets.update(note);
  }

  count(scopes: readonly LimitScope[]): CountDecision | Promise<CountDecision> {
    const outcome = this.#decide({ scopes, demand: oneRequest, overrun: 0 });
    const read = (made: Outcome): CountDecision => {
      if (isRefused(made)) return made;
      const { slot, wouldRefuse } = made;
      return { isAdmitted: true, counted: { scopes, slot }, wouldRefuse };
    };
    return outcome instanceof Promise ? outcome.then(read) : read(outcome);
  }

  uncount({ scopes, slot }: CountedRequest): Promise<void> {
    const now = this.#advance();
    const names = this.#names.of(scopes);
    const own = this.#own.of(names, this.#reports.slot).filter((of) => !isOfTokens(of));
    if (this.#leases.giveBack({ names, slot, rest: { requests: 1, tokens: 0, overrun: 0 } }, now)) {
      for (const { window } of own) window.uncount(slot);
      return Promise.resolve();
    }
    const steps = stepsOf({ own, demand: oneRequest }, slot, -1);
    return this.#calls.tell(this.#reports.accountOf(names), steps, names);
  }

  get process(): string {
    return this.#options.tally.process;
  }

  placeOf(scope: BudgetScope): BudgetScope {
    return this.#options.tally.placeOf(scope);
  }

  acquire(request: LimitRequest): LimitDecision | Promise<LimitDecision> {
    const { callId, scopes, tokens, mostTokens = tokens, counted } = request;
    const { random, tally } = this.#options;
    if (!isTokenCount(tokens)) throw new RangeError(`cannot reserve ${tokens} tokens`);
    const overrun = Math.max(0, mostTokens - tokens);
    const requests = counted === undefined ? 1 : 0;
    const { budgets, reserveNano = 0 } = request;
    let money: BudgetRequest | undefined;
    if (budgets !== undefined && reserveNano > 0) {
      // What is known here is less than what the server knows, and is enough when nothing is left.
      const full = tally.note.isComplete ? tally.full(budgets, reserveNano) : undefined;
      if (full !== undefined) return refusedByBudgets(full, this.#stateOf(scopes), random);
      money = this.#budgets.request(callId, budgets, reserveNano);
    }
    const outcome = this.#decide({ scopes, demand: { requests, tokens }, overrun }, money);
    const read = (made: Outcome): LimitDecision => {
      if (isRefused(made)) return made;
      if (budgets !== undefined && money === undefined) tally.reserve(callId, budgets, 0);
      const names = this.#names.of(scopes);
      this.#calls.add(callId, {
        account: this.#reports.accountOf(names),
        names,
        slot: made.slot,
        reserved: tokens,
        charged: tokens,
        overrun,
      });
      return { isAdmitted: true, state: made.state, wouldRefuse: made.wouldRefuse };
    };
    return outcome instanceof Promise ? outcome.then(read) : read(outcome);
  }

  use(callId: string, tokens: number): void | Promise<void> {
    if (!isTokenCount(tokens)) return undefined;
    this.#advance();
    return this.#calls.use(callId, tokens);
  }

  settle(callId: string, tokens: number, costNano?: number): void | Promise<void> {
    const settling = this.#calls.settle(callId, tokens, this.#advance());
    const writing = this.#budgets.settle(callId, costNano, this.trust.answers);
    if (writing === undefined) return settling;
    return writing.catch((error: unknown) => void this.#reports.failed(error));
  }

  #decide(demanded: Demanded, money?: BudgetRequest): Outcome | Promise<Outcome> {
    const now = this.#advance();
    const { scopes, demand, overrun } = demanded;
    const names = this.#names.of(scopes);
    const account = this.#reports.accountOf(names);
    const own = this.#own.of(names, this.#reports.slot);
    const asked = { scopes, demand, overrun, names, account, own, money };
    const leased =
      money === undefined ? this.#leases.take(names, { ...demand, overrun }, now) : undefined;
    if (leased !== undefined) {
      // What its call may use beyond its charge is open with the lease.
      charge(asked, leased.slot);
      return leased;
    }
    const isDecided = this.trust.decides && now >= account.lostUntilMs;
    return isDecided ? this.#ask(asked) : this.#decideApart(asked);
  }

  async #ask(asked: Asked): Promise<Outcome> {
    const { clock, client, random, processes, isLeasing = true } = this.#options;
    const { names, account, own, demand, overrun, money } = asked;
    // In the order of the connection: first what the server has not heard.
    if (account.steps.length > 0) void this.#reports.flush(account);
    const wish =
      isLeasing && money === undefined ? this.#leases.wish(names, this.#reports.slot) : undefined;
    const { overrun: more = 0 } = wish ?? {};
    openOverrun(own, overrun + more);
    const sentAtMs = clock.monotonic();
    const terms = { process: this.process, wish, parts: 4 * processes(), sentAtMs };
    const { keys, parameters } = decideRequest(asked, terms);
    let decided: Decided;
    try {
      const reply = await client.run(decideScript, keys, parameters);
      decided = readDecision(reply, asked, random);
    } catch (error) {
      openOverrun(own, -overrun - more);
      return this.#decideWithout(asked, error);
    }
    this.#reports.heard(decided.now);
    for (const { window } of own) window.advance(decided.slot);
    if (decided.is !== "admitted") openOverrun(own, -overrun - more);
    switch (decided.is) {
      case "admitted": {
        if (money !== undefined) this.#budgets.admitted(money);
        const { slot, state, lease, now: serverMs, wouldRefuse } = decided;
        openOverrun(own, lease.overrun - more);
        charge(asked, slot);
        this.#reports.compare(account, own, decided.windows);
        this.#leases.note(names, { ...demand, overrun }, slot);
        if (wish !== undefined) {
          for (const ended of this.#leases.takeEnded(clock.monotonic())) this.#giveBack(ended);
          this.#leases.granted(names, lease, { slot, state, sentAtMs, serverMs });
        }
        return { slot, state, wouldRefuse };
      }
      case "full":
        return this.#refuseMoney(asked, decided);
      case "refused":
        if (money !== undefined) this.#budgets.refused(money);
        this.#reports.compare(account, own, decided.windows);
        return decided.refusal;
      case "young":
        this.trust.young(decided.ageMs);
        return this.#decideApart(asked);
      case "broken":
        this.#reports.unreadable(account, own);
        return this.#decideApart(asked);
      default:
        return decided satisfies never;
    }
  }

  /** Tokens within the share of this process; money by the server, as long as that answers. */
  #decideApart(asked: Asked): Outcome | Promise<Outcome> {
    const { money } = asked;
    return money === undefined ? this.#decideAlone(asked, true) : this.#decideMoney(asked, money);
  }

  async #decideMoney(asked: Asked, money: BudgetRequest): Promise<Outcome> {
    const { client, random } = this.#options;
    if (!this.trust.answers) return this.#refuseMoney(asked);
    const terms = { process: this.process, wish: undefined, parts: 0, sentAtMs: 0 };
    const { keys, parameters } = decideRequest({ ...asked, own: [] }, terms);
    let decided: Decided | undefined;
    try {
      decided = readDecision(await client.run(decideScript, keys, parameters), asked, random);
    } catch (error) {
      void this.#reports.failed(error);
    }
    if (decided?.is !== "admitted") return this.#refuseMoney(asked, decided);
    this.#budgets.admitted(money);
    try {
      const made = this.#decideAlone(asked, true);
      if (isRefused(made)) this.#budgets.refused(money);
      return made;
    } catch (error) {
      this.#budgets.refused(money);
      throw error;
    }
  }

  /** By budgets without room, or as nobody knows. */
  #refuseMoney({ money, scopes }: Asked, decided?: Decided): Outcome {
    if (money === undefined) throw new TypeError("no money was asked for");
    const isFull = decided?.is === "full";
    const full = this.#budgets.full(money, isFull ? decided.full : []);
    const state = (isFull ? decided.state : undefined) ?? this.#stateOf(scopes);
    return refusedByBudgets(full, state, this.#options.random);
  }

  async #writeBudgets(): Promise<void> {
    if (!this.trust.answers) return;
    await this.#budgets.tick().catch((error: unknown) => void this.#reports.failed(error));
  }

  /** Decides within the share of this process. `isTold`: the server is to hear of it. */
  #decideAlone(asked: Asked, isTold: boolean, cause?: unknown): Outcome {
    const { scopes, account, own, overrun } = asked;
    const { random, processes, clock } = this.#options;
    if (scopes.some(({ isClosedAlone = false }) => isClosedAlone)) throw limitsClosed(cause);
    const now = clock.monotonic();
    const waitMs = Math.ceil(Math.max(this.trust.waitMs, account.lostUntilMs - now, 1_000));
    const terms = { processes: processes(), nowMs: this.#reports.serverMs, waitMs, random };
    const refusal = refusalByShare(own, asked, terms);
    if (refusal !== undefined) return refusal;
    const wouldRefuse = refusalByShare(own, asked, { ...terms, decide: auditedRefusal });
    const slot = this.#reports.slot;
    chargeAlone(asked, slot);
    openOverrun(own, overrun);
    if (isTold) this.#reports.note(account, stepsOf(asked, slot, 1));
    return { slot, state: stateOf(firstOf(own), own, this.#reports.serverMs), wouldRefuse };
  }

  /** The server has not answered, or only later. */
  #decideWithout(asked: Asked, error: unknown): Outcome {
    const late = this.#reports.failed(error);
    const { account } = asked;
    let outcome: Outcome | undefined;
    let closed: unknown;
    try {
      outcome =
        asked.money === undefined
          ? this.#decideAlone(asked, false, error)
          : this.#refuseMoney(asked);
    } catch (thrown) {
      closed = thrown;
    }
    const admitted = outcome === undefined || isRefused(outcome) ? undefined : outcome;
    const slot = admitted?.slot ?? this.#reports.slot;
    const isAdmitted = admitted !== undefined;
    // Whatever this process has granted is reported, unless the server turns out to have charged it.
    const settle = (wasCharged: boolean): void => {
      if (isAdmitted === wasCharged) return;
      this.#reports.note(account, stepsOf(asked, slot, isAdmitted ? 1 : -1));
    };
    const read = (reply: unknown): void => {
      const decided = readDecision(reply, asked, this.#options.random);
      settle(decided.is === "admitted");
      if (decided.is !== "admitted") return;
      const { names } = asked;
      this.#giveBack({ names, slot: decided.slot, rest: { ...decided.lease, overrun: 0 } });
    };
    if (late === undefined) settle(false);
    else late.then(read).catch(() => settle(false));
    if (outcome === undefined) throw closed;
    return outcome;
  }

  #giveBack({ names, slot, rest }: LeaseRest): void {
    const own = this.#own.of(names, this.#reports.slot);
    openOverrun(own, -rest.overrun);
    this.#reports.note(this.#reports.accountOf(names), stepsOf({ own, demand: rest }, slot, -1));
  }

  #schedule(): void {
    if (this.#isEnded) return;
    this.#stopTimer = this.#options.clock.schedule(() => {
      const again = (): void => this.#schedule();
      this.tick().then(again, (error: unknown) => {
        this.#options.onError(error);
        again();
      });
    }, tickMs);
  }

  #advance(): number {
    const now = this.#options.clock.monotonic();
    this.#own.advance(now);
    this.#reports.advance(now);
    return now;
  }
}
