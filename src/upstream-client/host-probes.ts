import type { Clock } from "../domain/clock.ts";
import { hasSettledWithin } from "../domain/waiting/wait.ts";

/** Asks whether the host of a URL accepts connections. Times are monotonic milliseconds. */
export interface HostQuestion {
  readonly url: string;
  /** A probe that started at this time or later may be reused. */
  readonly since: number;
  /** The deadline for the answer. */
  readonly until: number;
}

/** Opens its own connection; resolves to false at the timeout, never earlier. */
export type ConnectProbe = (url: string, timeoutMs: number) => Promise<boolean>;

interface Host {
  /** Start of the newest probe that the host answered. */
  answeredAt: number;
  probe: RunningProbe | undefined;
}

interface RunningProbe {
  readonly startedAt: number;
  readonly end: Promise<void>;
}

/** Limit on remembered hosts, well above what a configuration has. */
const mostHosts = 1_000;

/**
 * Probes whether hosts accept connections. Attempts at one host share its probes: each uses a probe
 * that started after the attempt, so one starts per half connect timeout at most.
 */
export class HostProbes {
  readonly #probe: ConnectProbe;
  readonly #clock: Pick<Clock, "monotonic" | "schedule">;
  readonly #hosts = new Map<string, Host>();

  constructor(probe: ConnectProbe, clock: Pick<Clock, "monotonic" | "schedule">) {
    this.#probe = probe;
    this.#clock = clock;
  }

  /** Resolves to true once the host has answered, to false at `until`. */
  async canConnect({ url, since, until }: HostQuestion): Promise<boolean> {
    const host = this.#hostOf(url);
    for (;;) {
      if (host.answeredAt >= since) return true;
      const now = this.#clock.monotonic();
      if (now >= until) return false;
      if (host.probe === undefined || host.probe.startedAt < since) {
        // It lasts as long as the longest wait among the attempts that may share it.
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
    // A probe that fails to run is no evidence against the host.
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
