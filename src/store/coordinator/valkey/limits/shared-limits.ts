import { AgingMap } from "../../../../domain/limits/aging-map.ts";
import type { CountedRequest, LimitScope } from "../../../../domain/limits/limit-scope.ts";
import type { CountDecision, LimitDecision, LimitRequest, LimitStore } from "../../../store.ts";
import { isTokenCount } from "../../memory/reservations.ts";
import { ValkeyUnavailable } from "../connection/valkey-errors.ts";
import { AccountUse, type AloneCharge, type OpenCall } from "./account-use.ts";
import { CatchUp } from "./catch-up.ts";
import { limitsClosed } from "./limits-closed.ts";
import type { Decided } from "./read-decision.ts";
import { tagOf } from "./scope-parameters.ts";
import { Shadow, type ShadowOptions } from "./shadow.ts";
import { ValkeyLimits, type ValkeyLimitsOptions } from "./valkey-limits.ts";
import { holdAgainMs } from "./window-script.ts";

export interface SharedLimitsOptions extends ShadowOptions, ValkeyLimitsOptions {
  /** Called when a script fails for another reason than the server: an error of the program. */
  readonly onError: (error: unknown) => void;
  /** Whether Valkey knows what all workers have admitted. Default: always. */
  readonly isTrusted?: () => boolean;
  /** Called when Valkey seems to have lost what it knew. */
  readonly onLost?: () => void;
}

