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
import type { WorkerCount } from "./lent-places.ts";
import {
  enteredToWire,
  holderFromWire,
  placeAskFromWire,
  type PlaceId,
  type ReadAsk,
  type WireEntered,
  type WireHeld,
  type WireLeave,
  type WireMore,
  type WirePlaceAsk,
} from "../../link/place-wire.ts";

export interface PlaceDeskOptions {
  /** Identifies the worker in reservations of tokens. */
  readonly name: string;
  readonly capacity: Pick<Capacity, "enter" | "adopt" | "requestPlaces">;
  /** Every pool and upstream that a call may still use. */
  readonly places: ConfiguredPlaces;
  readonly clock: Clock;
  /** Decides once all workers have reported what they hold, in the order of the messages. */
  readonly when: <Answer>(decide: () => Answer | Promise<Answer>) => Answer | Promise<Answer>;
  /** The worker has reported what it holds, which it does when it connects. */
  readonly onHeld: () => void;
  readonly onEnd: () => void;
  /** Called after places were taken. */
  readonly onTaken: (names: HolderNames) => void;
  /**
   * Resolves when places of the upstream that no call uses have been given back; undefined if there
   * are none.
   */
  readonly recall: (upstream: string) => Promise<void> | undefined;
  readonly counts: { readonly pools: WorkerCount; readonly upstreams: WorkerCount };
}

export interface HolderNames {
  readonly upstream: string;
  /** Undefined if the target has none. */
  readonly pool: string | undefined;
}

/** What a worker holds under one id. */
interface Holding extends HolderNames {
  /** Each of its requests counts as open here, whether it is running or not. */
  readonly requests: RequestPlaces;
  /** Undefined outside any attempt, and after the place was given back. */
  place: HeldPlace | undefined;
  isLeft?: boolean;
  /** The reservation, which counts as used if the worker dies. */
  readonly tokens: number;
  /** Ends waits for further requests; undefined until the first of them. */
  ended?: AbortController;
}

/** A call that does not wait is answered at once. */
const neverEnds = new AbortController().signal;
const leftAnswer = enteredToWire({ refused: [busy("left", 0)] });

/** The places of one worker: those it holds, and those it waits for. */
export class PlaceDesk {
  readonly #options: PlaceDeskOptions;
  readonly #holdings = new Map<PlaceId, Holding>();
  readonly #waiting = new Map<PlaceId, AbortController>();
  #isEnded = false;

  constructor(options: PlaceDeskOptions) {
    this.#options = options;
  }

  readonly handlers: Handlers<PlaceMessages> = {
    "places.enter": (ask) => this.#options.when(() => this.#enter(ask)),
    "places.settle": ([id, tokens]) =>
      this.#options.when(() => this.#holdings.get(id)?.place?.settle(tokens)),
    "places.leave": (left) => this.#options.when(() => this.#leave(left)),
    "places.more": (more) => this.#options.when(() => this.#more(more)),
    "places.less": (id) => this.#options.when(() => this.#less(id)),
  };

  /** Counts what the worker holds, even above the bounds. */
  adopt(held: readonly WireHeld[]): void {
    for (const each of held) this.#adoptOne(each);
    this.#options.onHeld();
  }

  /** The worker has ended: gives back everything that it held or waited for. */
  end(): void {
    this.#isEnded = true;
    this.#options.onEnd();
    for (const waiting of this.#waiting.values()) waiting.abort();
    for (const [id, { place, tokens }] of this.#holdings) {
      place?.settle(tokens);
      this.#leave([id, 0]);
    }
  }

  #enter(ask: WirePlaceAsk): WireEntered | Promise<WireEntered> {
    const [id] = ask;
    if (this.#isEnded) return leftAnswer;
    const asked = placeAskFromWire(ask);
    const { request, candidates, waitMs } = asked;
    const { capacity, places, name } = this.#options;
    const left = waitMs > 0 ? this.#wait(id) : neverEnds;
    const entering = capacity.enter({
      request: { ...request, callId: `${name}/${id}` },
      candidates,
      snapshot: places,
      signal: left,
      waitMs,
    });
    if (!(entering instanceof Promise)) {
      this.#waiting.delete(id);
      return this.#entered(id, entering, asked);
    }
    const gone = waitMs > 0 ? left : this.#wait(id);
    return entering
      .then((entered) => {
        if (!gone.aborted) return this.#entered(id, entered, asked);
        if ("place" in entered) entered.place.leave();
        return leftAnswer;
      })
      .finally(() => this.#waiting.delete(id));
  }

  #wait(id: PlaceId): AbortSignal {
    const left = new AbortController();
    this.#waiting.set(id, left);
    return left.signal;
  }

  #entered(id: PlaceId, entered: EnterResult<HeldPlace>, asked: ReadAsk): WireEntered {
    const target = "place" in entered ? asked.candidates[entered.at]?.target : undefined;
    if ("place" in entered && target !== undefined) {
      const { upstream, pool } = target;
      const { place } = entered;
      place.tryOpen();
      this.#hold(id, { place, requests: place, tokens: asked.request.tokens, upstream, pool });
    }
    return enteredToWire(entered);
  }

