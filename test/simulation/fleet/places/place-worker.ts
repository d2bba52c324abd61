import { Capacity } from "../../../../src/admission/capacity/capacity.ts";
import type { ConfiguredPlaces, EnterResult } from "../../../../src/admission/capacity/place.ts";
import { EndSource } from "../../../../src/domain/waiting/end-signal.ts";
import { PlaceAllotments } from "../../../../src/process/worker/coordination/allotted/place-allotments.ts";
import { ConcurrencyLimit } from "../../../../src/routing/health/concurrency-limit.ts";
import type { AllotmentStore, AllotmentWish } from "../../../../src/store/allotments.ts";
import type { TokenLimits } from "../../../../src/store/store.ts";
import type { Random } from "../../random.ts";
import { ProcessClock } from "../../virtual-time.ts";
import type { PlacesServer } from "./places-server.ts";
import { ServerLink, type ServerLinkOptions } from "./server-link.ts";

export interface PlaceWorkerOptions extends ServerLinkOptions {
  readonly places: PlacesServer;
  readonly snapshot: ConfiguredPlaces;
  /** From 1. */
  readonly number: number;
  readonly workers: number;
  /** Of the server, for the limits of a call. */
  readonly decisionMs: number;
  readonly settleMs: number;
}

const pool = "shared";
/** The bound of all places of the pool. */
export const poolBound = `pool ${pool}`;
const target = { id: "up/shared", upstream: "up", pool };
const admitted = { isAdmitted: true, state: {} } as Awaited<ReturnType<TokenLimits["acquire"]>>;

/** A worker with the queues and allotments of the product, and a modelled server. */
export class PlaceWorker {
  readonly #options: PlaceWorkerOptions;
  readonly #clock: ProcessClock;
  readonly #name: string;
  readonly #capacity: Capacity;
  readonly link: ServerLink;
  /** Calls that wait for a place. */
  waiting = 0;
  isDead = false;
  #calls = 0;

  constructor(options: PlaceWorkerOptions) {
    const { time, random, number, snapshot } = options;
    this.#options = options;
    this.#name = `worker ${number}`;
    this.#clock = new ProcessClock(time, { monotonicMs: startOf(random), wallMs: 1e12 });
    this.link = new ServerLink(options);
    const clock = this.#clock;
    const allotments = new PlaceAllotments({ clock, store: this.#store() });
    const limit = new ConcurrencyLimit();
    this.#capacity = new Capacity({
      clock,
      limits: this.#limits(),
      settings: () => ({ queueLimit: 1_000 }),
      units: { holdings: () => new Map(), unitsOf: () => 0 },
      limitOf: () => limit,
      parts: allotments,
      recall: (refused) => allotments.recall(refused),
    });
    allotments.attach(this.#capacity);
    this.#capacity.follow(snapshot);
  }

  /** Resolves with how to give the place back; undefined: the call was refused. */
  async enter(accountId: string, waitMs: number): Promise<(() => void) | undefined> {
    this.#calls += 1;
    const entered: EnterResult = await this.#capacity.enter({
      request: {
        callId: `${this.#name} ${this.#calls}`,
        keyId: accountId,
        accountId,
        capacityClass: "on-demand",
        provisionedPool: undefined,
        tokens: 500,
      },
      candidates: [{ target }],
      snapshot: this.#options.snapshot,
      signal: new EndSource(),
      waitMs,
    });
    if (!("place" in entered)) return undefined;
    const { place } = entered;
    return () => {
      place.settle(500);
      place.leave();
    };
  }

  /** As a crash does: it tells nobody. */
  die(): void {
    this.isDead = true;
    this.#clock.stop();
    this.link.die();
    this.#options.places.stopTelling(this.#name);
  }

  #store(): AllotmentStore {
    const { places, number, workers } = this.#options;
    const { link } = this;
    const name = this.#name;
    return {
      rank: { number, workers },
      get isUp() {
        return link.isUp;
      },
      async exchange(wish: AllotmentWish) {
        const allotment = await link.ask(() => places.exchange(name, wish));
        if (allotment === undefined) throw new Error("the wish came too late");
        return allotment;
      },
      onNews(hear) {
        places.listen(name, hear);
      },
      onChange(changed) {
        link.onChange(changed);
      },
      close: () => undefined,
    };
  }

  /** The limits admit all calls, and take their time at the server. */
  #limits(): TokenLimits {
    const { decisionMs, settleMs } = this.#options;
    const run = (takesMs: number): Promise<unknown> =>
      this.link.ask(() => [undefined, takesMs]).catch(() => undefined);
    return {
      async acquire() {
        await run(decisionMs);
        return admitted;
      },
      async settle() {
        await run(settleMs);
      },
    };
  }
}

function startOf(random: Random): number {
  return random.whole(1_000, 1_000_000);
}
