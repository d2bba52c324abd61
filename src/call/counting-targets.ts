import type { Clock } from "../domain/clock.ts";
import type { UpstreamFailureKind } from "../domain/errors/failure-kind.ts";

/** Which targets have failed to count of late. */
export class CountingTargets {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #restingUntil = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  isResting(targetId: string): boolean {
    return this.#clock.monotonic() < (this.#restingUntil.get(targetId) ?? 0);
  }

  failed(targetId: string, kind: UpstreamFailureKind): void {
    if (requestKinds.has(kind)) return;
    const restMs = lastingKinds.has(kind) ? lastingRestMs : passingRestMs;
    this.#restingUntil.set(targetId, this.#clock.monotonic() + restMs);
  }
}

/** An operator has to mend these. */
const lastingKinds: ReadonlySet<UpstreamFailureKind> = new Set(["bad-credential", "unknown-model"]);
const lastingRestMs = 10 * 60_000;
const passingRestMs = 60_000;

/** They say something about one request only; a credential is fresh for the next. */
const requestKinds: ReadonlySet<UpstreamFailureKind> = new Set([
  "context-overflow",
  "invalid-request",
  "content-refused",
  "unsupported",
  "stale-credential",
]);
