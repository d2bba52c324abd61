import { AgingMap } from "../../../../domain/limits/aging-map.ts";
import type { CountedRequest, LimitScope } from "../../../../domain/limits/limit-scope.ts";
import type { CountDecision, LimitDecision, LimitRequest, LimitStore } from "../../../store.ts";
import { isTokenCount } from "../../../../domain/limits/token-count.ts";
import type { ValkeyConnection } from "../connection/valkey-connection.ts";
import { ValkeyUnavailable } from "../connection/valkey-errors.ts";
import { AccountUse, type AloneCharge } from "./account-use.ts";
import { CatchUp } from "./catch-up.ts";
import { leasesChannel } from "./scripts/leases-channel.ts";
import { limitsClosed } from "./limits-closed.ts";
import { OpenCalls, type Admission } from "./open-calls.ts";
import type { Decided } from "./read-decision.ts";
import { tagOf } from "./scope-parameters.ts";
import { Shadow, type ShadowOptions } from "./shadow.ts";
import { mostRecalls, ValkeyLeases } from "./valkey-leases.ts";
import { ValkeyLimits, type KnownEpoch, type ValkeyLimitsOptions } from "./valkey-limits.ts";

export interface SharedLimitsOptions extends ShadowOptions, ValkeyLimitsOptions {
  readonly connection: Pick<ValkeyConnection, "run" | "subscribe">;
  /** Called when a script fails for another reason than the server: an error of the program. */
  readonly onError: (error: unknown) => void;
  /** Whether Valkey knows what all workers have admitted. Default: always. */
  readonly isTrusted?: () => boolean;
  /** Called when Valkey seems to have lost what it knew. */
  readonly onLost?: () => void;
  /** Whether to ask for leases. Default: true. */
  readonly isLeasing?: boolean;
}

/** Longer than use counts, except in the longest guarantees. */
const accountLifetimeMs = 300_000;
/** After so many losses in one decision, the worker decides alone. */
const mostLosses = 3;

/**
 * Limits that all workers of all gateways share in Valkey. Every admission is also counted here, so
 * that this worker can decide within its share when Valkey does not answer, and can restore what
 * Valkey has lost. Before Valkey decides about an account again, it is told what was admitted alone.
 */
export class SharedLimits implements LimitStore {
  readonly #options: SharedLimitsOptions;
  readonly #valkey: ValkeyLimits;
  readonly #shadow: Shadow;
  readonly #accounts: AgingMap<AccountUse>;
  readonly #catchUp: CatchUp;
  readonly #leases: ValkeyLeases;
  readonly #calls: OpenCalls;
  /** The slots of requests here; Valkey's are in their own time. */
  readonly #counted = new WeakMap<CountedRequest, { slot: number; isAlone: boolean }>();

  constructor(options: SharedLimitsOptions) {
    this.#options = options;
    this.#valkey = new ValkeyLimits(options);
    this.#shadow = new Shadow(options);
    const { clock, workers, onError, isLeasing = true } = options;
    this.#calls = new OpenCalls(clock);
    const valkey = this.#valkey;
    const forgetLeases = (account: AccountUse): void => this.#leases.lost(account);
    this.#catchUp = new CatchUp({ valkey, shadow: this.#shadow, onError, forgetLeases });
    const note = this.#catchUp.note.bind(this.#catchUp);
    const ofLeases = { valkey, clock, areWanted: isLeasing, workers, note, onError };
    this.#leases = new ValkeyLeases(ofLeases);
    options.connection.subscribe(leasesChannel, (tag) => {
      const account = this.#accounts.peek(tag);
      if (account !== undefined) this.#leases.recall(account);
    });
    this.#accounts = new AgingMap(accountLifetimeMs, clock.monotonic());
  }

  count(scopes: readonly LimitScope[]): CountDecision | Promise<CountDecision> {
    const counted = this.#leases.count(scopes);
    return counted === undefined ? this.#countUnleased(scopes) : this.#counts(counted);
  }

