import type { ClaimDecision, ClaimedRequest, Joins } from "../../../store/joins.ts";
import type { CoordinationLink } from "../control-link.ts";

/** Above the wait of control for another owner. */
const answerTimeoutMs = 40_000;

interface RemoteClaim extends ClaimedRequest {
  isOwner: boolean;
}

/** Which calls this worker makes, decided by control. */
export class RemoteJoins implements Joins {
  readonly #link: CoordinationLink;
  readonly #claims = new Map<string, RemoteClaim>();

  constructor(link: CoordinationLink) {
    this.#link = link;
    link.onReplaced(() => link.tell("joins.held", this.#held()));
  }

  async claim(request: ClaimedRequest): Promise<ClaimDecision> {
    const claim = { ...request, isOwner: false };
    this.#claims.set(request.id, claim);
    const decision = await this.#link.ask("joins.claim", request, answerTimeoutMs);
    claim.isOwner = decision === "owner";
    return decision;
  }

  release(id: string): void {
    this.#claims.delete(id);
    this.#link.tell("joins.release", id);
  }

  #held(): readonly ClaimedRequest[] {
    return [...this.#claims.values()]
      .filter(({ isOwner }) => isOwner)
      .map(({ id, requestDigest }) => ({ id, requestDigest }));
  }
}
