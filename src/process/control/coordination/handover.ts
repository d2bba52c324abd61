import type { Clock } from "../../../domain/clock.ts";
import type { Handlers } from "../../link/link.ts";
import type { TakenLimits } from "../../link/limit-use-wire.ts";
import type { HandoverMessages, LimitsState } from "../../link/messages.ts";
import type { Member } from "./member.ts";
import type { SharedLimits } from "./shared-limits.ts";

export interface HandoverOptions {
  readonly clock: Clock;
  readonly limits: SharedLimits;
  /** Workers that are connected. */
  readonly members: ReadonlySet<Member>;
  /** How many workers were running when this process began. */
  readonly living: number;
  /**
   * Takes over what these workers report, and decides for them from then on. `isPartial`: other
   * workers that ended since may have admitted calls alone.
   */
  readonly include: (members: readonly Member[], isPartial: boolean) => Promise<void>;
  /** Restores the limits from the ledger. */
  readonly restore: () => Promise<void>;
}

/** Longest wait for workers that were running when this process began. */
const connectLimitMs = 1_000;

/**
 * The limits of a gateway with one worker, which decides alone. While its successor serves too,
 * control decides for both; the one that remains takes the limits back.
 */
export class Handover {
  readonly #options: HandoverOptions;
  /** The states of workers that control does not decide for and that have not just begun. */
  readonly #states = new Map<Member, LimitsState>();
  /** Whether control's limits include everything that was granted. */
  #isKnown = false;
  #settling = Promise.resolve();
  /** How many workers have not connected, one of which may have the limits. */
  #awaited: number;
  readonly #stopWaiting: () => void;

  constructor(options: HandoverOptions) {
    const { clock, living } = options;
    this.#options = options;
    this.#awaited = living;
    this.#stopWaiting = clock.schedule(() => {
      this.#awaited = 0;
      void this.#settle();
    }, connectLimitMs);
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  opened(member: Member, hello: unknown): Promise<void> {
    this.#awaited -= 1;
    const state = stateIn(hello);
    if (state !== undefined) this.#states.set(member, state);
    return this.#settle();
  }

  ended(member: Member): void {
    this.#states.delete(member);
    void this.#settle();
  }

  stop(): void {
    this.#stopWaiting();
  }

  /** Runs once at a time, because workers connect and leave meanwhile. */
  #settle(): Promise<void> {
    this.#settling = this.#settling.then(() => this.#decideWho());
    return this.#settling;
  }

  async #decideWho(): Promise<void> {
    const { members, restore } = this.#options;
    const [only] = members;
    if (only === undefined || this.#awaited > 0) return;
    if (members.size === 1 && this.#states.get(only) === "own") return;
    await this.#include((member) => this.#states.has(member));
    if (!this.#isKnown && members.size > 1) {
      await restore();
      this.#isKnown = true;
    }
    // A starting worker asks for no decision before it has reported.
    if (this.#isKnown) await this.#include(() => true);
    if (members.size === 1) [...members][0]?.link?.tell("limits.yours", undefined);
  }

  async #include(which: (member: Member) => boolean): Promise<void> {
    const reporting = [...this.#options.members].filter((one) => !one.isAdmitted && which(one));
    if (reporting.length === 0) return;
    const areSharing = reporting.some((member) => this.#states.get(member) === "shared");
    await this.#options.include(reporting, areSharing && !this.#isKnown);
    for (const member of reporting) {
      this.#states.delete(member);
      if ((member.report?.limits?.generation ?? 0) > 0) this.#isKnown = true;
    }
  }

  /**
   * Gives the limits to a worker that decides alone from now on; undefined: there is another
   * worker.
   */
  take(member: Member): TakenLimits | undefined {
    const { limits, members } = this.#options;
    if (members.size > 1) return undefined;
    const isUnknown = !this.#isKnown;
    this.#isKnown = false;
    this.#states.set(member, "own");
    member.dismiss();
    return { ...limits.giveAway(), isUnknown };
  }
}

/** `handover`: undefined if there are always several workers. */
export function handoverHandlers(
  handover: Handover | undefined,
  member: Member,
): Handlers<HandoverMessages> {
  return { "limits.take": () => handover?.take(member) };
}

/** Undefined for a worker that has just begun. */
function stateIn(hello: unknown): LimitsState | undefined {
  if (typeof hello !== "object" || hello === null || !("limits" in hello)) return undefined;
  const { limits } = hello;
  return limits === "own" || limits === "shared" ? limits : undefined;
}
