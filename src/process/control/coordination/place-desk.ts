import type { Capacity } from "../../../admission/capacity/capacity.ts";
import type { HeldPlace } from "../../../admission/capacity/held-place.ts";
import {
  busy,
  type ConfiguredPlaces,
  type EnterResult,
} from "../../../admission/capacity/place.ts";
import type { RequestPlaces } from "../../../admission/places/request-places.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { Handlers } from "../../link/link.ts";
import type { PlaceMessages } from "../../link/messages.ts";
import {
  enteredToWire,
  holderFromWire,
  placeAskFromWire,
  type PlaceId,
  type WireEntered,
  type WireHeld,
  type WireLeave,
  type WireMore,
  type WirePlaceAsk,
} from "../../link/place-wire.ts";

export interface PlaceDeskOptions {
  /** Names the worker in reservations of tokens. */
  readonly name: string;
  readonly capacity: Pick<Capacity, "enter" | "adopt" | "requestPlaces">;
  /** Every pool and upstream that a call may still have. */
  readonly places: ConfiguredPlaces;
  readonly clock: Clock;
}

/** What a worker holds by one id. */
interface Holding {
  /** Each of its requests counts as open here, under way or not. */
  readonly requests: RequestPlaces;
  /** Undefined outside any attempt, and once the place was left. */
  place: HeldPlace | undefined;
  /** The reservation, which is taken for used if the worker dies. */
  readonly tokens: number;
  /** Ends waits for further requests; undefined until there is one. */
  ended?: AbortController;
}

/** A call that does not wait has its answer at once. */
const neverEnds = new AbortController().signal;

/** The places of one worker: what it holds, and what it waits for. */
export class PlaceDesk {
  readonly #options: PlaceDeskOptions;
  readonly #holdings = new Map<PlaceId, Holding>();
  readonly #waiting = new Map<PlaceId, AbortController>();
  #isClosed = false;

  constructor(options: PlaceDeskOptions) {
    this.#options = options;
  }

  readonly handlers: Handlers<PlaceMessages> = {
    "places.enter": (ask) => this.#enter(ask),
    "places.leave": (left) => this.#leave(left),
    "places.more": (more) => this.#more(more),
    "places.less": (id) => this.#less(id, 1),
    "places.held": (held) => this.adopt(held),
  };

  /** Counts what the worker holds, even above the bounds. */
  adopt(held: readonly WireHeld[]): void {
    for (const each of held) this.#adoptOne(each);
  }

  /** The worker is gone: gives back all that it held or waited for. */
  close(): void {
    this.#isClosed = true;
    for (const waiting of this.#waiting.values()) waiting.abort();
    for (const [id, { tokens, requests }] of [...this.#holdings]) {
      this.#leave([id, tokens, requests.taken]);
    }
  }

  #enter(ask: WirePlaceAsk): WireEntered | Promise<WireEntered> {
    const [id] = ask;
    const { request, candidates, waitMs } = placeAskFromWire(ask);
    const { capacity, places, name } = this.#options;
    const left = waitMs > 0 ? new AbortController() : undefined;
    const entering = capacity.enter({
      request: { ...request, callId: `${name}/${id}` },
      candidates,
      snapshot: places,
      signal: left?.signal ?? neverEnds,
      waitMs,
    });
    if (!(entering instanceof Promise)) return this.#entered(id, entering, request.tokens);
    if (left !== undefined) this.#waiting.set(id, left);
    return entering
      .then((entered) => {
        if (left?.signal.aborted !== true && !this.#isClosed)
          return this.#entered(id, entered, request.tokens);
        if ("place" in entered) entered.place.leave();
        return enteredToWire({ refused: [busy("left", 0)] });
      })
      .finally(() => this.#waiting.delete(id));
  }

  #entered(id: PlaceId, entered: EnterResult<HeldPlace>, tokens: number): WireEntered {
    if ("place" in entered) {
      const { place } = entered;
      place.tryOpen();
      this.#hold(id, { place, requests: place, tokens });
    }
    return enteredToWire(entered);
  }

  #leave([id, usedTokens, requests]: WireLeave): void {
    this.#waiting.get(id)?.abort();
    const holding = this.#holdings.get(id);
    if (holding === undefined) return;
    holding.ended?.abort();
    if (usedTokens !== null) holding.place?.settle(usedTokens);
    for (let closed = 0; closed < requests; closed += 1) holding.requests.close();
    holding.place?.leave();
    holding.place = undefined;
    this.#forgetEmpty(id, holding);
  }

  #less(id: PlaceId, requests: number): void {
    const holding = this.#holdings.get(id);
    if (holding === undefined) return;
    for (let closed = 0; closed < requests; closed += 1) holding.requests.close();
    this.#forgetEmpty(id, holding);
  }

  async #more({ id, count, waitMs, outside }: WireMore): Promise<number> {
    const holding = this.#holdings.get(id) ?? this.#holdOutside(id, outside);
    if (holding === undefined) return 0;
    const { requests } = holding;
    let given = 0;
    while (given < count && requests.tryOpen()) given += 1;
    if (given > 0 || waitMs === 0) return given;
    holding.ended ??= new AbortController();
    const callerSignal = holding.ended.signal;
    const isOpen = await requests.whenOpen({ callerSignal, waitMs, clock: this.#options.clock });
    if (isOpen && !this.#isClosed) return 1;
    if (isOpen) requests.close();
    this.#forgetEmpty(id, holding);
    return 0;
  }

  #holdOutside(id: PlaceId, outside: WireMore["outside"]): Holding | undefined {
    return outside && this.#hold(id, this.#outside(outside.upstream, outside.isBound));
  }

  #adoptOne({ id, upstream, requests: count, isBound, holder }: WireHeld): void {
    const { capacity, places } = this.#options;
    let holding = this.#holdings.get(id);
    if (holding === undefined && holder !== undefined) {
      const given = { ...holderFromWire(holder, upstream), snapshot: places };
      const place = capacity.adopt(given);
      place.tryOpen();
      holding = this.#hold(id, { place, requests: place, tokens: 0 });
    }
    holding ??= this.#hold(id, this.#outside(upstream, isBound));
    const { requests } = holding;
    for (let missing = count - requests.taken; missing > 0; missing -= 1) {
      requests.adopt(1);
      requests.tryOpen();
    }
  }

  #outside(name: string, isBound: boolean) {
    const { capacity, places } = this.#options;
    const bounds = places.upstreams.get(name) ?? { maxInFlight: 0, drain: undefined };
    const requests = capacity.requestPlaces({ name, ...bounds }, { isBound });
    return { place: undefined, requests, tokens: 0 } satisfies Holding;
  }

  #hold(id: PlaceId, holding: Holding): Holding {
    this.#holdings.set(id, holding);
    return holding;
  }

  #forgetEmpty(id: PlaceId, { requests }: Holding): void {
    if (requests.taken === 0) this.#holdings.delete(id);
  }
}
