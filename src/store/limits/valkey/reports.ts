import type { Clock } from "../../../domain/clock.ts";
import { AgingMap } from "../../../domain/limits/aging-map.ts";
import { slotMs } from "../../../domain/limits/slots.ts";
import { countedSlotsOf, heldTo } from "../decision.ts";
import type { Parameter, ValkeyClient } from "./client.ts";
import { checkScript, correctScript } from "./limit-scripts.ts";
import { chargedByServer, type Charged, type OwnWindow } from "./own-windows.ts";
import { ValkeyUnavailable } from "./problems.ts";
import { readCheck, readCorrection, type Corrected, type WindowTold } from "./read-reply.ts";
import type { RequestWindows } from "./scopes.ts";
import { trustAfterMs, type Trust } from "./trust.ts";

/** What is known of an account, whose limits are decided in one step. */
export interface Account {
  readonly name: string;
  readonly sinceKey: string;
  /** Until when this process grants its share only, because its data were lost. */
  lostUntilMs: number;
  /** Since when the server can be compared with this process: it knows all that still counts. */
  comparableAtMs: number;
  /** What the server has not heard yet, in the order in which it happened. */
  steps: Step[];
  /** How many commands that charge more are under way. */
  charging: number;
}

/** A correction of a window; see `correctScript`. */
export interface Step {
  readonly own: OwnWindow;
  readonly kind: "s" | "m" | "t" | "c";
  readonly slot: number;
  readonly amount: number;
}

export interface ReportsOptions {
  readonly client: Pick<ValkeyClient, "run">;
  readonly clock: Clock;
  /** Names this process in the server. */
  readonly process: string;
  readonly trust: Trust;
  /** The server has lost what this process admitted for one account, or it is unreadable. */
  readonly onAccountLost?: ((account: string, why: string) => void) | undefined;
  /** Called when a script fails for another reason than the server: an error of the program. */
  readonly onError: (error: unknown) => void;
}

/** Longer than use counts, and than anything is compared. */
const accountLifeMs = 300_000;
/** Clocks may differ by that much when nothing was heard of the server's. */
const clockSlackMs = 5_000;
/** With more steps, the slots of one window are added up. */
const mostSteps = 2_000;
const stepsAtOnce = 500;
const lookMs = 1_000;

/**
 * What this process tells the server beside its decisions: settlements, and what it has granted by
 * itself. In return it hears what the server has in a window. When that is less than this process
 * has admitted, or older than what it has seen, the account is lost for a while.
 */
export class Reports {
  readonly #options: ReportsOptions;
  readonly #accounts: AgingMap<Account>;
  readonly #waiting = new Set<Account>();
  /** How far the server's time is ahead of this process's; at most as far as it is. */
  #aheadMs: number;
  #lookedAtMs = -Infinity;
  #isLooking = false;

