import { anyOf, type EndSignal } from "../../../../domain/waiting/end-signal.ts";
import type { Capacity, PoolView } from "../../../../admission/capacity/capacity.ts";
import type { HeldPlace } from "../../../../admission/capacity/held-place.ts";
import {
  busy,
  type AttemptRequests,
  type CapacityGate,
  type ConfiguredPlaces,
  type Draining,
  type EnterResult,
  type Place,
  type PlaceAsk,
} from "../../../../admission/capacity/place.ts";
import type { RequestTerms } from "../../../../admission/places/request-places.ts";
import type { Clock } from "../../../../domain/clock.ts";
import type { Upstream } from "../../../../snapshot/snapshot.ts";
import { LinkLost } from "../../../link/link-errors.ts";
import {
  placeAskToWire,
  refusedFromWire,
  type PlaceId,
  type WireBound,
  type WireEntered,
  type WireLent,
} from "../../../link/place-wire.ts";
import type { HeldReport } from "../../../link/messages.ts";
import type { CoordinationLink, CoordinationPart } from "../coordination-link.ts";
import { notDecided, throwNotDecided } from "../not-decided.ts";
import { PlaceBook } from "./place-book.ts";
import { RemotePlace, type RemotePlaceParts } from "./remote-place.ts";
import { RemoteRequests } from "./remote-requests.ts";
import { shareOf, type WorkerShare } from "./worker-share.ts";

export interface RemoteCapacityOptions extends WorkerShare {
  readonly link: CoordinationLink;
  readonly clock: Clock;
  /** Counts what this worker holds; decides about its share while control is unavailable. */
  readonly own: Capacity;
}

/** Time for the answer, beyond the wait itself. */
const answerMs = 5_000;

/**
 * The places that all workers share, given by control. An attempt costs one round trip, and a note
 * when it ends, unless its place is kept for the next one. While control is unavailable, this
 * worker gives places of its own share.
 */
export class RemoteCapacity implements CapacityGate, CoordinationPart {
  readonly #options: RemoteCapacityOptions;
  readonly #book: PlaceBook;
  /** Shares by configuration; calls may still have an older one. */
  #shares = new WeakMap<ConfiguredPlaces, ConfiguredPlaces>();
  #newest: ConfiguredPlaces | undefined;
  readonly #lent = { pool: new Map<string, number>(), upstream: new Map<string, number>() };
  #knowsLent = false;

  constructor(options: RemoteCapacityOptions) {
    this.#options = options;
    this.#book = new PlaceBook(options);
    options.link.join(this);
  }

  enter(ask: PlaceAsk): EnterResult | Promise<EnterResult> {
    return this.#enterKept(ask) ?? this.#enter(ask, this.#options.clock.monotonic() + ask.waitMs);
  }

  requestPlaces(upstream: Upstream, terms: RequestTerms): AttemptRequests {
    const { name } = upstream;
    const own = this.#options.own.requestPlaces(upstream, terms);
    const book = this.#book;
    return new RemoteRequests({ id: book.newId(), book, own, upstream: name, ...terms });
  }

  /** The places for drained answers are divided between workers: they are not worth a wait. */
  draining(upstream: Upstream): Draining | undefined {
    return this.#options.own.draining(upstream);
  }

  follow(snapshot: ConfiguredPlaces): void {
    this.#newest = snapshot;
    this.#options.own.follow(this.#shareOf(snapshot));
  }

  unitsChanged(): void {
    this.#options.own.unitsChanged();
  }

  /** The places that this worker holds. */
  views(): readonly PoolView[] {
    return this.#options.own.views();
  }

  at(upstream: Upstream): ReturnType<Capacity["at"]> {
    return this.#options.own.at(upstream);
  }

  scarce(bounds: readonly WireBound[]): void {
    this.#book.kept.scarce(bounds);
  }

  plenty(bounds: readonly WireBound[]): void {
    this.#book.kept.plenty(bounds);
  }

  /** Other workers hold more than their shares. */
  lent(lent: readonly WireLent[]): void {
    this.#knowsLent = true;
    for (const [kind, name, count] of lent) this.#lent[kind].set(name, count);
  }

