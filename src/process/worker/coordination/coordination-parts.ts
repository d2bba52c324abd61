import type { LinkLost } from "../../link/link-errors.ts";
import type { Handlers } from "../../link/link.ts";
import type { HeldReport, SharingMessages } from "../../link/messages.ts";
import type { CoordinationPart } from "./coordination-link.ts";

/** The parts of a worker that ask control, together. */
export class CoordinationParts {
  readonly handlers: Handlers<SharingMessages> = {
    "coordination.report": () => this.#report(),
    "limits.seen": () => this.#parts.flatMap((part) => part.seen?.() ?? []),
    "limits.used": (told) => {
      for (const part of this.#parts) part.used?.(told);
    },
  };
  readonly #parts: CoordinationPart[] = [];
  readonly #joined = Promise.withResolvers<void>();

  join(part: CoordinationPart): void {
    this.#parts.push(part);
    this.#joined.resolve();
  }

  lost(reason: LinkLost): void {
    for (const part of this.#parts) part.lost(reason);
  }

  alone(): void {
    for (const part of this.#parts) part.alone();
  }

  /** What all parts hold. A worker that has just begun has none yet. */
  async #report(): Promise<HeldReport> {
    await this.#joined.promise;
    return this.#parts.reduce<HeldReport>((all, part) => ({ ...all, ...part.report() }), {});
  }
}