  uncount(counted: CountedRequest): void {
    const here = this.#counted.get(counted);
    if (here === undefined) return;
    this.#counted.delete(counted);
    const { scopes } = counted;
    this.#shadow.uncount({ scopes, slot: here.slot });
    if (this.#leases.uncount(counted)) return;
    const account = this.#accountOf(scopes);
    if (here.isAlone) {
      this.#chargeAlone(account, { scopes, slot: here.slot, requests: -1, tokens: 0 });
    } else {
      // Of an account that is being restored, with what was counted: under its new epoch.
      const { epoch } = account;
      const uncount = once(() => this.#valkey.uncount(counted, epoch || account.epoch));
      this.#catchUp.note(account, uncount);
    }
  }

  acquire(request: LimitRequest): LimitDecision | Promise<LimitDecision> {
    const leased = this.#leases.acquire(request);
    if (leased === undefined) return this.#acquireUnleased(request);
    this.#shadow.admitted(request);
    this.#open(request, this.#accountOf(request.scopes), { leaseAccount: leased.lease.account });
    return { isAdmitted: true, state: leased.state };
  }

  use(callId: string, tokens: number): void {
    const call = this.#calls.get(callId);
    if (call === undefined || !isTokenCount(tokens)) return;
    this.#shadow.use(callId, tokens);
    const more = tokens - call.charged;
    if (more <= 0) return;
    call.charged = tokens;
    const { account, scopes, leaseAccount } = call;
    if (call.isAlone) {
      this.#chargeAlone(account, { scopes, slot: this.#shadow.slot, requests: 0, tokens: more });
    } else if (!this.#leases.charge(leaseAccount, { callId, tokens, isFinal: false })) {
      this.#catchUp.note(account, () => this.#valkey.use(callId, scopes, tokens));
    }
  }

  settle(callId: string, tokens: number): void {
    const call = this.#calls.close(callId);
    if (call === undefined) return;
    this.#shadow.settle(callId, tokens);
    const { account, scopes, slot, charged, leaseAccount } = call;
    const used = isTokenCount(tokens) ? tokens : -1;
    if (!call.isAlone) {
      if (this.#leases.charge(leaseAccount, { callId, tokens, isFinal: true })) return;
      this.#catchUp.note(account, () => this.#valkey.settle(callId, scopes, used));
    } else if (used >= 0) {
      this.#chargeAlone(account, { scopes, slot, requests: 0, tokens: used - charged });
    }
  }

  /** Valkey has lost what it knew: prepares to tell it what this worker has used of all accounts. */
  restore(): void {
    const all = new Set(Array.from(this.#accounts.entries(), ([, account]) => account));
    // Of accounts whose last request is long ago, too.
    for (const account of this.#calls.accounts()) all.add(account);
    for (const account of all) this.#catchUp.verify(account);
  }

  /** Gives all leases back and tells Valkey what it does not know yet. */
  async end(): Promise<void> {
    this.#leases.end();
    await this.catchUp();
  }

  /** Tells Valkey what it does not know yet about any account, and which calls still run. */
  catchUp(): Promise<void> {
    // Valkey forgets the overrun of calls of which it hears nothing.
    for (const { callId, account, scopes, charged, isAlone } of this.#calls.takeForgettable()) {
      if (isAlone || account.isBehind) continue;
      this.#catchUp.note(account, () => this.#valkey.use(callId, scopes, charged));
    }
    return this.#catchUp.all();
  }

  /** Undefined: this worker decides alone. */
  async #decide(
    account: AccountUse,
    scopes: readonly LimitScope[],
    ask: (known: KnownEpoch) => Promise<Decided>,
  ) {
    const { isTrusted = () => true, onLost = () => undefined } = this.#options;
    try {
      let losses = 0;
      let recalls = 0;
      while (losses < mostLosses && isTrusted()) {
        await this.#catchUp.bring(account);
        if (!isTrusted()) break;
        const { epoch } = account;
        const decided = await ask({ epoch, mayWait: recalls < mostRecalls });
        if (decided.is === "held") {
          await this.#leases.recalled(account, recalls);
          recalls += 1;
          continue;
        }
        if (decided.is === "admitted") account.admitted(scopes, decided.epoch);
        if (decided.is !== "lost") return decided;
        losses += 1;
        this.#catchUp.restore(account, epoch);
        if (account.isBehind) onLost();
      }
    } catch (error) {
      if (!(error instanceof ValkeyUnavailable)) this.#options.onError(error);
      if (isClosed(scopes)) throw limitsClosed(error);
      return undefined;
    }
    if (isClosed(scopes)) throw limitsClosed(undefined);
    return undefined;
  }

  async #countUnleased(scopes: readonly LimitScope[]): Promise<CountDecision> {
    const account = this.#accountOf(scopes);
    const decided = await this.#decide(account, scopes, (known) =>
      this.#valkey.count(scopes, known),
    );
    if (decided?.is === "refused") return decided.refusal;
    if (decided === undefined) return this.#countAlone(account, scopes);
    this.#leases.ask(account, this.#leases.accountOf({ scopes }), scopes);
    return this.#counts({ scopes, slot: decided.slot });
  }

  /** Valkey has charged the request. */
  #counts(counted: CountedRequest): CountDecision {
    const slot = this.#shadow.counted(counted.scopes);
    this.#counted.set(counted, { slot, isAlone: false });
    return { isAdmitted: true, counted };
  }

  async #acquireUnleased(request: LimitRequest): Promise<LimitDecision> {
    const { tokens, scopes } = request;
    if (!isTokenCount(tokens)) throw new RangeError(`cannot reserve ${tokens} tokens`);
    const account = this.#accountOf(scopes);
    const decided = await this.#decide(account, scopes, (known) =>
      this.#valkey.acquire(request, known),
    );
    if (decided?.is === "refused") return decided.refusal;
    if (decided === undefined) return this.#acquireAlone(account, request);
    this.#shadow.admitted(request);
    const leaseAccount = this.#leases.accountOf(request);
    this.#open(request, account, { leaseAccount });
    this.#leases.ask(account, leaseAccount, scopes);
    return { isAdmitted: true, state: decided.state };
  }

