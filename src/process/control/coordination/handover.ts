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
  /** How many workers ran when this process began. */
  readonly living: number;
  /**
   * Lets these workers say what they hold, and decides for them from then on. `isPartial`: others
   * that have gone since may have admitted calls alone.
   */
  readonly include: (members: readonly Member[], isPartial: boolean) => Promise<void>;
  /** Reads what the ledger has. */
  readonly restore: () => Promise<void>;
}

/** Longest wait for workers that ran when this process began. */
const connectLimitMs = 1_000;

/**
 * The limits of a gateway with one worker, which decides alone. While its successor serves too, they
 * are decided here for both; the one that is left takes them again.
 */
export class Handover {
  readonly #options: HandoverOptions;
  /** Of workers that are not decided for here, and have not just begun. */
  readonly #states = new Map<Member, LimitsState>();
  /** Whether the limits here have what was granted. */
  #isKnown = false;
  #settling = Promise.resolve();
  /** Workers that have not connected, of which one may have the limits. */
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

  /** One after the other, as workers come and go meanwhile. */
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
    // A worker that begins asks for no decision before it has reported.
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

  /** Everything, for a worker that decides alone from now on; undefined: another one is there. */
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

/** `handover`: undefined where there are always several workers. */
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
