import type { PlaceId, WireHeld } from "../../../link/place-wire.ts";
import type { CoordinationLink } from "../coordination-link.ts";

/** What holds places of this worker. */
export interface Holder {
  /** What control counts it as. */
  readonly held: WireHeld;
}

/** All that this worker holds, and who decides about places. */
export class PlaceBook {
  readonly #link: CoordinationLink;
  readonly #holders = new Map<PlaceId, Holder>();
  #lastId = 0;
  /** Whether control is gone, so that this worker decides by itself. */
  isAlone = false;

  constructor(link: CoordinationLink) {
    this.#link = link;
  }

  get link(): CoordinationLink {
    return this.#link;
  }

  get held(): readonly WireHeld[] {
    return [...this.#holders.values()].map(({ held }) => held);
  }

  newId(): PlaceId {
    this.#lastId += 1;
    return this.#lastId;
  }

  add(id: PlaceId, holder: Holder): void {
    this.#holders.set(id, holder);
  }

  remove(id: PlaceId): void {
    this.#holders.delete(id);
  }

  /** Says what was taken without control's knowledge; while it is gone it hears nothing. */
  tellHeld({ held }: Holder): void {
    this.#link.tell("places.held", [held]);
  }
}
