import type { Clock } from "../../../../domain/clock.ts";
import type { CountedRequest, LimitScope } from "../../../../domain/limits/limit-scope.ts";
import type { OpenCall } from "../../../../store/coordinator/memory/handed-over.ts";
import type { MemoryLimitStoreOptions } from "../../../../store/coordinator/memory/limit-store.ts";
import type {
  CountDecision,
  LimitDecision,
  LimitRequest,
  LimitStore,
} from "../../../../store/store.ts";
import { LinkLost } from "../../../link/link-errors.ts";
import type { HeldNote, WireUse, WireUsed } from "../../../link/limit-use-wire.ts";
import {
  countDecisionFromWire,
  countedToWire,
  decisionFromWire,
  requestToWire,
  scopesToWire,
} from "../../../link/limit-wire.ts";
import type { HeldReport, LimitsState } from "../../../link/messages.ts";
import type { CoordinationPart, CoordinationLink } from "../coordination-link.ts";
import { notDecided } from "../not-decided.ts";
import { OpenCalls } from "./open-calls.ts";
import { OwnShare } from "./own-share.ts";
import { SharedUse } from "./shared-use.ts";

/** `lost`: control may be there, but it does not decide for this worker yet. */
type State = "lost" | "linked" | "alone";

/** Longest wait for control to be there again, or to be gone for certain. */
const unknownLimitMs = 5_000;
/** Notes after which control is asked whether it has heard them. */
const unheardLimit = 1_000;

/**
 * The limits that all workers share, decided by control: each decision is one round trip. While
 * control is gone the worker decides alone, under its part of what it knows to be left.
 */
export class RemoteLimits implements LimitStore, CoordinationPart {
  readonly #link: CoordinationLink;
  readonly #options: MemoryLimitStoreOptions;
  readonly #calls = new OpenCalls();
  /** Requests that were counted alone. */
  readonly #ownCounts = new WeakSet<CountedRequest>();
  #state: State = "lost";
  #stateChange = Promise.withResolvers<void>();
  #shared: SharedUse | undefined;
  /**
   * What a new control process has told. It replaces `#shared` and `#own` once that process decides,
   * which says that all workers have been told the same.
   */
  #next: SharedUse | undefined;
  #own: OwnShare | undefined;
  #isAskingHeard = false;
  #hasReported = false;

  constructor(link: CoordinationLink, options: MemoryLimitStoreOptions) {
    this.#link = link;
    this.#options = options;
    link.join(this);
  }

  get limitsState(): LimitsState | undefined {
    return this.#hasReported ? "shared" : undefined;
  }

