import {
  type CountedRequest,
  isTokenCount,
  type LimitScope,
  type LimitState,
} from "../../../domain/limits/limit-scope.ts";
import type {
  CountDecision,
  LimitDecision,
  LimitRequest,
  LimitStore,
  RefusedByLimit,
} from "../limit-store.ts";
import { budgetsUnavailable } from "../budget-tally.ts";
import { countedSlotsOf, firstOf, heldTo, overrunLimit, stateOf } from "../decision.ts";
import type { Parameter, ValkeyClient } from "./client.ts";
import { Leases, type LeaseRest } from "./leases.ts";
import { decideScript } from "./limit-scripts.ts";
import {
  charge,
  chargeAlone,
  isOfTokens,
  limitsClosed,
  openOverrun,
  OwnWindows,
  refusalByShare,
  type Demanded,
  type OwnWindow,
} from "./own-windows.ts";
import { readDecision, type Decided } from "./read-reply.ts";
import { readWindows } from "./read-windows.ts";
import {
  applyHere,
  keysOf,
  Reports,
  stepsOf,
  type Account,
  type ReportsOptions,
  type Step,
} from "./reports.ts";
import { WindowNames, type RequestWindows } from "./scopes.ts";
import { Trust, type TrustOptions } from "./trust.ts";

export interface ValkeyLimitsOptions
  extends Omit<ReportsOptions, "trust" | "client">, TrustOptions {
  readonly client: Pick<ValkeyClient, "run" | "shards" | "onConnection">;
  /** From 0 to 1; jitters the retries of callers that were refused together. */
  readonly random: () => number;
  /** How many processes share the limits, as far as is known. */
  readonly processes: () => number;
  /** Whether to ask for leases. Default: true. */
  readonly isLeasing?: boolean;
}

interface OpenCall {
  readonly account: Account;
  readonly names: RequestWindows;
  readonly slot: number;
  readonly reserved: number;
  /** Tokens charged for the call so far. */
  charged: number;
  /** Tokens it may use beyond that. */
  overrun: number;
}

interface Asked extends Demanded {
  readonly names: RequestWindows;
  readonly account: Account;
  readonly own: readonly OwnWindow[];
}

type Admitted = { readonly slot: number; readonly state: LimitState };
type Outcome = Admitted | RefusedByLimit;