  #countAlone(account: AccountUse, scopes: readonly LimitScope[]): CountDecision {
    const decision = this.#shadow.count(scopes);
    if (!decision.isAdmitted) return decision;
    const { slot } = decision.counted;
    this.#counted.set(decision.counted, { slot, isAlone: true });
    this.#chargeAlone(account, { scopes, slot, requests: 1, tokens: 0 });
    return decision;
  }

  #acquireAlone(account: AccountUse, request: LimitRequest): LimitDecision {
    const decision = this.#shadow.acquire(request);
    if (!decision.isAdmitted) return decision;
    const { scopes, tokens, counted } = request;
    const requests = counted === undefined ? 1 : 0;
    this.#chargeAlone(account, { scopes, slot: this.#shadow.slot, requests, tokens });
    this.#open(request, account, { isAlone: true });
    return decision;
  }

  #chargeAlone(account: AccountUse, charge: AloneCharge): void {
    account.chargeAlone(charge);
    this.#catchUp.mark(account);
  }

  #open(
    request: LimitRequest,
    account: AccountUse,
    { isAlone = false, leaseAccount }: Partial<Pick<Admission, "isAlone" | "leaseAccount">>,
  ): void {
    this.#calls.open(request, { account, slot: this.#shadow.slot, isAlone, leaseAccount });
  }

  #accountOf([first]: readonly LimitScope[]): AccountUse {
    if (first === undefined) throw new RangeError("a limit request names at least one scope");
    const tag = tagOf(first);
    const now = this.#options.clock.monotonic();
    this.#accounts.advance(now);
    const known = this.#accounts.touch(tag);
    known?.known.advance(now);
    if (known !== undefined) return known;
    const account = new AccountUse(tag, now);
    this.#accounts.set(tag, account);
    return account;
  }
}

function isClosed(scopes: readonly LimitScope[]): boolean {
  return scopes.some(({ isClosedAlone = false }) => isClosedAlone);
}

/** Received twice, it would revert another request. */
function once(note: () => Promise<void>): () => Promise<void> {
  let isSent = false;
  return async () => {
    if (isSent) return;
    isSent = true;
    try {
      await note();
    } catch (error) {
      isSent = !(error instanceof ValkeyUnavailable) || error.isSent;
      throw error;
    }
  };
}
