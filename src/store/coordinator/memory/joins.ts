import type { Clock } from "../../../domain/clock.ts";
import type { ClaimDecision, ClaimedRequest, HeldClaim, Joins } from "../../joins.ts";

/** The claims of one worker, where several share the table. */
export interface ProcessJoins extends Joins {
  /** Takes over what the process had claimed from a predecessor of this table. */
  restore(held: readonly HeldClaim[]): void;
  /** Releases everything once the process has ended. */
  end(): void;
}

/** Longest wait for another owner. The asker then looks for an answer and claims again. */
const waitMs = 30_000;

interface Claim {
  readonly requestDigest: string;
  readonly owner: object;
  isUnsaved: boolean;
  /** How to end the waits, by process. */
  readonly waits: Map<object, () => void>;
}

/** Which process runs which request. */
export class MemoryJoins {
  readonly #clock: Pick<Clock, "schedule">;
  readonly #claims = new Map<string, Claim>();

  constructor(clock: Pick<Clock, "schedule">) {
    this.#clock = clock;
  }

  /** Requests that are owned. */
  get size(): number {
    return this.#claims.size;
  }

  ofProcess(): ProcessJoins {
    const owner = {};
    return {
      claim: (request) => this.#claim(owner, request),
      release: (id) => this.#release(owner, id),
      unsaved: (id) => this.#unsaved(owner, id),
      restore: (held) => {
        for (const claim of held) this.#take(owner, claim);
      },
      end: () => {
        for (const id of this.#claims.keys()) this.#release(owner, id);
      },
    };
  }

  #claim(owner: object, request: ClaimedRequest): ClaimDecision | Promise<ClaimDecision> {
    const claim = this.#claims.get(request.id);
    // If an owner claims again, it has released the claim, but the message about it was lost.
    if (claim === undefined || claim.owner === owner) {
      this.#take(owner, { ...request, isUnsaved: false });
      return "owner";
    }
    if (claim.requestDigest !== request.requestDigest) return "reused";
    return claim.isUnsaved ? "unsaved" : this.#wait(owner, claim);
  }

  /** The first owner stays. */
  #take(owner: object, { id, requestDigest, isUnsaved }: HeldClaim): void {
    const claim = this.#claims.get(id);
    if (claim !== undefined && claim.owner !== owner) return;
    const waits = claim?.waits ?? new Map<object, () => void>();
    this.#claims.set(id, { owner, requestDigest, isUnsaved, waits });
  }

  #wait(owner: object, { waits }: Claim): Promise<ClaimDecision> {
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        waits.delete(owner);
        resolve("ended");
      };
      const cancel = this.#clock.schedule(end, waitMs);
      waits.set(owner, end);
    });
  }

  #release(owner: object, id: string): void {
    const claim = this.#claims.get(id);
    if (claim === undefined) return;
    if (claim.owner !== owner) {
      claim.waits.get(owner)?.();
      return;
    }
    this.#claims.delete(id);
    for (const end of claim.waits.values()) end();
  }

  #unsaved(owner: object, id: string): void {
    const claim = this.#claims.get(id);
    if (claim?.owner !== owner) return;
    claim.isUnsaved = true;
    for (const end of claim.waits.values()) end();
  }
}
