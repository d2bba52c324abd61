import { slotMs } from "../../../../src/domain/limits/slots.ts";
import type { Random } from "../../random.ts";
import type { VirtualTime } from "../../virtual-time.ts";
import type { HotKeyTerms, HotServer } from "./hot-server.ts";
import type { Lease } from "./leased-window.ts";

export interface HotWorkerOptions {
  readonly time: VirtualTime;
  readonly server: HotServer;
  readonly terms: HotKeyTerms;
  readonly random: Random;
  readonly number: number;
  readonly workers: number;
  readonly hasLeases: boolean;
  /** A call is decided: under a lease, or by a refusal of the same second, without the server. */
  readonly onDecided: (decision: HotDecision) => void;
}

export interface HotDecision {
  readonly key: number;
  readonly by: "server" | "lease" | "memory";
  readonly isAdmitted: boolean;
  readonly waitedMs: number;
}

/** What a worker knows about a key. */
interface KeyHere {
  /** Requests admitted in the current second, and in the one before. */
  current: number;
  previous: number;
  second: number;
  /** What it may admit by itself, until when, and of which slot. */
  rest: number;
  untilMs: number;
  slot: number;
  /** When it last heard that leases are recalled. */
  recalledAtMs: number;
  /** The second of its last refusal, which is repeated until that ends, */
  refusedIn: number;
  /** or until there is room again, as the refusal says. */
  refusedUntilMs: number;
}

/** Leases are worth a script from this size on. */
const leastLease = 4;
const spare = 1.25;
/** Waits of refusals are longer by up to this part. */
const jitter = 0.1;

/** A worker that asks the server about calls, or decides by itself while it has a lease. */
export class HotWorker {
  readonly #options: HotWorkerOptions;
  readonly #keys = new Map<number, KeyHere>();
  /** Seconds of workers do not begin together, nor with the slots of the server. */
  readonly #phaseMs: number;
  #lastArrivalMs = 0;

  constructor(options: HotWorkerOptions) {
    this.#options = options;
    this.#phaseMs = options.random.next() * slotMs;
  }

  call(key: number, runMs: number): void {
    const { time } = this.#options;
    const here = this.#at(key);
    if (here.refusedIn === here.second && time.now < here.refusedUntilMs) {
      this.#decided(key, { by: "memory", isAdmitted: false, askedAt: time.now });
    } else if (here.rest > 0 && time.now < here.untilMs) {
      here.rest -= 1;
      here.current += 1;
      this.#decided(key, { by: "lease", isAdmitted: true, askedAt: time.now });
    } else this.#ask(key, { askedAt: time.now, runMs, isAgain: false });
  }

  /** The leases of a key are recalled. */
  recalled(key: number): void {
    const here = this.#keys.get(key);
    if (here === undefined) return;
    here.recalledAtMs = this.#options.time.now;
    this.#giveBack(key, here);
  }

  #ask(key: number, call: { askedAt: number; runMs: number; isAgain: boolean }): void {
    const { server, time, terms, random } = this.#options;
    const { askedAt, runMs, isAgain } = call;
    this.#send(() =>
      server.count(key, isAgain, (reply) => {
        const waitMs = (slotMs - (time.now % slotMs)) * (1 + jitter * random.next());
        this.#reply(() => {
          if (reply === "recalled") {
            time.schedule(() => this.#ask(key, { ...call, isAgain: true }), terms.againMs);
          } else if (reply === "refused") {
            const here = this.#at(key);
            here.refusedIn = here.second;
            here.refusedUntilMs = askedAt + waitMs;
            this.#decided(key, { by: "server", isAdmitted: false, askedAt });
          } else this.#acquire(key, { askedAt, runMs });
        });
      }),
    );
  }

  #acquire(key: number, { askedAt, runMs }: { askedAt: number; runMs: number }): void {
    const { server, time, number, workers } = this.#options;
    const here = this.#at(key);
    here.current += 1;
    const sentAt = time.now;
    const wish = { worker: number, wanted: this.#wish(here), workers };
    this.#send(() =>
      server.acquire(key, wish, (lease) => {
        // The slot ends so long after the answer; the worker counts from when it asked.
        const leftMs = (lease.slot + 1) * slotMs - time.now;
        this.#reply(() => {
          this.#decided(key, { by: "server", isAdmitted: true, askedAt });
          time.schedule(() => this.#send(() => server.settle()), runMs);
          if (lease.amount > 0) this.#leased(key, lease, { sentAt, leftMs });
        });
      }),
    );
  }

  /** What it used in the last second, and a little more; nothing for a key that is not busy. */
  #wish({ current, previous, rest }: KeyHere): number {
    if (!this.#options.hasLeases || rest > 0) return 0;
    const wanted = Math.ceil(Math.max(current, previous) * spare);
    return wanted < leastLease ? 0 : wanted;
  }

  #leased(key: number, lease: Lease, asked: { sentAt: number; leftMs: number }): void {
    const { time } = this.#options;
    const here = this.#at(key);
    const isMore = here.slot === lease.slot;
    const untilMs = isMore ? here.untilMs : asked.sentAt + asked.leftMs;
    if (here.recalledAtMs >= asked.sentAt || time.now >= untilMs) {
      this.#send(() => this.#options.server.giveBack(key, this.#options.number, lease));
      return;
    }
    if (isMore) {
      here.rest += lease.amount;
      return;
    }
    Object.assign(here, { rest: lease.amount, slot: lease.slot, untilMs });
    time.schedule(() => {
      if (here.slot === lease.slot) this.#giveBack(key, here);
    }, untilMs - time.now);
  }

  #giveBack(key: number, here: KeyHere): void {
    const { server, number } = this.#options;
    const lease = { slot: here.slot, amount: here.rest };
    if (lease.amount === 0) return;
    here.rest = 0;
    this.#send(() => server.giveBack(key, number, lease));
  }

  #decided(
    key: number,
    { askedAt, ...decision }: Pick<HotDecision, "by" | "isAdmitted"> & { readonly askedAt: number },
  ): void {
    const { time, onDecided } = this.#options;
    onDecided({ ...decision, key, waitedMs: time.now - askedAt });
  }

  #at(key: number): KeyHere {
    const second = Math.floor((this.#options.time.now + this.#phaseMs) / slotMs);
    let here = this.#keys.get(key);
    if (here === undefined) {
      here = { ...unknown, second };
      this.#keys.set(key, here);
    }
    if (here.second !== second) {
      here.previous = here.second === second - 1 ? here.current : 0;
      here.current = 0;
      here.second = second;
    }
    return here;
  }

  /** Commands of a connection arrive in order. */
  #send(arrive: () => void): void {
    const { time } = this.#options;
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, time.now + this.#networkMs());
    time.schedule(arrive, this.#lastArrivalMs - time.now);
  }

  #reply(answered: () => void): void {
    this.#options.time.schedule(answered, this.#networkMs());
  }

  #networkMs(): number {
    return -this.#options.terms.networkMs * Math.log(1 - this.#options.random.next());
  }
}

const unknown = {
  current: 0,
  previous: 0,
  rest: 0,
  untilMs: 0,
  slot: -1,
  recalledAtMs: Number.NEGATIVE_INFINITY,
  refusedIn: -1,
  refusedUntilMs: 0,
};