/** Longer than use counts, except in the longest guarantees. */
const accountLifetimeMs = 300_000;
/** After so many losses in one decision, the worker decides alone. */
const mostAttempts = 3;

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
  readonly #calls = new Map<string, OpenCall>();
  /** Those that may use more than they reserved, the one that was held first in front. */
  readonly #overrunning = new Map<string, OpenCall>();
  /** The slots of requests here; Valkey's are in their own time. */
  readonly #counted = new WeakMap<CountedRequest, { slot: number; isAlone: boolean }>();

  constructor(options: SharedLimitsOptions) {
    this.#options = options;
    this.#valkey = new ValkeyLimits(options);
    this.#shadow = new Shadow(options);
    const { onError } = options;
    this.#catchUp = new CatchUp({ valkey: this.#valkey, shadow: this.#shadow, onError });
    this.#accounts = new AgingMap(accountLifetimeMs, options.clock.monotonic());
  }

  async count(scopes: readonly LimitScope[]): Promise<CountDecision> {
    const account = this.#accountOf(scopes);
    const decided = await this.#decide(account, scopes, (epoch) =>
      this.#valkey.count(scopes, epoch),
    );
    if (decided?.is === "refused") return decided.refusal;
    if (decided === undefined) return this.#countAlone(account, scopes);
    const counted = { scopes, slot: decided.slot };
    this.#counted.set(counted, { slot: this.#shadow.counted(scopes), isAlone: false });
    return { isAdmitted: true, counted };
  }

  uncount(counted: CountedRequest): void {
    const here = this.#counted.get(counted);
    if (here === undefined) return;
    this.#counted.delete(counted);
    const { scopes } = counted;
    this.#shadow.uncount({ scopes, slot: here.slot });
    const account = this.#accountOf(scopes);
    if (here.isAlone) {
      this.#chargeAlone(account, { scopes, slot: here.slot, requests: -1, tokens: 0 });
    } else {
      const uncount = once(() => this.#valkey.uncount(counted));
      this.#catchUp.note(account, uncount);
    }
  }

  async acquire(request: LimitRequest): Promise<LimitDecision> {
    const { tokens, scopes } = request;
    if (!isTokenCount(tokens)) throw new RangeError(`cannot reserve ${tokens} tokens`);
    const account = this.#accountOf(scopes);
    const decided = await this.#decide(account, scopes, (epoch) =>
      this.#valkey.acquire(request, epoch),
    );
    if (decided?.is === "refused") return decided.refusal;
    if (decided === undefined) return this.#acquireAlone(account, request);
    this.#shadow.admitted(request);
    this.#open(account, request, false);
    return { isAdmitted: true, state: decided.state };
  }

  use(callId: string, tokens: number): void {
    const call = this.#calls.get(callId);
    if (call === undefined || !isTokenCount(tokens)) return;
    this.#shadow.use(callId, tokens);
    const more = tokens - call.charged;
    if (more <= 0) return;
    call.charged = tokens;
    const { account, scopes } = call;
    if (call.isAlone) {
      this.#chargeAlone(account, { scopes, slot: this.#shadow.slot, requests: 0, tokens: more });
    } else this.#catchUp.note(account, () => this.#valkey.use(callId, scopes, tokens));
  }

  settle(callId: string, tokens: number): void {
    const call = this.#calls.get(callId);
    if (call === undefined) return;
    this.#calls.delete(callId);
    this.#overrunning.delete(callId);
    this.#shadow.settle(callId, tokens);
    const { account, scopes, slot, charged } = call;
    account.calls.delete(callId);
    const used = isTokenCount(tokens) ? tokens : -1;
    if (!call.isAlone) {
      this.#catchUp.note(account, () => this.#valkey.settle(callId, scopes, used));
    } else if (used >= 0) {
      this.#chargeAlone(account, { scopes, slot, requests: 0, tokens: used - charged });
    }
  }

  /** Valkey has lost what it knew: prepares to tell it what this worker has used of all accounts. */
  restore(): void {
    const all = new Set(Array.from(this.#accounts.entries(), ([, account]) => account));
    // Of accounts whose last request is long ago, too.
    for (const { account } of this.#calls.values()) all.add(account);
    for (const account of all) this.#catchUp.verify(account);
  }

  /** Tells Valkey what it does not know yet about any account, and which calls still run. */
  catchUp(): Promise<void> {
    this.#holdAgain();
    return this.#catchUp.all();
  }

  /** Valkey forgets the overrun of calls of which it hears nothing. */
  #holdAgain(): void {
    const now = this.#options.clock.monotonic();
    for (const [callId, call] of this.#overrunning) {
      if (now < call.heldAtMs + holdAgainMs) return;
      const { account, scopes, charged } = call;
      call.heldAtMs = now;
      this.#overrunning.delete(callId);
      this.#overrunning.set(callId, call);
      if (call.isAlone || account.isBehind) continue;
      this.#catchUp.note(account, () => this.#valkey.use(callId, scopes, charged));
    }
  }

  /** Undefined: this worker decides alone. */
  async #decide(
    account: AccountUse,
    scopes: readonly LimitScope[],
    ask: (epoch: string) => Promise<Decided>,
  ) {
    const { isTrusted = () => true, onLost = () => undefined } = this.#options;
    try {
      for (let attempt = 0; attempt < mostAttempts && isTrusted(); attempt++) {
        await this.#catchUp.bring(account);
        if (!isTrusted()) break;
        const { epoch } = account;
        const decided = await ask(epoch);
        if (decided.is === "admitted") account.admitted(scopes, decided.epoch);
        if (decided.is !== "lost") return decided;
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
    this.#open(account, request, true);
    return decision;
  }

  #chargeAlone(account: AccountUse, charge: AloneCharge): void {
    account.chargeAlone(charge);
    this.#catchUp.mark(account);
  }

  #open(account: AccountUse, request: LimitRequest, isAlone: boolean): void {
    const { callId, scopes, tokens, mostTokens = tokens } = request;
    const overrun = Math.max(0, mostTokens - tokens);
    const { slot } = this.#shadow;
    const call: OpenCall = {
      callId,
      account,
      scopes,
      slot,
      reserved: tokens,
      overrun,
      heldAtMs: this.#options.clock.monotonic(),
      charged: tokens,
      isAlone,
    };
    this.#calls.set(callId, call);
    account.calls.set(callId, call);
    if (overrun > 0) this.#overrunning.set(callId, call);
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

/** Sent again, it would revert another request. */
function once(note: () => Promise<void>): () => Promise<void> {
  let isSent = false;
  return async () => {
    if (isSent) return;
    isSent = true;
    await note();
  };
}
