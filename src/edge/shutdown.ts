import { type Reply, textReply } from "./replies/error-reply.ts";

/** Time for callers to read the errors that end their answers. */
const lastWordsMs = 1_000;
/** Time for calls that were ended to settle. */
const settleTimeoutMs = 2_000;

interface DrainSteps {
  /** Number of open requests, and of calls that continue without one. */
  readonly openCalls: () => number;
  /** Whether new calls are served for another `preStopMs`, until balancers stop sending them. */
  readonly isAnnounced: boolean;
  readonly preStopMs: number;
  /** How long open calls may continue once new ones are refused. */
  readonly drainTimeoutMs: number;
  /** Ends the calls that still run. */
  readonly endCalls: () => void;
}

/**
 * The stages of a shutdown: readiness reports it, then new calls are refused, then calls are ended.
 * A process whose successor is serving stays ready while its connections close.
 */
export class Shutdown {
  #stage: "running" | "leaving" | "announced" | "refusing" = "running";

  /** Whether every answer closes its connection, which moves callers to other instances. */
  get closesConnections(): boolean {
    return this.#stage !== "running";
  }

  /** Whether the process is no longer ready. */
  get hasBegun(): boolean {
    return this.isRefusing || this.#stage === "announced";
  }

  get isRefusing(): boolean {
    return this.#stage === "refusing";
  }

  /** Resolves when no connection is left, or after the timeout. */
  async leave(openConnections: () => number, timeoutMs: number): Promise<void> {
    if (this.#stage === "running") this.#stage = "leaving";
    await untilIdle(openConnections, timeoutMs, connectionPollMs);
  }

  /** Refuses new calls at once. */
  refuse(): void {
    this.#stage = "refusing";
  }

  /** Runs once; resolves when no call is open, or the rest was ended after `drainTimeoutMs`. */
  async drain(steps: DrainSteps): Promise<void> {
    if (this.hasBegun) return;
    this.#stage = "announced";
    // Open connections and balancers that poll need time to move to other instances.
    if (steps.isAnnounced && steps.preStopMs > 0) await Bun.sleep(steps.preStopMs);
    this.refuse();
    await untilIdle(steps.openCalls, steps.drainTimeoutMs);
    steps.endCalls();
    await untilIdle(steps.openCalls, lastWordsMs);
  }

  /** Resolves when every call is settled, or after two seconds. */
  settle(unsettledCalls: () => number): Promise<void> {
    return untilIdle(unsettledCalls, settleTimeoutMs);
  }
}

const pollMs = 20;
/** Longer, since counting connections looks at every open file. */
const connectionPollMs = 250;

async function untilIdle(
  countOpen: () => number,
  timeoutMs: number,
  intervalMs = pollMs,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (countOpen() > 0 && performance.now() < deadline) await Bun.sleep(intervalMs);
}

/** `GET /healthz`: the process runs. */
export function health(): Reply {
  return textReply(200, "ok\n");
}

/** `GET /readyz`: the process accepts new calls. The reason for a 503 is for operators. */
export function createReadiness(
  whyNotReady: () => string | undefined,
  howDegraded: () => string | undefined,
): () => Reply {
  return () => {
    const reason = whyNotReady();
    if (reason !== undefined) return textReply(503, `${reason}\n`);
    const lack = howDegraded();
    return textReply(200, lack === undefined ? "ready\n" : `ready, degraded: ${lack}\n`);
  };
}
