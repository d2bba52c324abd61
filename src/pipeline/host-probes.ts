import type { Clock } from "../domain/clock.ts";
import { hasSettledWithin } from "./has-settled-within.ts";

/** Whether the host of a URL takes connections. Times are monotonic milliseconds. */
export interface HostQuestion {
  readonly url: string;
  /** A connection that was opened since then is answer enough. */
  readonly since: number;
  /** When the answer must be known. */
  readonly until: number;
}

/** Opens a connection of its own; resolves to false when the time is over, not before. Never rejects. */
export type ConnectProbe = (url: string, timeoutMs: number) => Promise<boolean>;

interface Host {
  answeredAt: number;
  probe: Promise<void> | undefined;
}

/** Hosts that are remembered; the upstreams of a configuration have fewer. */
const mostHosts = 1_000;

/**
 * Asks hosts whether they take connections. The attempts that wait for one host share a probe:
 * one of each host is under way at most, and what it finds is known to all of them.
 */
export class HostProbes {
  readonly #probe: ConnectProbe;
  readonly #clock: Pick<Clock, "monotonic" | "schedule">;
  readonly #hosts = new Map<string, Host>();

  constructor(probe: ConnectProbe, clock: Pick<Clock, "monotonic" | "schedule">) {
    this.#probe = probe;
    this.#clock = clock;
  }

  /** Resolves to true as soon as the host has answered, to false at `until`. Never rejects. */
  async canConnect({ url, since, until }: HostQuestion): Promise<boolean> {
    const host = this.#hostOf(url);
    for (;;) {
      if (host.answeredAt >= since) return true;
      const leftMs = until - this.#clock.monotonic();
      if (leftMs <= 0) return false;
      // Given only what its starter has left, it would end just before the others who wait for it.
      host.probe ??= this.#ask(host, url, until - since);
      await hasSettledWithin(host.probe, leftMs, this.#clock);
    }
  }

  /** Who still waits when it ends starts the next. */
  async #ask(host: Host, url: string, timeoutMs: number): Promise<void> {
    const hasAnswered = await this.#probe(url, timeoutMs);
    host.probe = undefined;
    if (hasAnswered) host.answeredAt = this.#clock.monotonic();
  }

  #hostOf(url: string): Host {
    const { origin } = new URL(url);
    let host = this.#hosts.get(origin);
    if (host === undefined) {
      if (this.#hosts.size >= mostHosts) this.#hosts.clear();
      host = { answeredAt: Number.NEGATIVE_INFINITY, probe: undefined };
      this.#hosts.set(origin, host);
    }
    return host;
  }
}
