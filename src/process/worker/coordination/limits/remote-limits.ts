import type { CountedRequest, LimitScope } from "../../../../domain/limits/limit-scope.ts";
import type { OpenCall } from "../../../../store/coordinator/memory/handed-over.ts";
import type { LeaseId } from "../../../../store/coordinator/leases/lease-account.ts";
import { Leases } from "../../../../store/coordinator/leases/leases.ts";
import type { MemoryLimitStoreOptions } from "../../../../store/coordinator/memory/limit-store.ts";
import type {
  CountDecision,
  LimitDecision,
  LimitRequest,
  LimitStore,
} from "../../../../store/store.ts";
import { LinkLost } from "../../../link/link-errors.ts";
import type { HeldNote, WireUse, WireUsed } from "../../../link/limit-use-wire.ts";
import { leaseFromWire, restToWire, type WireLease } from "../../../link/lease-wire.ts";
import {
  countDecisionFromWire,
  countedToWire,
  decisionFromWire,
  requestToWire,
  scopesToWire,
} from "../../../link/limit-wire.ts";
import type { HeldReport, LimitsState } from "../../../link/messages.ts";
import type { CoordinationPart, CoordinationLink } from "../coordination-link.ts";
import { Decider } from "../decider.ts";
import { notDecided, throwNotDecided } from "../not-decided.ts";
import { OpenCalls } from "./open-calls.ts";
import { OwnShare } from "./own-share.ts";
import { SharedUse } from "./shared-use.ts";

/** Notes after which control is asked whether it has received them. */
const unheardLimit = 1_000;

export interface RemoteLimitsOptions extends MemoryLimitStoreOptions {
  /** False if control decides only for a short time. Default: true. */
  readonly isLeasing?: boolean;
}

/**
 * The limits that all workers share, decided by control. Each decision is one round trip, unless
 * control has leased enough for it to this worker. While control is unavailable, the worker decides
 * alone, within its part of what it knows to be left.
 */
export class RemoteLimits implements LimitStore, CoordinationPart {
  readonly #link: CoordinationLink;
  readonly #options: MemoryLimitStoreOptions;
  readonly #calls = new OpenCalls();
  readonly #leases: Leases;
  /** Requests that this worker counted alone. */
  readonly #ownCounts = new WeakSet<CountedRequest>();
  readonly #decider: Decider;
  #shared: SharedUse | undefined;
  /**
   * What a new control process has reported. It replaces `#shared` and `#own` once that process
   * decides, because by then all workers have received the same.
   */
  #next: SharedUse | undefined;
  #own: OwnShare | undefined;
  #isAskingHeard = false;
  #hasReported = false;

