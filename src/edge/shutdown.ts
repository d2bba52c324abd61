/** For callers to read why their answers end. */
const lastWordsMs = 1_000;
/** For calls that were ended or cut to close their accounts. */
const settleTimeoutMs = 2_000;

export interface DrainSteps {
  /** How many requests are open, and calls that go on without one. */
  readonly openCalls: () => number;
  /** Whether new calls are still served for a while, so that balancers learn that none should come. */
  readonly isAnnounced: boolean;
  /** How long that is. */
  readonly preStopMs: number;
  /** How long open calls may go on once new ones are refused. */
  readonly drainTimeoutMs: number;
  /** Ends the calls that still run. */
  readonly endCalls: () => void;
}

/** How far a process is on its way out: first it says so, then it refuses, then it ends. */
export class Shutdown {
  #stage: "running" | "announced" | "refusing" = "running";

  /** Not ready any more; every answer closes its connection. */
  get hasBegun(): boolean {
    return this.#stage !== "running";
  }

  /** New calls are refused. */
  get isRefusing(): boolean {
    return this.#stage === "refusing";
  }

  /** Refuses from now on, without waiting for anything. */
  refuse(): void {
    this.#stage = "refusing";
  }

  /** Resolves when nothing is open any more, or was ended for its time was up. Runs once. */
  async drain(steps: DrainSteps): Promise<void> {
    if (this.hasBegun) return;
    this.#stage = "announced";
    // Connections that are open, and balancers that poll, need a moment to go elsewhere.
    if (steps.isAnnounced && steps.preStopMs > 0) await Bun.sleep(steps.preStopMs);
    this.refuse();
    await untilIdle(steps.openCalls, steps.drainTimeoutMs);
    steps.endCalls();
    await untilIdle(steps.openCalls, lastWordsMs);
  }

  /** Resolves when every account is closed. */
  settle(openAccounts: () => number): Promise<void> {
    return untilIdle(openAccounts, settleTimeoutMs);
  }
}

const pollMs = 20;

/** Waits until no call is open any more, at most so long. */
async function untilIdle(openCalls: () => number, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (openCalls() > 0 && performance.now() < deadline) await Bun.sleep(pollMs);
}
