import type { Config } from "../../../config/config.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { MemoryLimitStore } from "../../../store/coordinator/memory/limit-store.ts";
import type { PastAdmission } from "../../../store/store.ts";
import type { UsageReports } from "../../../store/usage-reports.ts";
import type { WireUse, WireUsed } from "../../link/limit-use-wire.ts";
import type { Handlers } from "../../link/link.ts";
import type { CoordinationMessages } from "../../link/messages.ts";
import { restoreWindows } from "../../wiring/restore-windows.ts";
import { limitHandlers } from "./limit-handlers.ts";
import { Member, numberIn, type MemberLink } from "./member.ts";
import { SharedLimits, type LimitBounds } from "./shared-limits.ts";

export interface CoordinationOptions {
  readonly config: Pick<Config, "plans" | "workers">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly bounds: LimitBounds;
  readonly reports: Pick<UsageReports, "admitted">;
  /** Workers that ran when this process began; they decide alone until they have reported. */
  readonly living: readonly number[];
}

/** Longest wait for workers that ran when this process began. */
const connectLimitMs = 5_000;
/** Longest wait for what a worker holds, which one that begins says once it is ready to serve. */
const reportLimitMs = 5_000;

/**
 * What all workers share, where there are several: decided here, one round trip each. A control
 * process that follows another decides for nobody until all living workers have said what they hold.
 */
export class Coordination {
  readonly #options: CoordinationOptions;
  readonly #limits: SharedLimits;
  readonly #members = new Set<Member>();
  /** Workers that have not connected, by number. */
  readonly #awaited: Set<number>;
  readonly #ready = Promise.withResolvers<void>();
  #hasBegun = false;

  constructor(options: CoordinationOptions) {
    const { living } = options;
    this.#options = options;
    this.#awaited = new Set(living);
    this.#limits = new SharedLimits(options);
  }

  /** Restores the limits from the ledger, if no worker has them; before workers connect. */
  async start(): Promise<void> {
    const { clock, living } = this.#options;
    if (living.length > 0) {
      clock.schedule(() => void this.#begin(), connectLimitMs);
      return;
    }
    this.#hasBegun = true;
    await this.#restoreFromLedger();
    this.#ready.resolve();
  }

  /** The limits, which are whole once workers are decided for. */
  get limits(): MemoryLimitStore {
    return this.#limits.store;
  }

  /** For a worker that connects. */
  join(): Member {
    return new Member();
  }

  handlers(member: Member): Handlers<CoordinationMessages> {
    return limitHandlers(this.#limits.store, member);
  }

  /** The worker has said hello. */
  async opened(member: Member, link: MemberLink, hello: unknown): Promise<void> {
    if (this.#options.config.workers === 1) return;
    member.link = link;
    this.#members.add(member);
    const number = numberIn(hello);
    if (number !== undefined) this.#awaited.delete(number);
    if (this.#hasBegun) {
      await this.#ready.promise;
      await this.#askReport(member, link);
      this.#takeOver([member]);
      this.#takeIn([member]);
    } else if (this.#awaited.size === 0) {
      await this.#begin();
    }
  }

  lost(member: Member): void {
    this.#members.delete(member);
    this.#limits.abandon(member);
  }

  /** Tells all workers what was granted; to be called before any answer leaves. */
  readonly publish = (): void => {
    const changes = this.#limits.changes(this.#workers);
    if (changes !== undefined) this.#tell(this.#admitted(), changes);
  };

  async #begin(): Promise<void> {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const members = [...this.#members];
    await Promise.all(members.map((member) => this.#askReport(member, member.link)));
    const seen = await this.#mostSeen(members);
    this.#limits.goOn(members, seen ?? []);
    this.#takeOver(members);
    if (seen === undefined) await this.#restoreFromLedger();
    else if (this.#isAnyUnknown(members)) await this.#addFromLedger();
    this.#takeIn(members);
    this.#ready.resolve();
  }

  /** Once it has answered, the worker does nothing by itself. */
  async #askReport(member: Member, link: MemberLink | undefined): Promise<void> {
    try {
      member.report = await link?.ask("coordination.report", undefined, reportLimitMs);
      member.reportedAtMs = this.#options.clock.monotonic();
    } catch {
      // It connects again, and is asked again.
      link?.close("the worker does not say what it holds");
    }
  }

  /** What the worker has seen that saw most; undefined: no worker knows anything. */
  async #mostSeen(members: readonly Member[]): Promise<readonly WireUse[] | undefined> {
    for (const { link } of members.filter(knows).toSorted(byMostKnown)) {
      const seen = await link?.ask("limits.seen", undefined).catch(() => undefined);
      if (seen !== undefined) return seen;
    }
    return undefined;
  }

  #takeOver(members: readonly Member[]): void {
    for (const member of members) {
      const held = member.report?.limits;
      if (held !== undefined && this.#members.has(member)) this.#limits.takeOver(held, member);
    }
  }

  /** Decides for these from now on. All learn what is granted before any of them gets an answer. */
  #takeIn(members: readonly Member[]): void {
    const there = members.filter((one) => this.#members.has(one) && one.report !== undefined);
    this.publish();
    this.#tell(there, this.#limits.all(this.#workers));
    for (const member of there) member.admit();
  }

  #tell(members: readonly Member[], told: WireUsed): void {
    let note: Uint8Array | undefined;
    for (const { link } of members) {
      note ??= link?.encodeNote("limits.used", told);
      if (note !== undefined) link?.sendFirst(note);
    }
  }

  #admitted(): readonly Member[] {
    return [...this.#members].filter(({ isAdmitted }) => isAdmitted);
  }

  /** Workers that would share what is left if control ended now. */
  get #workers(): number {
    return Math.max(this.#options.config.workers, this.#members.size);
  }

  /** Whether a worker may have admitted calls alone and gone since. */
  #isAnyUnknown(members: readonly Member[]): boolean {
    const known = members.filter((member) => this.#members.has(member) && knows(member));
    return known.length < this.#options.config.workers;
  }

  /** Adds what the ledger has beyond what workers know. */
  async #addFromLedger(): Promise<void> {
    const { config, clock, reports } = this.#options;
    const limits = { restore: (admitted: readonly PastAdmission[]) => this.#limits.add(admitted) };
    await restoreWindows({ limits, clock, reports, plans: config.plans });
  }

  async #restoreFromLedger(): Promise<void> {
    const { config, clock, reports } = this.#options;
    await restoreWindows({ limits: this.limits, clock, reports, plans: config.plans });
  }
}

function knows({ report }: Member): boolean {
  return (report?.limits?.sequence ?? -1) >= 0;
}

function byMostKnown(a: Member, b: Member): number {
  const { generation: ofA = 0, sequence: inA = 0 } = a.report?.limits ?? {};
  const { generation: ofB = 0, sequence: inB = 0 } = b.report?.limits ?? {};
  return ofB - ofA || inB - inA;
}