  constructor(link: CoordinationLink, options: RemoteLimitsOptions) {
    this.#link = link;
    this.#options = options;
    const { clock } = options;
    this.#decider = new Decider(clock);
    this.#leases = new Leases({
      clock,
      areWanted: options.isLeasing !== false,
      onEnded: (rests) => {
        if (this.#decider.isLinked) link.tell("limits.returned", rests.map(restToWire));
      },
    });
    link.join(this);
  }

  get limitsState(): LimitsState | undefined {
    return this.#hasReported ? "shared" : undefined;
  }

  count(scopes: readonly LimitScope[]): CountDecision | Promise<CountDecision> {
    const counted = this.#leases.count(scopes);
    if (counted !== undefined) return { isAdmitted: true, counted };
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

  /**
   * What another process has counted is not uncounted here: that process may have done so already.
   */
  uncount(counted: CountedRequest): void {
    if (this.#leases.uncount(counted)) return;
    const isOwn = this.#ownCounts.has(counted);
    if (isOwn && !this.#decider.isLinked) this.#own?.uncount(counted);
    if (!isOwn && this.#decider.isLinked) {
      this.#link.tell("limits.uncount", countedToWire(counted));
    }
  }

  acquire(request: LimitRequest): LimitDecision | Promise<LimitDecision> {
    const leased = this.#leases.acquire(request);
    if (leased === undefined) return this.#acquireUnleased(request);
    const { slot, account } = leased.lease;
    this.#calls.open(request, { slot, isOwn: false, account });
    return { isAdmitted: true, state: leased.state };
  }

  /** Adds calls that this worker has admitted and is about to report to control. */
  adopt(calls: readonly OpenCall[]): void {
    for (const { slot, charged, ...request } of calls) {
      const { callId } = request;
      this.#calls.open(request, { slot, isOwn: true, account: undefined });
      this.#calls.noteOwn({ callId, tokens: charged, isFinal: false });
    }
  }

  use(callId: string, tokens: number): void {
    this.#note({ callId, tokens, isFinal: false });
  }

  settle(callId: string, tokens: number): void {
    this.#note({ callId, tokens, isFinal: true });
  }

  leased(lease: WireLease): void {
    this.#leases.granted(leaseFromWire(lease));
  }

  closing(): void {
    this.#leases.end();
  }

  recall(ids: readonly LeaseId[]): void {
    this.#leases.recall(ids);
  }

  report(): HeldReport {
    this.#hasReported = true;
    this.#decider.enter("linked");
    this.#leases.forget();
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
    this.#decider.lost();
  }

  alone(): void {
    this.#own ??= new OwnShare(this.#shared, this.#options);
    this.#decider.enter("alone");
  }

  #acquireUnleased(request: LimitRequest): Promise<LimitDecision> {
    const account = this.#leases.accountOf(request);
    return this.#decide({
      alone: (own) => {
        const decision = own.acquire(request);
        const { slot } = own;
        if (decision.isAdmitted) this.#calls.open(request, { slot, isOwn: true, account });
        return decision;
      },
      ask: async () => {
        const wish = this.#leases.wish(account);
        try {
          const decision = await this.#link.ask("limits.acquire", requestToWire(request, wish));
          if (!("isAdmitted" in decision)) {
            const [slot] = decision;
            this.#calls.open(request, { slot, isOwn: false, account });
          }
          return decisionFromWire(decision);
        } finally {
          if (wish !== undefined) account?.answered();
        }
      },
    });
  }

  async #decide<Decision>({ alone, ask }: Ways<Decision>): Promise<Decision> {
    const decider = this.#decider;
    for (;;) {
      if (decider.isAlone && this.#own !== undefined) return alone(this.#own);
      if (!decider.isLinked) {
        await decider.known().catch(throwNotDecided);
        continue;
      }
      const { change } = decider;
      const { noted } = this.#calls;
      try {
        const decision = await ask();
        this.#heard(noted);
        return decision;
      } catch (error) {
        // Without an answer in time, control may still be running and decide for others.
        if (!(error instanceof LinkLost) || !change.aborted) throw notDecided(error);
      }
    }
  }

  #note(note: HeldNote): void {
    const { callId, tokens, isFinal } = note;
    const isLinked = this.#decider.isLinked;
    if (!isLinked && this.#own !== undefined && this.#calls.isOwn(callId)) {
      if (isFinal) this.#own.settle(callId, tokens);
      else this.#own.use(callId, tokens);
      this.#calls.noteOwn(note);
      return;
    }
    const account = this.#calls.accountOf(callId);
    if (isLinked && this.#leases.charge(account, note)) {
      // Control learns of the call when its lease ends before it.
      this.#calls.noteOwn(note);
      return;
    }
    if (!this.#calls.note(note, isLinked) || !isLinked) return;
    const mayWait = account?.lease !== undefined;
    const kind = isFinal ? "limits.settle" : "limits.use";
    // Waiting notes are sent before control refuses anything under these scopes.
    if (mayWait) this.#link.tellSoon(kind, [callId, tokens]);
    else this.#link.tell(kind, [callId, tokens]);
    if (this.#calls.unheard > unheardLimit) void this.#askHeard();
  }

  /** Calls that only stream cause no answers, which would confirm that notes were received. */
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

  /** An answer has arrived: control decides for all, and has received this many notes. */
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
