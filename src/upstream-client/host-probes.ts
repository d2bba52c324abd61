import type { Clock } from "../domain/clock.ts";
import { hasSettledWithin } from "../domain/waiting/wait.ts";

/** Asks whether the host of a URL accepts connections. Times are monotonic milliseconds. */
interface HostQuestion {
  readonly url: string;
  /** An answer of the host since then counts. */
  readonly since: number;
  /** The deadline for the answer. */
  readonly until: number;
}

/** Opens its own connection; resolves to false at the timeout, never earlier. */
export type ConnectProbe = (url: string, timeoutMs: number) => Promise<boolean>;

/** Probes whether hosts accept connections. Attempts at one host share its probes. */
export class HostProbes {
  readonly #probe: ConnectProbe;
  readonly #clock: Pick<Clock, "monotonic" | "schedule">;
  /** When hosts have last answered, and the probes that run, by origin. */
  readonly #answeredAt = new Map<string, number>();
  readonly #running = new Map<string, Promise<void>>();

  constructor(probe: ConnectProbe, clock: Pick<Clock, "monotonic" | "schedule">) {
    this.#probe = probe;
    this.#clock = clock;
  }

  /** Resolves to true once the host has answered, to false at `until`. */
  async canConnect({ url, since, until }: HostQuestion): Promise<boolean> {
    const { origin } = new URL(url);
    for (;;) {
      if ((this.#answeredAt.get(origin) ?? Number.NEGATIVE_INFINITY) >= since) return true;
      const leftMs = until - this.#clock.monotonic();
      if (leftMs <= 0) return false;
      const probe = this.#running.get(origin) ?? this.#start(origin, until - since);
      await hasSettledWithin(probe, leftMs, this.#clock);
    }
  }

  /** It lasts as long as the longest wait among the attempts that may share it. */
  async #start(origin: string, timeoutMs: number): Promise<void> {
    // A probe that fails to run is no evidence against the host.
    const probing = this.#probe(origin, timeoutMs).catch(() => true);
    const running = probing.then((hasAnswered) => {
      this.#running.delete(origin);
      if (hasAnswered) this.#answeredAt.set(origin, this.#clock.monotonic());
    });
    this.#running.set(origin, running);
    return running;
  }
}
