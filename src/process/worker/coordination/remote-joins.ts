import type { ClaimDecision, ClaimedRequest, HeldClaim, Joins } from "../../../store/joins.ts";
import type { HeldReport, JoinMessages } from "../../link/messages.ts";
import type { CoordinationLink, CoordinationPart } from "./coordination-link.ts";

/** Longer than control waits for another owner. */
const answerTimeoutMs = 40_000;

interface RemoteClaim extends HeldClaim {
  isOwner: boolean;
  isUnsaved: boolean;
}

/** Which calls this worker runs, decided by control. */
export class RemoteJoins implements Joins, CoordinationPart {
  readonly #link: CoordinationLink<JoinMessages>;
  readonly #claims = new Map<string, RemoteClaim>();

  constructor(link: CoordinationLink<JoinMessages>) {
    this.#link = link;
    link.join(this);
  }

  async claim(request: ClaimedRequest): Promise<ClaimDecision> {
    const claim = { ...request, isOwner: false, isUnsaved: false };
    this.#claims.set(request.id, claim);
    const decision = await this.#link.ask("joins.claim", request, answerTimeoutMs);
    claim.isOwner = decision === "owner";
    return decision;
  }

  release(id: string): void {
    this.#claims.delete(id);
    this.#link.tell("joins.release", id);
  }

  unsaved(id: string): void {
    const claim = this.#claims.get(id);
    if (claim !== undefined) claim.isUnsaved = true;
    this.#link.tell("joins.unsaved", id);
  }

  report(): HeldReport {
    const joins = [...this.#claims.values()]
      .filter(({ isOwner }) => isOwner)
      .map(({ id, requestDigest, isUnsaved }) => ({ id, requestDigest, isUnsaved }));
    return { joins };
  }
}