/** Half of the time after which the server forgets what calls could still use. */
const openToldMs = 60_000;
const tickMs = 100;

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
  readonly #calls = new Map<string, OpenCall>();
  readonly #leases: Leases;
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
    this.#reports = new Reports({ ...options, trust: this.trust });
    client.onConnection(() => this.trust.disconnected());
  }

  /**
   * What is left under lists of scopes of one id each, in the server; as this process has counted it
   * while the server does not decide.
   */
  async read(lists: readonly (readonly LimitScope[])[]): Promise<readonly LimitState[]> {
    this.#advance();
    const asked = lists.map((scopes) => this.#names.of(scopes));
    const { client } = this.#options;
    const states = this.trust.decides ? await readWindows(client, asked) : undefined;
    return asked.map((names) => {
      const told = states?.get(names);
      if (told !== undefined) return told;
      const own = this.#own.peek(names, this.#reports.slot);
      return stateOf(firstOf(own), own, this.#reports.serverMs);
    });
  }

  /** Looks at the server, and does so each second from now on. */
  async begin(): Promise<void> {
    await this.#reports.look(this.#names.sinceKeys);
    this.#schedule();
  }

  /** Gives back leases and tells what the server has not heard. */
  async end(): Promise<void> {
    this.#isEnded = true;
    this.#stopTimer();
    for (const ended of this.#leases.takeEnded(Infinity)) this.#giveBack(ended);
    await this.#reports.tellAll();
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
  }

  count(scopes: readonly LimitScope[]): CountDecision | Promise<CountDecision> {
    const outcome = this.#decide(scopes, { requests: 1, tokens: 0 }, 0);
    const read = (made: Outcome): CountDecision =>
      isRefused(made) ? made : { isAdmitted: true, counted: { scopes, slot: made.slot } };
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
    const demand = { requests: 1, tokens: 0 };
    return this.#tell(this.#reports.accountOf(names), stepsOf({ own, demand }, slot, -1), names);
  }

  get process(): string {
    return this.#options.process;
  }

  acquire(request: LimitRequest): LimitDecision | Promise<LimitDecision> {
    const { callId, scopes, tokens, mostTokens = tokens, counted } = request;
    if (!isTokenCount(tokens)) throw new RangeError(`cannot reserve ${tokens} tokens`);
    if ((request.reserveNano ?? 0) > 0) throw budgetsUnavailable();
    const overrun = Math.max(0, mostTokens - tokens);
    const requests = counted === undefined ? 1 : 0;
    const outcome = this.#decide(scopes, { requests, tokens }, overrun);
    const read = (made: Outcome): LimitDecision => {
      if (isRefused(made)) return made;
      const names = this.#names.of(scopes);
      this.#calls.set(callId, {
        account: this.#reports.accountOf(names),
        names,
        slot: made.slot,
        reserved: tokens,
        charged: tokens,
        overrun,
      });
      return { isAdmitted: true, state: made.state };
    };
    return outcome instanceof Promise ? outcome.then(read) : read(outcome);
  }

  use(callId: string, tokens: number): void | Promise<void> {
    if (!isTokenCount(tokens)) return undefined;
    this.#advance();
    const call = this.#calls.get(callId);
    if (call === undefined) return undefined;
    const more = tokens - call.charged;
    if (more <= 0) return undefined;
    const overrun = Math.min(more, call.overrun);
    call.charged = tokens;
    call.overrun -= overrun;
    const own = this.#own.of(call.names, this.#reports.slot).filter(isOfTokens);
    openOverrun(own, -overrun);
    const step = { kind: "m", slot: this.#reports.slot, amount: more, reserved: 0 } as const;
    const steps = own.map((of) => ({ own: of, ...step }));
    return this.#tell(call.account, steps, call.names);
  }

  settle(callId: string, tokens: number): void | Promise<void> {
    const now = this.#advance();
    const call = this.#calls.get(callId);
    if (call === undefined) return undefined;
    this.#calls.delete(callId);
    const { account, names, slot, reserved, charged, overrun } = call;
    const own = this.#own.of(names, this.#reports.slot).filter(isOfTokens);
    // Runs where calls end, so it must not throw: an invalid count keeps the charge.
    const used = isTokenCount(tokens) ? tokens : charged;
    const difference = used - charged;
    openOverrun(own, -overrun);
    if (difference === 0 && overrun === 0) return undefined;
    if (difference <= 0 && charged === reserved) {
      const rest = { requests: 0, tokens: -difference, overrun };
      if (this.#leases.giveBack({ names, slot, rest }, now)) {
        openOverrun(own, overrun);
        for (const { window } of own) window.adjust(slot, difference);
        return undefined;
      }
    }
    const step = { kind: "s", slot, amount: difference, reserved } as const;
    return this.#tell(
      account,
      own.map((of) => ({ own: of, ...step })),
      names,
    );
  }

  #decide(
    scopes: readonly LimitScope[],
    demand: Demanded["demand"],
    overrun: number,
  ): Outcome | Promise<Outcome> {
    const now = this.#advance();
    const names = this.#names.of(scopes);
    const account = this.#reports.accountOf(names);
    const own = this.#own.of(names, this.#reports.slot);
    const asked = { scopes, demand, overrun, names, account, own };
    const leased = this.#leases.take(names, { ...demand, overrun }, now);
    if (leased !== undefined) {
      // What its call may use beyond its charge is open with the lease.
      charge(asked, leased.slot);
      return leased;
    }
    const isDecided = this.trust.decides && now >= account.lostUntilMs;
    return isDecided ? this.#ask(asked) : this.#decideAlone(asked, true);
  }

  async #ask(asked: Asked): Promise<Outcome> {
    const { clock, client, random, process, processes, isLeasing = true } = this.#options;
    const { names, account, own, demand, overrun } = asked;
    // In the order of the connection: first what the server has not heard.
    if (account.steps.length > 0) void this.#reports.flush(account);
    const wish = isLeasing ? this.#leases.wish(names, this.#reports.slot) : undefined;
    const { requests = 0, tokens = 0, overrun: more = 0 } = wish ?? {};
    openOverrun(own, overrun + more);
    const sentAtMs = clock.monotonic();
    const parameters: Parameter[] = [process, demand.requests, demand.tokens, overrun];
    parameters.push(wish === undefined ? 0 : 4 * processes(), requests, tokens, more);
    for (const of of own) {
      const { scope, window } = of;
      const sort = scope.unit === "requests" ? "r" : "t";
      parameters.push(countedSlotsOf(scope), sort, Math.max(0, window.overrun - more));
      parameters.push(...[scope.limit, heldTo(scope), overrunLimit(scope)].map(String));
      of.openToldAtMs = sentAtMs;
    }
    let decided: Decided;
    try {
      const reply = await client.run(decideScript, keysOf(account, own), parameters);
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
        const { slot, state, lease, now: serverMs } = decided;
        openOverrun(own, lease.overrun - more);
        charge(asked, slot);
        this.#reports.compare(account, own, decided.windows);
        this.#leases.note(names, { ...demand, overrun }, slot);
        if (wish !== undefined) {
          for (const ended of this.#leases.takeEnded(clock.monotonic())) this.#giveBack(ended);
          this.#leases.granted(names, lease, { slot, state, sentAtMs, serverMs });
        }
        return { slot, state };
      }
      case "refused":
        this.#reports.compare(account, own, decided.windows);
        return decided.refusal;
      case "young":
        this.trust.young(decided.ageMs);
        return this.#decideAlone(asked, true);
      case "broken":
        this.#reports.unreadable(account, own);
        return this.#decideAlone(asked, true);
      default:
        return decided satisfies never;
    }
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
    const slot = this.#reports.slot;
    chargeAlone(asked, slot);
    openOverrun(own, overrun);
    if (isTold) this.#reports.note(account, stepsOf(asked, slot, 1));
    return { slot, state: stateOf(firstOf(own), own, this.#reports.serverMs) };
  }

  /** The server has not answered, or only later. */
  #decideWithout(asked: Asked, error: unknown): Outcome {
    const late = this.#reports.failed(error);
    const { account } = asked;
    let outcome: Outcome | undefined;
    let closed: unknown;
    try {
      outcome = this.#decideAlone(asked, false, error);
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

  /** Applies steps here, and tells the server: at once, or with others if the key is busy. */
  #tell(account: Account, steps: readonly Step[], names: RequestWindows): Promise<void> {
    for (const step of steps) applyHere(step);
    this.#reports.note(account, steps);
    if (!this.trust.answers || this.#leases.isBusy(names)) return Promise.resolve();
    return this.#reports.flush(account);
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

function isRefused(outcome: Outcome): outcome is RefusedByLimit {
  return "isAdmitted" in outcome;
}
