import type { Clock } from "../../../../domain/clock.ts";
import type { CountedRequest, LimitScope } from "../../../../domain/limits/limit-scope.ts";
import {
  createMemoryLimitStore,
  type MemoryLimitStore,
  type MemoryLimitStoreOptions,
} from "../../../../store/coordinator/memory/limit-store.ts";
import type {
  CountDecision,
  LimitDecision,
  LimitRequest,
  LimitStore,
} from "../../../../store/store.ts";
import { LinkLost } from "../../../link/link-errors.ts";
import {
  useFromWire,
  useToWire,
  type TakenLimits,
  type WireUse,
  type WireUsed,
} from "../../../link/limit-use-wire.ts";
import { scopesFromWire } from "../../../link/limit-wire.ts";
import type { HeldReport, LimitsState } from "../../../link/messages.ts";
import type { CoordinationPart, CoordinationLink } from "../coordination-link.ts";
import { RemoteLimits } from "./remote-limits.ts";

export interface SoloLimitsOptions extends MemoryLimitStoreOptions {
  /** Fills new limits from the ledger. */
  readonly restore: (limits: MemoryLimitStore) => Promise<void>;
}

/** Limits that this process decides. */
interface OwnLimits {
  readonly store: MemoryLimitStore;
  /** Counts the control processes since the first one. */
  readonly generation: number;
  /** Common time, milliseconds. */
  readonly now: () => number;
}

/**
 * The limits of a gateway with one worker, decided here without messages. While one worker replaces
 * another, both serve and control decides for both.
 */
export class SoloLimits implements LimitStore, CoordinationPart {
  readonly #link: CoordinationLink;
  readonly #options: SoloLimitsOptions;
  /** Undefined: control decides. */
  #own: OwnLimits | undefined;
  /** The own limits from before, until control has reported everything. */
  #given: OwnLimits | undefined;
  #remote: RemoteLimits;
  /** Decisions wait until this worker has taken the limits, or has failed to. */
  #taking: PromiseWithResolvers<void> | undefined;
  /** Notes of use since control was asked for the limits. */
  #lateNotes: ((limits: LimitStore) => unknown)[] | undefined;
  /** The number of decisions pending at control, and who waits for the last of them. */
  #asked = 0;
  #onAnswered = (): void => undefined;
  readonly #countedByControl = new WeakSet<CountedRequest>();
  readonly #ready = Promise.withResolvers<void>();

  constructor(link: CoordinationLink, options: SoloLimitsOptions) {
    this.#link = link;
    this.#options = options;
    this.#remote = this.#newRemote();
    link.join(this);
  }

  /** Resolves when either this worker or control decides. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  get limitsState(): LimitsState | undefined {
    return this.#own === undefined ? this.#remote.limitsState : "own";
  }

  count(scopes: readonly LimitScope[]): CountDecision | Promise<CountDecision> {
    return this.#own?.store.count(scopes) ?? this.#askCount(scopes);
  }

  /** What another process has counted is not uncounted here. */
  uncount(counted: CountedRequest): void {
    const isRemote = this.#countedByControl.has(counted);
    if (this.#own === undefined) {
      if (isRemote) this.#remote.uncount(counted);
    } else if (!isRemote) this.#own.store.uncount(counted);
  }

  acquire(request: LimitRequest): LimitDecision | Promise<LimitDecision> {
    return this.#own?.store.acquire(request) ?? this.#decide((limits) => limits.acquire(request));
  }

