import type { Config } from "../../../config/config.ts";
import type { CapacityOptions } from "../../../admission/capacity/capacity.ts";
import type { Clock } from "../../../domain/clock.ts";
import { KeyRing } from "../../../keys/key-ring.ts";
import type { KeyStore, PastAdmission } from "../../../store/store.ts";
import type { UsageReports } from "../../../store/usage-reports.ts";
import type { WireUse, WireUsed } from "../../link/limit-use-wire.ts";
import { encodeNote } from "../../link/frame.ts";
import type { Handlers, Link } from "../../link/link.ts";
import type { ControlMessages, CoordinationMessages, WorkerMessages } from "../../link/messages.ts";
import { restoreWindows } from "../../wiring/restore-windows.ts";
import { Handover, handoverHandlers } from "./handover.ts";
import { HealthHints } from "./health-hints.ts";
import { byMostKnown, knows, Member, numberIn, type MemberLink } from "./member.ts";
import { PlaceCoordination, type PlaceConfig } from "./place-coordination.ts";
import { SharedLimits, type LimitBounds } from "./shared-limits.ts";

export interface CoordinationOptions {
  readonly config: Pick<Config, "plans" | "processes"> & PlaceConfig;
  readonly clock: Clock;
  readonly random: () => number;
  readonly bounds: LimitBounds;
  readonly reports: Pick<UsageReports, "admitted">;
  /** Workers that ran when this process began; they decide alone until they have reported. */
  readonly living: readonly number[];
  readonly keys: Pick<KeyStore, "loadKeys">;
  readonly onWaited: NonNullable<CapacityOptions["onWaited"]>;
}

/** What control does for one worker. */
export interface WorkerCoordination {
  readonly handlers: Handlers<CoordinationMessages>;
  /** The worker has sent its hello. */
  opened(link: MemberLink, hello: unknown): Promise<void>;
  /** Releases what the worker holds, once it has ended. */
  end(): void;
}

/** Interval between polls for changed keys, which are also announced. */
const keyPollMs = 500;

/** Longest wait for workers that were running when this process began. */
const connectLimitMs = 5_000;
/** Longest wait for a worker's report of what it holds. A new worker sends it once it is ready. */
const reportLimitMs = 5_000;

/** Longest wait for a worker to give back places that no call uses. */
const recallLimitMs = 500;

export type NotesToWorker = Pick<
  Link<ControlMessages, WorkerMessages>,
  "ask" | "tell" | "sendFirst"
>;

/**
 * What several workers share is decided here, in one round trip each. A control process that
 * replaces another makes no decision until all living workers have reported what they hold.
 */
export class Coordination {
  readonly #options: CoordinationOptions;
  readonly #limits: SharedLimits;
  readonly #members = new Set<Member>();
  /** Numbers of workers that have not connected yet. */
  readonly #awaited: Set<number>;
  readonly #ready = Promise.withResolvers<void>();
  #hasBegun = false;
  #stopWaiting = (): void => undefined;
  /** Keys, for their units of pools. */
  readonly #keys: KeyRing;
  readonly #places: PlaceCoordination;
  readonly #hints = new HealthHints();
  /** Set if there is one worker, which shares the limits only with its successor. */
  readonly #handover: Handover | undefined;