  report(): HeldReport {
    this.#book.decider.enter("linked");
    return { places: this.#book.held };
  }

  lost(): void {
    this.#book.kept.forget();
    this.#book.decider.lost();
  }

  alone(): void {
    const { decider } = this.#book;
    if (decider.isAlone) return;
    decider.enter("alone");
    this.#shares = new WeakMap();
    if (this.#newest !== undefined) this.follow(this.#newest);
  }

  /**
   * Enters at the first candidate, if an attempt has left a place there that control still counts.
   */
  #enterKept({ request, candidates, snapshot }: PlaceAsk): EnterResult | undefined {
    const [candidate] = candidates;
    const id = candidate && this.#book.kept.take(request, candidate.target);
    if (candidate === undefined || id === undefined) return undefined;
    const own = this.#options.own.adopt({ request, candidate, snapshot });
    const named = { id, holder: request, candidate, hasReservation: false };
    return { place: this.#newPlace(own, named, notWaited), at: 0, refused: [] };
  }

  async #enter(ask: PlaceAsk, end: number): Promise<EnterResult> {
    const { decider } = this.#book;
    for (;;) {
      if (ask.waitMs > 0 && ask.signal.aborted) return left;
      if (!decider.isLinked) await decider.known().catch(throwNotDecided);
      const waitMs = Math.max(0, end - this.#options.clock.monotonic());
      const result = await (decider.isAlone
        ? this.#enterAlone({ ...ask, waitMs })
        : this.#enterShared(ask, waitMs));
      if (result !== undefined) return result;
    }
  }

  /** Undefined when control is lost. */
  async #enterShared(ask: PlaceAsk, waitMs: number): Promise<EnterResult | undefined> {
    const { decider, link } = this.#book;
    const { change } = decider;
    const id = this.#book.newId();
    try {
      const asked = link.ask("places.enter", placeAskToWire(id, ask, waitMs), waitMs + answerMs);
      const entered = await (waitMs > 0 ? this.#untilLeft(id, asked, ask.signal) : asked);
      return entered === undefined ? left : this.#entered(id, entered, ask);
    } catch (error) {
      // It is unknown whether control gave a place.
      this.#giveUp(id);
      if (error instanceof LinkLost && change.aborted) return undefined;
      throw notDecided(error);
    }
  }

  #entered(id: PlaceId, answer: WireEntered, ask: PlaceAsk): EnterResult {
    const [at, , waitedMs, position, hasReservation] = answer;
    const refused = refusedFromWire(answer);
    const candidate = ask.candidates[at];
    if (candidate === undefined) return { refused };
    const { request, snapshot } = ask;
    const own = this.#options.own.adopt({ request, candidate, snapshot });
    const waited = { waitedMs, position: position ?? undefined };
    const named = { id, holder: request, candidate, hasReservation };
    return { place: this.#newPlace(own, named, waited), at, refused };
  }

  /** Undefined when control is back. */
  async #enterAlone(ask: PlaceAsk): Promise<EnterResult | undefined> {
    const { own } = this.#options;
    const { change } = this.#book.decider;
    const signal = ask.waitMs > 0 ? anyOf(ask.signal, change) : ask.signal;
    const entered = await own.enter({ ...ask, signal, snapshot: this.#shareOf(ask.snapshot) });
    if (!("place" in entered)) {
      return change.aborted && !ask.signal.aborted ? undefined : entered;
    }
    const { place, at, refused } = entered;
    const candidate = ask.candidates[at];
    if (candidate === undefined) return entered;
    if (change.aborted) {
      // Control has not been told of this place.
      place.leave();
      return undefined;
    }
    const id = this.#book.newId();
    const named = { id, holder: ask.request, candidate, hasReservation: false };
    return { place: this.#newPlace(place, named, place), at, refused };
  }

  #newPlace(
    own: HeldPlace,
    named: Pick<RemotePlaceParts, "id" | "holder" | "candidate" | "hasReservation">,
    waited: Pick<Place, "waitedMs" | "position">,
  ): RemotePlace {
    const { upstream } = named.candidate.target;
    return new RemotePlace({ ...named, book: this.#book, own, upstream, isBound: true }, waited);
  }

  /** Ends a wait at once; a place given meanwhile is given back. */
  #untilLeft(
    id: PlaceId,
    asked: Promise<WireEntered>,
    signal: EndSignal,
  ): Promise<WireEntered | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<WireEntered | undefined>();
    const leave = (): void => {
      this.#giveUp(id);
      resolve(undefined);
    };
    signal.addEventListener("abort", leave, { once: true });
    const listenNoMore = (): void => signal.removeEventListener("abort", leave);
    asked.then(
      (entered) => {
        listenNoMore();
        resolve(entered);
      },
      (error: unknown) => {
        listenNoMore();
        reject(error);
      },
    );
    return promise;
  }

  #giveUp(id: PlaceId): void {
    this.#book.tell("places.leave", [id, 0]);
  }

  #shareOf(snapshot: ConfiguredPlaces): ConfiguredPlaces {
    let share = this.#shares.get(snapshot);
    if (share === undefined) {
      share = shareOf(snapshot, this.#options, this.#knowsLent ? this.#lent : undefined);
      this.#shares.set(snapshot, share);
    }
    return share;
  }
}

const notWaited = { waitedMs: 0, position: undefined };
const left: EnterResult = { refused: [busy("left", 0)] };
