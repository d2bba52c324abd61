import type { HeldPlace } from "../../../admission/capacity/held-place.ts";
import type { HolderFacts, Place, PlaceCandidate } from "../../../admission/capacity/place.ts";
import { holderToWire, type WireHeld } from "../../link/place-wire.ts";
import { RemoteRequests, type RemoteRequestsParts } from "./remote-requests.ts";

export interface RemotePlaceParts extends RemoteRequestsParts {
  readonly own: HeldPlace;
  readonly holder: HolderFacts;
  readonly candidate: PlaceCandidate;
}

/** The place of a running attempt, which control counts, and this worker too. */
export class RemotePlace extends RemoteRequests implements Place {
  readonly waitedMs: number;
  readonly position: number | undefined;
  readonly #parts: RemotePlaceParts;
  #usedTokens: number | undefined;
  #isHeld = true;

  constructor(parts: RemotePlaceParts, waited: Pick<Place, "waitedMs" | "position">) {
    super(parts);
    const { keyId, capacityClass, provisionedPool } = parts.holder;
    // A stream is long: the rest of the request must not stay in memory.
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
    if (this.#usedTokens !== undefined || !this.#isHeld) return;
    this.#usedTokens = tokens;
    this.#parts.own.settle(tokens);
  }

  /** Its settlement is told with it: the two follow each other. */
  leave(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    const { id, own, book } = this.#parts;
    const before = own.taken;
    own.leave();
    book.link.tell("places.leave", [id, this.#usedTokens ?? null, before - own.taken]);
    this.forgetEmpty();
  }

  protected override outside() {
    return {};
  }
}
