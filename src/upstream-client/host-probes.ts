import type { Clock } from "../domain/clock.ts";
import { hasSettledWithin } from "../domain/waiting/has-settled-within.ts";

/** Whether the host of a URL takes connections. Times are monotonic milliseconds. */
export interface HostQuestion {
  readonly url: string;
  /** A connection that was opened since then is answer enough. */
  readonly since: number;
  /** When the answer must be known. */
  readonly until: number;
}

/** Opens a connection of its own; resolves to false when the time is over, and not before. */
export type ConnectProbe = (url: string, timeoutMs: number) => Promise<boolean>;

interface Host {
  /** When the newest probe that was answered had started. */
  answeredAt: number;
  probe: RunningProbe | undefined;
}

interface RunningProbe {
  readonly startedAt: number;
  readonly end: Promise<void>;
}

/** Hosts that are remembered; the upstreams of a configuration have fewer. */
const mostHosts = 1_000;

/**
 * Asks hosts whether they take connections. Attempts at one host share its probes: each relies on
 * one that started after it, so that a new one starts once in half of the connect time at most.
 */
export class HostProbes {
  readonly #probe: ConnectProbe;
  readonly #clock: Pick<Clock, "monotonic" | "schedule">;
  readonly #hosts = new Map<string, Host>();

  constructor(probe: ConnectProbe, clock: Pick<Clock, "monotonic" | "schedule">) {
    this.#probe = probe;
    this.#clock = clock;
  }

  /** Resolves to true when the host has answered, by `until` at the latest, else to false. */
  async canConnect({ url, since, until }: HostQuestion): Promise<boolean> {
    const host = this.#hostOf(url);
    for (;;) {
      if (host.answeredAt >= since) return true;
      const now = this.#clock.monotonic();
      if (now >= until) return false;
      if (host.probe === undefined || host.probe.startedAt < since) {
        // It lasts until the last of those who may share it has waited long enough.
        host.probe = this.#start(host, url, until - since);
      }
      await hasSettledWithin(host.probe.end, until - now, this.#clock);
    }
  }

  #start(host: Host, url: string, timeoutMs: number): RunningProbe {
    const startedAt = this.#clock.monotonic();
    const finish = (hasAnswered: boolean): void => {
      if (host.probe === probe) host.probe = undefined;
      if (hasAnswered) host.answeredAt = Math.max(host.answeredAt, startedAt);
    };
    // A probe that cannot be made says nothing against the host.
    const end = this.#probe(url, timeoutMs).then(finish, () => finish(true));
    const probe = { startedAt, end };
    return probe;
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
