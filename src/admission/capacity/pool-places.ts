import type { UpstreamPlaces } from "../places/upstream-places.ts";
import { HeldCount } from "./held-count.ts";
import { HeldPlace, type PlaceKeeper } from "./held-place.ts";
import type { PlaceHolder } from "./place.ts";

export interface PoolPlacesOptions {
  readonly keeper: PlaceKeeper;
  /** Called when an upstream without room has room again. */
  readonly onRoom: () => void;
}

interface Wanted {
  readonly request: PlaceHolder;
  readonly upstream: UpstreamPlaces;
}

/** The places of one pool, each of which is taken together with one at a target's upstream. */
export class PoolPlaces {
  readonly held = new HeldCount();
  readonly #options: PoolPlacesOptions;

  constructor(options: PoolPlacesOptions) {
    this.#options = options;
  }

  hasUpstream(holder: PlaceHolder, upstream: UpstreamPlaces): boolean {
    return upstream.free > 0 || !this.#options.keeper.isBound(holder);
  }

  /** Whether a waiting call has room at its upstream; if not, `onRoom` is called when it may. */
  readonly mayEnter = ({ request, upstream }: Wanted): boolean => {
    if (this.hasUpstream(request, upstream)) return true;
    upstream.whenFree(this.#options.onRoom);
    return false;
  };

  /** Each place that is taken becomes a `place`, or is given back. */
  take(holder: PlaceHolder, upstream: UpstreamPlaces): void {
    this.held.take(holder);
    upstream.take();
  }

  giveBack(holder: PlaceHolder, upstream: UpstreamPlaces): void {
    this.held.giveBack(holder);
    upstream.giveBack();
  }

  place(holder: PlaceHolder, upstream: UpstreamPlaces): HeldPlace {
    return new HeldPlace(this.#options.keeper, holder, upstream);
  }
}
