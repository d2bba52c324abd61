import { AgingMap } from "../../../../domain/limits/aging-map.ts";
import type { CountedRequest, LimitScope } from "../../../../domain/limits/limit-scope.ts";
import { nameOf } from "../../../../domain/limits/scope-use.ts";
import type { CountDecision, LimitDecision, LimitRequest, LimitStore } from "../../../store.ts";
import { isTokenCount } from "../../memory/reservations.ts";
import { ValkeyUnavailable } from "../connection/valkey-errors.ts";
import {
  AccountUse,
  type AloneCharge,
  type IncludedWindow,
  type Inclusion,
  type OpenCall,
} from "./account-use.ts";
import { limitsClosed } from "./limits-closed.ts";
import type { Decided } from "./read-decision.ts";
import { tagOf, windowsOf } from "./scope-parameters.ts";
import { Shadow, type ShadowOptions } from "./shadow.ts";
import { ValkeyLimits, type EpochOf, type ValkeyLimitsOptions } from "./valkey-limits.ts";

export interface SharedLimitsOptions extends ShadowOptions, ValkeyLimitsOptions {
  /** Called when a script fails for another reason than the server: an error of the program. */
  readonly onError: (error: unknown) => void;
}

/** Longer than use counts, except in the longest guarantees. */
const accountLifetimeMs = 300_000;
/** After so many losses in one decision, the worker decides alone. */
const mostAttempts = 3;
/** Accounts brought up to date at once. */
const mostBringing = 100;

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
  readonly #behind = new Set<AccountUse>();
  readonly #calls = new Map<string, OpenCall>();
  /** The slots of requests here; Valkey's are in their own time. */
  readonly #counted = new WeakMap<CountedRequest, { slot: number; isAlone: boolean }>();
  #inclusions = 0;

  constructor(options: SharedLimitsOptions) {
    this.#options = options;
    this.#valkey = new ValkeyLimits(options);
    this.#shadow = new Shadow(options);
    this.#accounts = new AgingMap(accountLifetimeMs, options.clock.monotonic());
  }

  async count(scopes: readonly LimitScope[]): Promise<CountDecision> {
    const account = this.#accountOf(scopes);
    const decided = await this.#decide(account, scopes, (epochOf) =>
      this.#valkey.count(scopes, epochOf),
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
      return;
    }
    const uncount = once(() => this.#valkey.uncount(counted));
    this.#note(account, uncount);
  }

  async acquire(request: LimitRequest): Promise<LimitDecision> {
    const { tokens, scopes } = request;
    if (!isTokenCount(tokens)) throw new RangeError(`cannot reserve ${tokens} tokens`);
    const account = this.#accountOf(scopes);
    const decided = await this.#decide(account, scopes, (epochOf) =>
      this.#valkey.acquire(request, epochOf),
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
    if (call.isAlone)
      this.#chargeAlone(account, { scopes, slot: this.#shadow.slot, requests: 0, tokens: more });
    else this.#note(account, () => this.#valkey.use(callId, scopes, tokens));
  }

  settle(callId: string, tokens: number): void {
    const call = this.#calls.get(callId);
    if (call === undefined) return;
    this.#calls.delete(callId);
    this.#shadow.settle(callId, tokens);
    const { account, scopes, slot, charged } = call;
    account.calls.delete(callId);
    const used = isTokenCount(tokens) ? tokens : -1;
    if (!call.isAlone) {
      this.#note(account, () => this.#valkey.settle(callId, scopes, used));
    } else if (used >= 0) {
      this.#chargeAlone(account, { scopes, slot, requests: 0, tokens: used - charged });
    }
  }

  /** Tells Valkey what it does not know yet about any account. */
  async catchUp(): Promise<void> {
    const behind = [...this.#behind];
    for (let first = 0; first < behind.length; first += mostBringing) {
      const some = behind.slice(first, first + mostBringing);
      await Promise.all(some.map((account) => this.#bring(account).catch(() => undefined)));
    }
  }

  /** Undefined: this worker decides alone. */
  async #decide(
    account: AccountUse,
    scopes: readonly LimitScope[],
    ask: (epochOf: EpochOf) => Promise<Decided>,
  ) {
    try {
      for (let attempt = 0; attempt < mostAttempts; attempt++) {
        if (account.isBehind || account.bringing !== undefined) await this.#bring(account);
        const asked = new Map(account.epochs);
        const decided = await ask((key) => asked.get(key) ?? "");
        if (decided.is !== "lost") {
          if (decided.is === "admitted") noteEpochs(account, scopes, decided.epochs);
          return decided;
        }
        this.#restore(account, lostScopes(scopes, decided.windows), asked);
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
    this.#behind.add(account);
  }

  #open(account: AccountUse, request: LimitRequest, isAlone: boolean): void {
    const { callId, scopes, tokens, mostTokens = tokens } = request;
    const overrun = Math.max(0, mostTokens - tokens);
    const { slot } = this.#shadow;
    const call = { callId, account, scopes, slot, reserved: tokens, overrun, charged: tokens };
    const open = { ...call, isAlone };
    this.#calls.set(callId, open);
    account.calls.set(callId, open);
  }

  /** Sends a correction; keeps it when Valkey has to be told other things first, or cannot be. */
  #note(account: AccountUse, note: () => Promise<void>): void {
    const keep = (): void => {
      account.keep(note);
      this.#behind.add(account);
    };
    if (account.isBehind || account.bringing !== undefined) return keep();
    note().catch((error: unknown) => {
      if (error instanceof ValkeyUnavailable) keep();
      else this.#options.onError(error);
    });
  }

  /**
   * Prepares to tell Valkey all that this worker has used of lost windows, unless that has happened
   * since they were asked for.
   */
  #restore(account: AccountUse, lost: ReadonlyMap<string, LimitScope>, asked: Epochs): void {
    const windows = new Map<string, IncludedWindow>();
    for (const [key, scope] of lost) {
      if (account.epochs.get(key) !== asked.get(key)) continue;
      const all = this.#allUseOf(account, key, { name: nameOf(scope), limit: scope.limit });
      if (all !== undefined) windows.set(key, all);
    }
    if (windows.size > 0) account.send(this.#newId(), windows, [...account.calls.values()]);
    if (account.isBehind) this.#behind.add(account);
  }

  /** All that this worker has used of a window that Valkey has lost. */
  #allUseOf(
    account: AccountUse,
    key: string,
    { name, limit }: Pick<IncludedWindow, "name" | "limit">,
  ): IncludedWindow | undefined {
    account.epochs.delete(key);
    const use = this.#shadow.usedIn(account.tag, name);
    if (use === undefined) return undefined;
    account.alone.delete(key);
    const used = use.amounts.map((amount, index) => [use.slot + index, amount] as const);
    return {
      name,
      limit,
      debt: use.debt,
      amounts: new Map(used.filter(([, amount]) => amount !== 0)),
    };
  }

  #bring(account: AccountUse): Promise<void> {
    account.bringing ??= this.#tell(account).finally(() => (account.bringing = undefined));
    return account.bringing;
  }

  async #tell(account: AccountUse): Promise<void> {
    while (account.isBehind) {
      const sending = account.nextInclusion(() => this.#newId());
      if (sending === undefined) await account.sendNotes();
      else await this.#include(account, sending);
    }
    this.#behind.delete(account);
  }

  async #include(account: AccountUse, sending: Inclusion): Promise<void> {
    const keys = [...sending.windows.keys()];
    const epochOf: EpochOf = (key) => account.epochs.get(key) ?? "";
    const { tag } = account;
    const { slot } = this.#shadow;
    const included = await this.#valkey.include({ tag, inclusion: sending, slot, epochOf });
    if (included.is === "included") {
      for (const [index, key] of keys.entries()) {
        account.epochs.set(key, included.epochs[index] ?? "");
      }
      return account.sent();
    }
    const windows = new Map(sending.windows);
    for (const number of included.windows) {
      const key = keys[number - 1] ?? "";
      const window = windows.get(key);
      const all = window && this.#allUseOf(account, key, window);
      if (all !== undefined) windows.set(key, all);
    }
    account.sendInstead(windows);
  }

  #newId(): string {
    this.#inclusions += 1;
    return `${this.#valkey.process}.${this.#inclusions}`;
  }

  #accountOf([first]: readonly LimitScope[]): AccountUse {
    if (first === undefined) throw new RangeError("a limit request names at least one scope");
    const tag = tagOf(first);
    this.#accounts.advance(this.#options.clock.monotonic());
    const known = this.#accounts.touch(tag);
    if (known !== undefined) return known;
    const account = new AccountUse(tag);
    this.#accounts.set(tag, account);
    return account;
  }
}

function isClosed(scopes: readonly LimitScope[]): boolean {
  return scopes.some(({ isClosedAlone = false }) => isClosedAlone);
}

type Epochs = ReadonlyMap<string, string>;

/** Sent again, it would revert another request. */
function once(note: () => Promise<void>): () => Promise<void> {
  let isSent = false;
  return async () => {
    if (isSent) return;
    isSent = true;
    await note();
  };
}

function lostScopes(
  scopes: readonly LimitScope[],
  numbers: readonly number[],
): ReadonlyMap<string, LimitScope> {
  const { keys, scopes: ofWindows } = windowsOf(scopes);
  const lost = new Map<string, LimitScope>();
  for (const number of numbers) {
    const [key, scope] = [keys[number - 1], ofWindows[number - 1]];
    if (key !== undefined && scope !== undefined) lost.set(key, scope);
  }
  return lost;
}

function noteEpochs(
  account: AccountUse,
  scopes: readonly LimitScope[],
  epochs: readonly string[],
): void {
  for (const [index, key] of windowsOf(scopes).keys.entries()) {
    account.epochs.set(key, epochs[index] ?? "");
  }
}