  count(scopes: readonly LimitScope[]): Promise<CountDecision> {
    return this.#decide({
      alone: (own) => {
        const decision = own.count(scopes);
        if (decision.isAdmitted) this.#ownCounts.add(decision.counted);
        return decision;
      },
      ask: async () =>
        countDecisionFromWire(await this.#link.ask("limits.count", scopesToWire(scopes)), scopes),
    });
  }

  /** Nothing is uncounted that another process has counted: it may have done so already. */
  uncount(counted: CountedRequest): void {
    const isOwn = this.#ownCounts.has(counted);
    if (isOwn && this.#state !== "linked") this.#own?.uncount(counted);
    if (!isOwn && this.#state === "linked") {
      this.#link.tell("limits.uncount", countedToWire(counted));
    }
  }

  acquire(request: LimitRequest): Promise<LimitDecision> {
    return this.#decide({
      alone: (own) => {
        const decision = own.acquire(request);
        if (decision.isAdmitted) this.#calls.open(request, { slot: own.slot, isOwn: true });
        return decision;
      },
      ask: async () => {
        const decision = await this.#link.ask("limits.acquire", requestToWire(request));
        if (decision.isAdmitted) {
          this.#calls.open(request, { slot: decision.slot, isOwn: false });
        }
        return decisionFromWire(decision);
      },
    });
  }

  /** Calls that this worker has admitted, of which control is about to hear. */
  adopt(calls: readonly OpenCall[]): void {
    for (const { slot, charged, ...request } of calls) {
      const { callId } = request;
      this.#calls.open(request, { slot, isOwn: true });
      this.#calls.noteOwn({ callId, tokens: charged, isFinal: false });
    }
  }

  use(callId: string, tokens: number): void {
    this.#note({ callId, tokens, isFinal: false });
  }

  settle(callId: string, tokens: number): void {
    this.#note({ callId, tokens, isFinal: true });
  }

  report(): HeldReport {
    this.#hasReported = true;
    this.#enter("linked");
    const { generation = 0, sequence = -1 } = this.#shared ?? {};
    const now = this.#shared?.now() ?? 0;
    const own = this.#own?.held() ?? [];
    return { limits: { generation, sequence, now, own, ...this.#calls.report() } };
  }

  seen(): readonly WireUse[] {
    return this.#shared?.held() ?? [];
  }

  used(told: WireUsed): void {
    if (told.isAll) {
      this.#next = new SharedUse(told, this.#options.clock);
      return;
    }
    this.#follow();
    this.#shared?.follow(told);
  }

  lost({ isCut }: LinkLost): void {
    if (isCut) this.#shared?.cut();
    this.#next = undefined;
    if (this.#state === "linked") this.#enter("lost");
  }

  alone(): void {
    this.#own ??= new OwnShare(this.#shared, this.#options);
    this.#enter("alone");
  }

  #enter(state: State): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#stateChange.resolve();
    this.#stateChange = Promise.withResolvers();
  }

  async #decide<Decision>({ alone, ask }: Ways<Decision>): Promise<Decision> {
    for (;;) {
      const state = this.#state;
      if (state === "alone" && this.#own !== undefined) return alone(this.#own);
      const { promise: changed } = this.#stateChange;
      if (state === "lost") {
        await within(unknownLimitMs, changed, this.#options.clock);
        continue;
      }
      const { noted } = this.#calls;
      try {
        const decision = await ask();
        this.#heard(noted);
        return decision;
      } catch (error) {
        // Without an answer in time control may still be there, and decide for others.
        const hasChanged = this.#stateChange.promise !== changed;
        if (!(error instanceof LinkLost) || !hasChanged) throw notDecided(error);
      }
    }
  }

  #note(note: HeldNote): void {
    const { callId, tokens, isFinal } = note;
    const isLinked = this.#state === "linked";
    if (!isLinked && this.#own !== undefined && this.#calls.isOwn(callId)) {
      if (isFinal) this.#own.settle(callId, tokens);
      else this.#own.use(callId, tokens);
      this.#calls.noteOwn(note);
      return;
    }
    if (!this.#calls.note(note, isLinked) || !isLinked) return;
    this.#link.tell(isFinal ? "limits.settle" : "limits.use", { callId, tokens });
    if (this.#calls.unheard > unheardLimit) void this.#askHeard();
  }

  /** Calls that only stream bring no answers, which tell that notes were heard. */
  async #askHeard(): Promise<void> {
    if (this.#isAskingHeard) return;
    this.#isAskingHeard = true;
    const { noted } = this.#calls;
    try {
      await this.#link.ask("limits.heard", undefined);
      this.#heard(noted);
    } catch {
      // The next note asks again.
    } finally {
      this.#isAskingHeard = false;
    }
  }

  /** An answer has come: control decides for all, and has heard so many notes. */
  #heard(noted: number): void {
    this.#follow();
    this.#calls.heard(noted);
  }

  #follow(): void {
    if (this.#next === undefined) return;
    this.#shared = this.#next;
    this.#next = undefined;
    this.#own = undefined;
    this.#calls.handedOver();
  }
}

interface Ways<Decision> {
  readonly alone: (own: OwnShare) => Decision;
  readonly ask: () => Promise<Decision>;
}

/** Rejects when it takes longer. */
async function within(limitMs: number, change: Promise<void>, clock: Clock): Promise<void> {
  const late = Promise.withResolvers<never>();
  const stop = clock.schedule(
    () => late.reject(notDecided(new LinkLost(`control does not decide within ${limitMs} ms`))),
    limitMs,
  );
  try {
    await Promise.race([change, late.promise]);
  } finally {
    stop();
  }
}
