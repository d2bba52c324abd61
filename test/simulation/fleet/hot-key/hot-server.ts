import type { VirtualTime } from "../../virtual-time.ts";
import { SharedServer } from "../shared-server.ts";
import { LeasedWindow, type Lease, type LeaseWish } from "./leased-window.ts";

/** Times that commands take at the server, in milliseconds. */
export interface HotKeyTerms {
  readonly countMs: number;
  readonly acquireMs: number;
  readonly settleMs: number;
  readonly giveBackMs: number;
  /** To tell one worker that leases are recalled. */
  readonly newsMs: number;
  /** Mean time on the network, one way. */
  readonly networkMs: number;
  /** Until a call that found no room asks again. */
  readonly againMs: number;
}

/** `recalled`: leases are on their way back; ask again. */
export type CountReply = "admitted" | "refused" | "recalled";

export interface HotServerOptions {
  readonly time: VirtualTime;
  readonly terms: HotKeyTerms;
  readonly workers: number;
  readonly limitOf: (key: number) => number;
  readonly onRecall: (key: number) => void;
  /** A script has admitted a call. */
  readonly onAdmitted: (key: number) => void;
  readonly onRefused: (key: number) => void;
}

/** The limits in the memory of the server, and the scripts about them. */
export class HotServer {
  readonly #options: HotServerOptions;
  readonly #server: SharedServer;
  readonly #windows: (LeasedWindow | undefined)[] = [];
  recalls = 0;

  constructor(options: HotServerOptions) {
    this.#options = options;
    const { time } = options;
    this.#server = new SharedServer({ time, fault: undefined, onStateLost: () => undefined });
  }

  get scripts(): number {
    return this.#server.commands;
  }

  get busyMs(): number {
    return this.#server.busyMs;
  }

  /** Call when the command arrives. `isAgain`: leases were recalled for this call before. */
  count(key: number, isAgain: boolean, answered: (reply: CountReply) => void): void {
    const { terms } = this.#options;
    let reply: CountReply = "refused";
    this.#run(
      () => {
        const [decided, newsMs] = this.#count(key, isAgain);
        reply = decided;
        return terms.countMs + newsMs;
      },
      () => answered(reply),
    );
  }

  /** Reserves the tokens of an admitted call, and leases requests. */
  acquire(key: number, wish: LeaseWish, answered: (lease: Lease) => void): void {
    const { time, terms } = this.#options;
    let lease: Lease = { slot: 0, amount: 0 };
    this.#run(
      () => {
        lease = this.#windowOf(key).lease(wish, time.now);
        return terms.acquireMs;
      },
      () => answered(lease),
    );
  }

  settle(): void {
    this.#run(() => this.#options.terms.settleMs);
  }

  giveBack(key: number, worker: number, lease: Lease): void {
    const { time, terms } = this.#options;
    this.#run(() => {
      this.#windowOf(key).giveBack(worker, lease, time.now);
      return terms.giveBackMs;
    });
  }

  #count(key: number, isAgain: boolean): readonly [CountReply, number] {
    const { time, terms, workers, onAdmitted, onRefused, onRecall } = this.#options;
    const window = this.#windowOf(key);
    if (window.take(time.now)) {
      onAdmitted(key);
      return ["admitted", 0];
    }
    if (isAgain || !window.isLeased(time.now)) {
      onRefused(key);
      return ["refused", 0];
    }
    if (!window.recall(time.now)) return ["recalled", 0];
    this.recalls += 1;
    const newsMs = workers * terms.newsMs;
    time.schedule(() => onRecall(key), newsMs);
    return ["recalled", newsMs];
  }

  #run(serviceMs: () => number, run = (): void => undefined): void {
    this.#server.arrive({ serviceMs, run, fail: () => undefined });
  }

  #windowOf(key: number): LeasedWindow {
    return (this.#windows[key] ??= new LeasedWindow(this.#options.limitOf(key)));
  }
}