  use(callId: string, tokens: number): void {
    if (this.#own === undefined) this.#note((limits) => limits.use(callId, tokens));
    else this.#own.store.use(callId, tokens);
  }

  settle(callId: string, tokens: number): void {
    if (this.#own === undefined) this.#note((limits) => limits.settle(callId, tokens));
    else this.#own.store.settle(callId, tokens);
  }

  reportable(): Promise<void> | undefined {
    return this.#taking?.promise;
  }

  report(): HeldReport {
    if (this.#own !== undefined) {
      this.#given = this.#own;
      this.#own = undefined;
      this.#remote = this.#newRemote();
      this.#remote.adopt(this.#given.store.handOver().calls);
    }
    this.#ready.resolve();
    const held = this.#remote.report();
    const { limits } = held;
    // Once it has received control's state, nothing from before is reported again.
    if (this.#given === undefined || limits === undefined || limits.generation > 0) return held;
    const { generation, now, store } = this.#given;
    const own = store.handOver().uses.map(useToWire);
    return { limits: { ...limits, generation, now: now(), own } };
  }

  yours(): void {
    if (this.#own === undefined && this.#taking === undefined) void this.#take();
  }

  seen(): readonly WireUse[] {
    return this.#remote.seen();
  }

  used(told: WireUsed): void {
    this.#remote.used(told);
  }

  lost(reason: LinkLost): void {
    this.#remote.lost(reason);
  }

  alone(): void {
    if (this.#own === undefined) this.#remote.alone();
  }

  #newRemote(): RemoteLimits {
    // `SoloLimits` itself has joined the link, so the remote limits must not.
    const link = { ...this.#link, join: () => undefined };
    return new RemoteLimits(link, { ...this.#options, isLeasing: false });
  }

  async #askCount(scopes: readonly LimitScope[]): Promise<CountDecision> {
    let isRemote = false;
    const decision = await this.#decide((limits) => {
      isRemote = limits === this.#remote;
      return limits.count(scopes);
    });
    if (isRemote && decision.isAdmitted) this.#countedByControl.add(decision.counted);
    return decision;
  }

  async #decide<Decision>(
    by: (limits: LimitStore) => Decision | Promise<Decision>,
  ): Promise<Decision> {
    await this.#ready.promise;
    while (this.#taking !== undefined) await this.#taking.promise;
    if (this.#own !== undefined) return by(this.#own.store);
    this.#asked += 1;
    try {
      return await by(this.#remote);
    } finally {
      this.#asked -= 1;
      if (this.#asked === 0) this.#onAnswered();
    }
  }

  #note(note: (limits: LimitStore) => unknown): void {
    if (this.#lateNotes === undefined) note(this.#remote);
    else this.#lateNotes.push(note);
  }

  /** Asks control for the limits once control has answered everything asked before. */
  async #take(): Promise<void> {
    const taking = (this.#taking = Promise.withResolvers());
    try {
      if (this.#asked > 0) await new Promise<void>((resolve) => (this.#onAnswered = resolve));
      this.#lateNotes = [];
      const taken = await this.#link.ask("limits.take", undefined);
      if (taken !== undefined) this.#own = await this.#ownFrom(taken);
    } catch (error) {
      // The next control process decides again who has the limits.
      if (!(error instanceof LinkLost)) throw error;
    } finally {
      this.#endTaking();
      taking.resolve();
    }
  }

  #endTaking(): void {
    const notes = this.#lateNotes ?? [];
    this.#lateNotes = undefined;
    this.#taking = undefined;
    for (const note of notes) note(this.#own?.store ?? this.#remote);
    if (this.#own === undefined) return;
    this.#given = undefined;
    this.#ready.resolve();
  }

  async #ownFrom({ told, calls, isUnknown }: TakenLimits): Promise<OwnLimits> {
    const { clock, restore } = this.#options;
    const aheadMs = clock.monotonic() - told.now;
    const common: Clock = {
      now: () => clock.now(),
      monotonic: () => clock.monotonic() - aheadMs,
      schedule: (run, delayMs) => clock.schedule(run, delayMs),
    };
    const store = createMemoryLimitStore({ ...this.#options, clock: common });
    store.include(told.uses.map(useFromWire));
    for (const { scopes, slot = Number.NEGATIVE_INFINITY, ...call } of calls) {
      store.adopt({ ...call, scopes: scopesFromWire(scopes), slot });
    }
    if (isUnknown) await restore(store);
    return { store, generation: told.generation, now: () => common.monotonic() };
  }
}
