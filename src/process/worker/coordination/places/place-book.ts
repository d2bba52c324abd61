import type { Clock } from "../../../../domain/clock.ts";
import type { PlaceMessages } from "../../../link/messages.ts";
import type { PlaceId, WireHeld } from "../../../link/place-wire.ts";
import type { CoordinationLink } from "../coordination-link.ts";
import { Decider } from "../decider.ts";
import { KeptPlaces } from "./kept-places.ts";

/** Something that holds places of this worker. */
export interface Holder {
  /** How control counts it. */
  readonly held: WireHeld;
}

export interface PlaceBookOptions {
  readonly link: CoordinationLink;
  readonly clock: Clock;
}

/** Everything that this worker holds, and who decides about places. */
export class PlaceBook {
  readonly decider: Decider;
  readonly kept: KeptPlaces;
  readonly #link: CoordinationLink;
  readonly #holders = new Map<PlaceId, Holder>();
  #lastId = 0;

  constructor({ link, clock }: PlaceBookOptions) {
    this.#link = link;
    this.decider = new Decider(clock);
    this.kept = new KeptPlaces({ clock, giveBack: (id) => this.tell("places.leave", [id, 0]) });
  }

  get held(): readonly WireHeld[] {
    return [...this.#holders.values()]
      .map(({ held }) => held)
      .filter(({ requests }) => requests > 0);
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

  get link(): Pick<CoordinationLink, "ask"> {
    return this.#link;
  }

  /** A control process that does not decide yet learns from the report what is held. */
  tell<Kind extends keyof PlaceMessages>(kind: Kind, body: PlaceMessages[Kind]["ask"]): void {
    if (this.decider.isLinked) this.#link.tell(kind, body);
  }
}