  constructor(options: CoordinationOptions) {
    const { clock, config, living, onWaited } = options;
    this.#options = options;
    this.#awaited = new Set(living);
    this.#limits = new SharedLimits({ ...options, workers: () => this.#workers });
    this.#keys = new KeyRing({
      store: options.keys,
      clock,
      intervalMs: keyPollMs,
      onReloaded: () => undefined,
      onChanged: () => this.#places.capacity.unitsChanged(),
      // The workers report it.
      onReloadFailed: () => undefined,
    });
    this.#places = new PlaceCoordination({
      clock,
      config,
      workers: config.processes,
      limits: this.#limits.store,
      units: this.#keys,
      onWaited,
    });
    if (config.processes === 1) this.#handover = this.#newHandover();
  }

  /** Reads the keys, and restores the limits if no worker has them. Call before workers connect. */
  async start(): Promise<void> {
    const { clock, living } = this.#options;
    // With one worker nothing here depends on keys, and a damaged database may still have them.
    if (this.#handover === undefined || living.length > 1) await this.#keys.start();
    if (this.#handover !== undefined) return;
    if (living.length > 0) {
      this.#stopWaiting = clock.schedule(() => void this.#begin(), connectLimitMs);
      return;
    }
    this.#hasBegun = true;
    await this.#restoreFromLedger();
    this.#ready.resolve();
  }

  stop(): void {
    this.#keys.stop();
    this.#handover?.stop();
    this.#stopWaiting();
  }

  reloadKeys(): Promise<void> {
    return this.#keys.reload();
  }

  reconfigure(config: PlaceConfig): void {
    this.#places.follow(config);
  }

  /** Calls that hold places of pools, or wait for them. */
  poolViews(): ReturnType<PlaceCoordination["capacity"]["views"]> {
    return this.#places.capacity.views();
  }

  ofWorker(link: () => NotesToWorker): WorkerCoordination {
    const member = new Member(({ places: held = [] }) => places.adopt(held));
    const limits = this.#limits.ofWorker(member);
    const hints = this.#hints.ofWorker((hint) => link().tell("health.changed", hint));
    const places = this.#places.newDesk({
      when: (decide) => member.when(decide),
      // Written before the answer that grants the places.
      tellLent: (lent) => link().sendFirst(encodeNote("places.lent", lent)),
      askScarce: (bounds) => link().ask("places.scarce", bounds, recallLimitMs),
      tellPlenty: (bounds) => link().tell("places.plenty", bounds),
    });
    return {
      handlers: {
        ...limits.handlers,
        ...handoverHandlers(this.#handover, member),
        ...places.handlers,
        ...hints.handlers,
        ...this.#places.routing.handlers,
      },
      opened: (opened, hello) => this.#opened(member, opened, hello),
      end: () => {
        this.#members.delete(member);
        limits.end();
        places.end();
        hints.end();
        this.#handover?.ended(member);
      },
    };
  }

  /** Sends all workers what was granted. Call it before any answer is sent. */
  readonly publish = (): void => {
    const changes = this.#limits.changes();
    if (changes !== undefined) this.#tell(this.#admitted(), changes);
  };

  async #opened(member: Member, link: MemberLink, hello: unknown): Promise<void> {
    member.link = link;
    this.#members.add(member);
    if (this.#handover !== undefined) return this.#handover.opened(member, hello);
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

  #newHandover(): Handover {
    return new Handover({
      clock: this.#options.clock,
      living: this.#options.living.length,
      limits: this.#limits,
      members: this.#members,
      include: (members, isPartial) => this.#include(members, isPartial),
      restore: () => this.#restoreFromLedger(),
    });
  }

  /** Includes the workers' reports of what they hold and have seen. */
  async #include(members: readonly Member[], isPartial: boolean): Promise<void> {
    await Promise.all(members.map((member) => this.#askReport(member, member.link)));
    const seen = this.#handover?.isKnown === true ? undefined : await this.#mostSeen(members);
    this.#limits.goOn(members, seen ?? []);
    this.#takeOver(members);
    if (isPartial) await this.#addFromLedger();
    this.#takeIn(members);
  }

  /** Once the worker has answered, it decides nothing alone. */
  async #askReport(member: Member, link: MemberLink | undefined): Promise<void> {
    try {
      member.report = await link?.ask("coordination.report", undefined, reportLimitMs);
      member.reportedAtMs = this.#options.clock.monotonic();
    } catch {
      // The worker connects again, and is asked again.
      link?.close("the worker does not report what it holds");
    }
  }

  /** The use known to the worker that heard most; undefined: no worker knows anything. */
  async #mostSeen(members: readonly Member[]): Promise<readonly WireUse[] | undefined> {
    for (const { link } of members.filter(knows).toSorted(byMostKnown)) {
      const seen = await link?.ask("limits.seen", undefined).catch(() => undefined);
      if (seen !== undefined) return seen;
    }
    return undefined;
  }

  #takeOver(members: readonly Member[]): void {
    for (const member of members) {
      const { report } = member;
      if (report === undefined || !this.#members.has(member)) continue;
      if (report.limits !== undefined) this.#limits.takeOver(report.limits, member);
      member.takeOver(report);
    }
  }

  /** Decides for these from now on. All learn what is granted before any of them gets an answer. */
  #takeIn(members: readonly Member[]): void {
    const there = members.filter((one) => this.#members.has(one) && one.report !== undefined);
    this.publish();
    this.#tell(there, this.#limits.all());
    for (const member of there) member.admit();
  }

  #tell(members: readonly Member[], told: WireUsed): void {
    const note = encodeNote("limits.used", told);
    for (const { link } of members) link?.sendFirst(note);
  }

  #admitted(): readonly Member[] {
    return [...this.#members].filter(({ isAdmitted }) => isAdmitted);
  }

  /** Workers that would share the rest if control ended now. */
  get #workers(): number {
    return Math.max(this.#options.config.processes, this.#members.size);
  }

  /** Whether a worker may have admitted calls alone and ended since. */
  #isAnyUnknown(members: readonly Member[]): boolean {
    const known = members.filter((member) => this.#members.has(member) && knows(member));
    return known.length < this.#options.config.processes;
  }

  /** Adds what the ledger knows and the workers do not. */
  async #addFromLedger(): Promise<void> {
    const { config, clock, reports } = this.#options;
    const limits = { restore: (admitted: readonly PastAdmission[]) => this.#limits.add(admitted) };
    await restoreWindows({ limits, clock, reports, plans: config.plans });
  }

  async #restoreFromLedger(): Promise<void> {
    const { config, clock, reports } = this.#options;
    await restoreWindows({ limits: this.#limits.store, clock, reports, plans: config.plans });
  }
}
