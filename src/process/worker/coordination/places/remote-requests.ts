import { anyOf } from "../../../../domain/waiting/end-signal.ts";
import type { AttemptRequests } from "../../../../admission/capacity/place.ts";
import type { RequestPlaces, RequestWait } from "../../../../admission/places/request-places.ts";
import { LinkLost } from "../../../link/link-errors.ts";
import type { PlaceId, WireHeld, WireMore } from "../../../link/place-wire.ts";
import type { Holder, PlaceBook } from "./place-book.ts";

export interface RemoteRequestsParts {
  readonly id: PlaceId;
  readonly book: PlaceBook;
  /** Counts the requests in this worker. */
  readonly own: RequestPlaces;
  readonly upstream: string;
  readonly isBound: boolean;
}

/**
 * Requests at an upstream whose places control gives. The first request uses the place of the
 * attempt.
 */
export class RemoteRequests implements AttemptRequests, Holder {
  readonly #parts: RemoteRequestsParts;
  /** Requests that wait for a place; the end of another one may give it to them. */
  readonly #waiting = new Set<() => boolean>();
  /** Whether the place of the attempt was given back. */
  protected isLeft = false;
  /** Number of asks for more places that control has not answered. */
  protected unanswered = 0;

  constructor(parts: RemoteRequestsParts) {
    this.#parts = parts;
  }

  get held(): WireHeld {
    const { id, own, upstream, isBound } = this.#parts;
    return { id, upstream, requests: own.taken, isBound };
  }

  extend(count: number): number | Promise<number> {
    const { own, book } = this.#parts;
    const missing = count - own.taken;
    if (missing <= 0) return Math.max(1, own.taken);
    const alone = (): number | Promise<number> => this.#alone(() => own.extend(count));
    if (book.decider.isAlone) return alone();
    return this.#more(missing, 0).then((given) =>
      given === undefined && book.decider.isAlone ? alone() : Math.max(1, own.taken),
    );
  }

  tryOpen(): boolean {
    const { own, book } = this.#parts;
    if (own.hasSpare) return own.tryOpen();
    return book.decider.isAlone && this.#alone(() => own.tryOpen());
  }

  whenOpen(wait: RequestWait): Promise<boolean> {
    if (this.#parts.book.decider.isAlone) return this.#whenOpenAlone(wait);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const { callerSignal, waitMs, clock } = wait;
    let isOver = false;
    const end = (isOpen: boolean | Promise<boolean>): void => {
      isOver = true;
      this.#waiting.delete(look);
      callerSignal.removeEventListener("abort", leave);
      cancel();
      resolve(isOpen);
    };
    const look = (): boolean => {
      if (!this.#parts.own.hasSpare || !this.#parts.own.tryOpen()) return false;
      end(true);
      return true;
    };
    const leave = (): void => end(false);
    const cancel = clock.schedule(leave, waitMs);
    callerSignal.addEventListener("abort", leave, { once: true });
    this.#waiting.add(look);
    void this.#more(1, waitMs).then((given) => {
      if (isOver) this.#giveBackSpare();
      else if (given === undefined) end(this.#whenKnown(wait));
      else if (given === 0 || !look()) end(false);
    });
    return promise;
  }

  close(): void {
    const { id, own, book } = this.#parts;
    const before = own.taken;
    own.close();
    if (own.taken < before) {
      book.tell("places.less", id);
      this.forgetEmpty();
      return;
    }
    for (const look of this.#waiting) if (look()) return;
  }

  protected forgetEmpty(): void {
    const { id, own, book } = this.#parts;
    if (own.taken === 0) book.remove(id);
  }

  /** Undefined when control is lost. */
  async #more(count: number, waitMs: number): Promise<number | undefined> {
    const { id, own, book } = this.#parts;
    if (this.isLeft) return 0;
    const { change } = book.decider;
    this.unanswered += 1;
    try {
      const ask: WireMore = { id, count, waitMs, ...this.outside() };
      const given = await book.link.ask("places.more", ask, waitMs + answerMs);
      this.unanswered -= 1;
      if (this.isLeft) return 0;
      if (given > 0) book.add(id, this);
      own.adopt(given);
      return given;
    } catch (error) {
      if (!(error instanceof LinkLost)) throw error;
      return change.aborted || !book.decider.isLinked ? undefined : 0;
    }
  }

  /** What control must be told about requests that it does not know yet. */
  protected outside(): Pick<WireMore, "outside"> {
    const { upstream, isBound } = this.#parts;
    return { outside: { upstream, isBound } };
  }

  /** Gives back a place that arrived after the wait. */
  #giveBackSpare(): void {
    const { own } = this.#parts;
    if (own.hasSpare && own.tryOpen()) this.close();
  }

  async #whenKnown(wait: RequestWait): Promise<boolean> {
    try {
      await this.#parts.book.decider.known();
    } catch (error) {
      if (error instanceof LinkLost) return false;
      throw error;
    }
    return !wait.callerSignal.aborted && this.whenOpen(wait);
  }

  /** Asks control again once it is back. */
  async #whenOpenAlone(wait: RequestWait): Promise<boolean> {
    const { id, own, book } = this.#parts;
    const { change } = book.decider;
    const callerSignal = anyOf(wait.callerSignal, change);
    // A report counts the places that were given by then.
    book.add(id, this);
    const isOpen = await own.whenOpen({ ...wait, callerSignal });
    if (isOpen) book.add(id, this);
    else this.forgetEmpty();
    return isOpen || (change.aborted && this.#whenKnown(wait));
  }

  #alone<Result>(take: () => Result): Result {
    const { id, book } = this.#parts;
    book.add(id, this);
    const result = take();
    this.forgetEmpty();
    return result;
  }
}

/** Time for the answer, beyond the wait itself. */
const answerMs = 5_000;
