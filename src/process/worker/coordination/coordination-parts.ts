import { LinkLost } from "../../link/link-errors.ts";
import type { Handlers } from "../../link/link.ts";
import type { HeldReport, LimitsState, SharingMessages } from "../../link/messages.ts";
import type { CoordinationPart } from "./coordination-link.ts";

/** All parts of a worker that ask control. */
export class CoordinationParts {
  readonly handlers: Handlers<SharingMessages> = {
    "limits.yours": async () => {
      await this.#joined.promise;
      for (const part of this.#parts) part.yours?.();
    },
    "coordination.report": () => this.#report(),
    "limits.seen": () => this.#parts.flatMap((part) => part.seen?.() ?? []),
    "limits.used": (told) => {
      for (const part of this.#parts) part.used?.(told);
    },
    "limits.leased": (lease) => {
      for (const part of this.#parts) part.leased?.(lease);
    },
    "limits.recall": (ids) => {
      for (const part of this.#parts) part.recall?.(ids);
    },
    "places.lent": (lent) => {
      for (const part of this.#parts) part.lent?.(lent);
    },
    "places.scarce": (bounds) => {
      for (const part of this.#parts) part.scarce?.(bounds);
    },
    "places.plenty": (bounds) => {
      for (const part of this.#parts) part.plenty?.(bounds);
    },
  };
  readonly #parts: CoordinationPart[] = [];
  readonly #joined = Promise.withResolvers<void>();
  /** How many links were lost. */
  #losses = 0;

  get limitsState(): LimitsState | undefined {
    return this.#parts.find((part) => part.limitsState !== undefined)?.limitsState;
  }

  join(part: CoordinationPart): void {
    this.#parts.push(part);
    this.#joined.resolve();
  }

  lost(reason: LinkLost): void {
    this.#losses += 1;
    for (const part of this.#parts) part.lost?.(reason);
  }

  closing(): void {
    for (const part of this.#parts) part.closing?.();
  }

  alone(): void {
    for (const part of this.#parts) part.alone?.();
  }

  /** What all parts hold. A worker that has just begun has no parts yet. */
  async #report(): Promise<HeldReport> {
    const losses = this.#losses;
    await this.#joined.promise;
    for (const part of this.#parts) await part.reportable?.();
    // The report would be lost with the link, and the parts would have to continue alone.
    if (losses !== this.#losses) throw new LinkLost("the control process that asked has ended");
    return this.#parts.reduce<HeldReport>((all, part) => ({ ...all, ...part.report() }), {});
  }
}
