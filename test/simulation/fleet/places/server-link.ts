import type { Random } from "../../random.ts";
import type { VirtualTime } from "../../virtual-time.ts";
import type { SharedServer } from "../shared-server.ts";

export interface ServerLinkOptions {
  readonly time: VirtualTime;
  readonly server: SharedServer;
  readonly random: Random;
  /** Mean time on the network, one way. */
  readonly networkMs: number;
  readonly timeoutMs: number;
  /** Whether a connection to the server is refused at once. */
  readonly isRefused: () => boolean;
}

/** Failures in a row after which nothing is sent, and the pauses between probes. */
const mostFailures = 5;
const firstProbeMs = 100;
const longestProbeMs = 500;
const connectTimeoutMs = 2_000;
/** Of the server: it takes a connection. */
const connectMs = 0.05;

/** The connection of a worker to the server: a model of `server-line.ts`. */
export class ServerLink {
  readonly #options: ServerLinkOptions;
  readonly #changed: (() => void)[] = [];
  /** Fails what is under way when the connection is gone. */
  readonly #pending = new Set<() => void>();
  #isUp = true;
  #isDead = false;
  #failures = 0;
  #probeMs = firstProbeMs;
  #lastArrivalMs = 0;
  #failed = 0;

  constructor(options: ServerLinkOptions) {
    this.#options = options;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Commands without an answer. */
  get failed(): number {
    return this.#failed;
  }

  onChange(changed: () => void): void {
    this.#changed.push(changed);
  }

  /** `execute` runs at the server, and returns its answer and how long that takes. */
  async ask<Answer>(execute: () => readonly [Answer, number]): Promise<Answer> {
    if (!this.#isUp) {
      this.#failed += 1;
      throw new Error("the server is away");
    }
    try {
      const answer = await this.#exchange(execute, this.#options.timeoutMs);
      this.#failures = 0;
      return answer;
    } catch (error) {
      this.#failed += 1;
      if (this.#isUp) this.#count();
      throw error;
    }
  }

  /** The worker has died. */
  die(): void {
    this.#isDead = true;
    this.#isUp = false;
  }

  #exchange<Answer>(execute: () => readonly [Answer, number], timeoutMs: number): Promise<Answer> {
    const { time, server } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const fail = (): void => {
      this.#pending.delete(fail);
      reject(new Error("no answer"));
    };
    this.#pending.add(fail);
    const cancel = time.schedule(fail, timeoutMs);
    let answer: Answer;
    const serviceMs = (): number => {
      const [given, takesMs] = execute();
      answer = given;
      return takesMs;
    };
    const run = (): void => {
      time.schedule(() => {
        cancel();
        if (this.#pending.delete(fail)) resolve(answer);
      }, this.#networkMs());
    };
    // Commands of a connection arrive in order.
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, time.now + this.#networkMs());
    const lost = (): void => {
      this.#lost();
      fail();
    };
    const delayMs = this.#lastArrivalMs - time.now;
    time.schedule(() => server.arrive({ serviceMs, run, fail: lost }), delayMs);
    return promise;
  }

  #count(): void {
    this.#failures += 1;
    if (this.#failures >= mostFailures) this.#lost();
  }

  /** The connection is gone. */
  #lost(): void {
    if (!this.#isUp) return;
    this.#isUp = false;
    for (const fail of this.#pending) fail();
    for (const changed of this.#changed) changed();
    this.#probeLater();
  }

  #probeLater(): void {
    this.#options.time.schedule(() => void this.#probe(), this.#probeMs);
    this.#probeMs = Math.min(this.#probeMs * 2, longestProbeMs);
  }

  async #probe(): Promise<void> {
    if (this.#isDead) return;
    try {
      if (this.#options.isRefused()) throw new Error("refused");
      await this.#exchange(() => [undefined, connectMs], connectTimeoutMs);
    } catch {
      return this.#probeLater();
    }
    if (this.#isDead) return;
    this.#isUp = true;
    this.#failures = 0;
    this.#probeMs = firstProbeMs;
    for (const changed of this.#changed) changed();
  }

  #networkMs(): number {
    return -this.#options.networkMs * Math.log(1 - this.#options.random.next());
  }
}