  constructor(options: ReportsOptions) {
    const { clock } = (this.#options = options);
    this.#accounts = new AgingMap(accountLifeMs, clock.monotonic());
    this.#aheadMs = clock.now() - clock.monotonic();
  }

  advance(nowMs: number): void {
    this.#accounts.advance(nowMs);
  }

  /** The time of the server, which is no earlier by now. */
  heard(serverMs: number): void {
    this.#aheadMs = serverMs - this.#options.clock.monotonic();
  }

  get serverMs(): number {
    return this.#options.clock.monotonic() + this.#aheadMs;
  }

  /** The slot of the server, or the one before. */
  get slot(): number {
    return Math.floor(this.serverMs / slotMs);
  }

  accountOf({ account: name, sinceKey }: RequestWindows): Account {
    let account = this.#accounts.touch(name);
    if (account === undefined) {
      const times = { lostUntilMs: 0, comparableAtMs: 0 };
      account = { name, sinceKey, ...times, steps: [], charging: 0 };
      this.#accounts.set(name, account);
    }
    return account;
  }

  /** Remembers what the server is to hear. */
  note(account: Account, steps: readonly Step[]): void {
    account.steps.push(...steps);
    this.#waiting.add(account);
    if (account.steps.length > mostSteps) account.steps = addedUp(account.steps, this.slot);
  }

  /** Looks at the server when that is due: each second, and more often while it does not answer. */
  async look(sinceKeys: readonly string[]): Promise<void> {
    const { client, clock, trust } = this.#options;
    const isDue = !trust.answers || clock.monotonic() - this.#lookedAtMs >= lookMs;
    if (!isDue || this.#isLooking) return;
    this.#isLooking = true;
    try {
      const looks = sinceKeys.map((key) => client.run(checkScript, [key], []));
      const looked = (await Promise.all(looks)).map(readCheck);
      for (const { now } of looked) this.heard(now);
      trust.looked(Math.min(...looked.map(({ ageMs }) => ageMs)));
    } catch (error) {
      void this.failed(error);
    } finally {
      this.#isLooking = false;
      this.#lookedAtMs = clock.monotonic();
    }
  }

  async tellAll(): Promise<void> {
    if (!this.#options.trust.answers) return;
    await Promise.all(Array.from(this.#waiting, (account) => this.flush(account)));
  }

  async flush(account: Account): Promise<void> {
    const { steps } = account;
    account.steps = [];
    this.#waiting.delete(account);
    const sent: Promise<void>[] = [];
    for (let first = 0; first < steps.length; first += stepsAtOnce) {
      sent.push(this.correct(account, steps.slice(first, first + stepsAtOnce)));
    }
    await Promise.all(sent);
  }

  /** `others`: windows of which only is told what calls could still use. */
  async correct(
    account: Account,
    steps: readonly Step[],
    others: readonly OwnWindow[] = [],
  ): Promise<void> {
    const { client, process, clock, trust } = this.#options;
    const own = [...new Set([...steps.map((step) => step.own), ...others])];
    const numbers = new Map(own.map((of, index) => [of, index + 1]));
    const parameters: Parameter[] = [process];
    for (const of of own) {
      const { scope, window } = of;
      parameters.push(countedSlotsOf(scope), String(heldTo(scope)), window.overrun);
      of.openToldAtMs = clock.monotonic();
    }
    for (const { own: of, kind, slot, amount } of steps) {
      parameters.push(kind, numbers.get(of) ?? 1, slot, amount);
    }
    const notHeard = (): void => this.note(account, steps);
    const charging = steps.some(({ amount }) => amount > 0) ? 1 : 0;
    account.charging += charging;
    let corrected: Corrected;
    try {
      corrected = readCorrection(await client.run(correctScript, keysOf(account, own), parameters));
      account.charging -= charging;
    } catch (error) {
      account.charging -= charging;
      const late = this.failed(error);
      if (late === undefined) notHeard();
      else late.catch(notHeard);
      return;
    }
    this.heard(corrected.now);
    trust.young(corrected.ageMs);
    for (const { window } of own) window.advance(corrected.slot);
    if (corrected.isBroken) this.#lose(account, "a value is unreadable");
    else this.compare(account, own, corrected.windows);
  }

  /** The server must know what this process has admitted, and all that it knew before. */
  compare(account: Account, own: readonly OwnWindow[], told: readonly WindowTold[]): void {
    let isLess = false;
    for (const [index, { charged, number }] of told.entries()) {
      const of = own[index];
      if (of === undefined || (number === 0 && of.window.charged === 0)) continue;
      const isOlder = number > 0 && number < of.number;
      isLess ||=
        of.scope.window === "minute" && (isOlder || charged < chargedByServer(of, this.slot));
      of.number = Math.max(of.number, number);
    }
    const isKnown = account.steps.length === 0 && account.charging === 0;
    const sinceMs = Math.max(account.comparableAtMs, this.#options.trust.since + clockSlackMs);
    const isComparable = this.#options.clock.monotonic() >= sinceMs;
    if (isLess && isKnown && isComparable) this.#lose(account, "it knows less than was admitted");
  }

  /** A value in the server is no window. All decisions under way hear that, and then it is replaced. */
  unreadable(account: Account, own: readonly OwnWindow[]): void {
    const isKnown = this.#options.clock.monotonic() < account.lostUntilMs;
    this.#lose(account, "a value is unreadable");
    if (!isKnown) void this.correct(account, [], own);
  }

  /** Returns the answer that may still come. */
  failed(error: unknown): Promise<unknown> | undefined {
    const { trust, onError } = this.#options;
    if (error instanceof ValkeyUnavailable) {
      trust.failed(error.message);
      return error.late;
    }
    onError(error);
    trust.failed("a script failed");
    return undefined;
  }

  #lose(account: Account, why: string): void {
    account.lostUntilMs = this.#options.clock.monotonic() + trustAfterMs;
    account.comparableAtMs = account.lostUntilMs + clockSlackMs;
    this.#options.onAccountLost?.(account.name, why);
  }
}

export function keysOf({ sinceKey }: Account, own: readonly OwnWindow[]): readonly string[] {
  return [sinceKey, ...own.map(({ key }) => key)];
}

/** What charges what a call asked for, or reverts that. */
export function stepsOf({ own, demand }: Charged, slot: number, sign: 1 | -1): readonly Step[] {
  const steps = own.map((of) => {
    const amount = sign * demand[of.scope.unit];
    return { own: of, kind: "c", slot, amount } as const;
  });
  return steps.filter(({ amount }) => amount !== 0);
}

/** Changes the windows of this process as the script does. */
export function applyHere({ own: { window }, kind, slot, amount }: Step): void {
  if (kind === "c") {
    window.adjust(slot, amount < 0 ? Math.max(amount, -window.at(slot)) : amount);
  } else if (kind === "m") {
    window.chargeMore(amount);
  } else if (kind === "t") {
    window.takeBack(slot, -amount);
  } else if (!window.adjust(slot, amount) && amount > 0) {
    window.chargeMore(amount);
  }
}

/** The same charges with one step for each slot of a window; debts become charges. */
function addedUp(steps: readonly Step[], now: number): Step[] {
  const byWindow = new Map<OwnWindow, Map<number, number>>();
  for (const { own, kind, slot, amount } of steps) {
    const slots = byWindow.get(own) ?? new Map<number, number>();
    byWindow.set(own, slots);
    const at = kind === "m" ? now : slot;
    slots.set(at, (slots.get(at) ?? 0) + amount);
  }
  return [...byWindow].flatMap(([own, slots]) =>
    Array.from(slots, ([slot, amount]) => ({ own, kind: "c", slot, amount }) as const),
  );
}
