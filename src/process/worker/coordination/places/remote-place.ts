import type { HeldPlace } from "../../../../admission/capacity/held-place.ts";
import type { HolderFacts, Place, PlaceCandidate } from "../../../../admission/capacity/place.ts";
import { holderToWire, type WireHeld } from "../../../link/place-wire.ts";
import { RemoteRequests, type RemoteRequestsParts } from "./remote-requests.ts";

export interface RemotePlaceParts extends RemoteRequestsParts {
  readonly own: HeldPlace;
  readonly holder: HolderFacts;
  readonly candidate: PlaceCandidate;
  /** Whether control has reserved tokens for it. */
  readonly hasReservation: boolean;
}

/** The place of a running attempt, counted by control and by this worker. */
export class RemotePlace extends RemoteRequests implements Place {
  readonly waitedMs: number;
  readonly position: number | undefined;
  readonly #parts: RemotePlaceParts;
  #isSettled = false;
  #isHeld = true;

  constructor(parts: RemotePlaceParts, waited: Pick<Place, "waitedMs" | "position">) {
    super(parts);
    const { keyId, capacityClass, provisionedPool } = parts.holder;
    // A stream can last long: the rest of the request must not stay in memory.
    this.#parts = { ...parts, holder: { keyId, capacityClass, provisionedPool } };
    this.waitedMs = waited.waitedMs;
    this.position = waited.position;
    parts.book.add(parts.id, this);
  }

  override get held(): WireHeld {
    const { holder, candidate } = this.#parts;
    return this.#isHeld ? { ...super.held, holder: holderToWire(holder, candidate) } : super.held;
  }

  settle(tokens: number): void {
    if (this.#isSettled || !this.#isHeld) return;
    this.#isSettled = true;
    const { id, own, book, hasReservation } = this.#parts;
    own.settle(tokens);
    if (hasReservation) book.tell("places.settle", [id, tokens]);
  }

  leave(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.isLeft = true;
    const { id, own, book, holder, candidate, hasReservation } = this.#parts;
    const isUnused = own.taken === 1 && own.hasSpare && this.unanswered === 0;
    own.leave();
    this.forgetEmpty();
    if (isUnused && !hasReservation && book.kept.keep(id, holder, candidate.target)) return;
    book.tell("places.leave", [id, own.taken]);
  }

  protected override outside() {
    return {};
  }
}