  #leave([id, underWay]: WireLeave): void {
    this.#waiting.get(id)?.abort();
    const holding = this.#holdings.get(id);
    if (holding === undefined) return;
    holding.ended?.abort();
    const { requests, place, upstream, pool } = holding;
    const before = requests.taken;
    this.#close(holding, before - underWay);
    place?.leave();
    holding.place = undefined;
    holding.isLeft = true;
    const { counts } = this.#options;
    counts.upstreams.add(upstream, requests.taken - before);
    if (place !== undefined && pool !== undefined) counts.pools.add(pool, -1);
    this.#forgetEmpty(id, holding);
  }

  #less(id: PlaceId): void {
    const holding = this.#holdings.get(id);
    if (holding === undefined) return;
    const before = holding.requests.taken;
    this.#close(holding, 1);
    this.#options.counts.upstreams.add(holding.upstream, holding.requests.taken - before);
    this.#forgetEmpty(id, holding);
  }

  #close({ requests }: Holding, count: number): void {
    for (let closed = 0; closed < count; closed += 1) requests.close();
  }

  async #more(more: WireMore): Promise<number> {
    const { id, outside } = more;
    const holding = this.#holdings.get(id) ?? (outside && this.#hold(id, this.#outside(outside)));
    if (holding === undefined || !this.#mayOpen(holding)) return 0;
    try {
      const given = await this.#open(holding, more);
      this.#options.counts.upstreams.add(holding.upstream, given);
      this.#options.onTaken(holding);
      return given;
    } finally {
      this.#forgetEmpty(id, holding);
    }
  }

  async #open(holding: Holding, { count, waitMs }: WireMore): Promise<number> {
    const { requests } = holding;
    let given = 0;
    while (given < count && requests.tryOpen()) given += 1;
    const recalled = given < count ? this.#options.recall(holding.upstream) : undefined;
    if (recalled !== undefined) {
      await recalled;
      while (given < count && this.#mayOpen(holding) && requests.tryOpen()) given += 1;
    }
    if (given > 0 || waitMs === 0 || !this.#mayOpen(holding)) return given;
    holding.ended ??= new AbortController();
    const { signal: callerSignal } = holding.ended;
    const isOpen = await requests.whenOpen({ callerSignal, waitMs, clock: this.#options.clock });
    if (!isOpen) return 0;
    if (!callerSignal.aborted) return 1;
    requests.close();
    return 0;
  }

  #mayOpen({ isLeft = false }: Holding): boolean {
    return !isLeft && !this.#isEnded;
  }

  #adoptOne({ id, upstream, requests: count, isBound, holder }: WireHeld): void {
    const { capacity, places } = this.#options;
    let holding = this.#holdings.get(id);
    if (holding === undefined && holder !== undefined) {
      const given = { ...holderFromWire(holder, upstream), snapshot: places };
      const place = capacity.adopt(given);
      place.tryOpen();
      const { pool } = given.candidate.target;
      holding = this.#hold(id, { place, requests: place, tokens: 0, upstream, pool });
    }
    holding ??= this.#hold(id, this.#outside({ upstream, isBound }));
    const { requests } = holding;
    for (let missing = count - requests.taken; missing > 0; missing -= 1) {
      requests.adopt(1);
      requests.tryOpen();
      this.#options.counts.upstreams.add(upstream, 1);
    }
  }

  #outside({ upstream, isBound }: NonNullable<WireMore["outside"]>) {
    const { capacity, places } = this.#options;
    const bounds = places.upstreams.get(upstream) ?? { maxInFlight: 0, drain: undefined };
    const requests = capacity.requestPlaces({ name: upstream, ...bounds }, { isBound });
    const holding: Holding = { requests, place: undefined, tokens: 0, upstream, pool: undefined };
    return holding;
  }

  #hold(id: PlaceId, holding: Holding): Holding {
    this.#holdings.set(id, holding);
    const { upstream, pool, requests, place } = holding;
    const { counts } = this.#options;
    counts.upstreams.add(upstream, requests.taken);
    if (place !== undefined && pool !== undefined) counts.pools.add(pool, 1);
    this.#options.onTaken(holding);
    return holding;
  }

  #forgetEmpty(id: PlaceId, { requests }: Holding): void {
    if (requests.taken === 0) this.#holdings.delete(id);
  }
}
