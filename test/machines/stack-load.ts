/** One call of a load. */
export interface StackCall {
  /** Milliseconds since the load began. */
  readonly atMs: number;
  readonly status: number;
  readonly latencyMs: number;
  /** Empty when nothing answered. */
  readonly requestId: string;
  /** Why it failed, for messages. */
  readonly failure?: string;
}

/** Makes one call. Rejects when nothing answers. */
export type MakeCall = (
  url: string,
  key: string,
) => Promise<Pick<StackCall, "status" | "requestId" | "failure">>;

export interface StackLoadOptions {
  readonly url: string;
  /** Calls take turns with these keys. */
  readonly keys: readonly string[];
  readonly perSecond: number;
  /** Default: embeddings. */
  readonly call?: MakeCall;
  /** Most calls under way; more are skipped, so that a slow machine is not overloaded. */
  readonly mostAtOnce?: number;
}

const tickMs = 5;

/** Calls at a fixed pace until it is stopped. */
export class StackLoad {
  readonly calls: StackCall[] = [];
  readonly #options: StackLoadOptions;
  readonly #running = new Set<Promise<void>>();
  readonly startedAt = performance.now();
  readonly #driving: Promise<void>;
  #isOver = false;
  #turn = 0;

  constructor(options: StackLoadOptions) {
    this.#options = options;
    this.#driving = this.#drive();
  }

  get elapsedMs(): number {
    return performance.now() - this.startedAt;
  }

  /** Resolves when the last call has ended. */
  async stop(): Promise<readonly StackCall[]> {
    this.#isOver = true;
    await this.#driving;
    await Promise.all(this.#running);
    return this.calls;
  }

  /** How many calls began in a span of the load's time, by status. */
  statuses(fromMs = 0, untilMs = Number.POSITIVE_INFINITY): Record<number, number> {
    const counts: Record<number, number> = {};
    for (const { atMs, status } of this.calls) {
      if (atMs >= fromMs && atMs < untilMs) counts[status] = (counts[status] ?? 0) + 1;
    }
    return counts;
  }

  async #drive(): Promise<void> {
    const { perSecond, mostAtOnce = 500 } = this.#options;
    for (let due = 0; !this.#isOver; await Bun.sleep(tickMs)) {
      for (; due * 1_000 <= this.elapsedMs * perSecond; due += 1) {
        if (this.#running.size >= mostAtOnce) continue;
        const sent = this.#send().then(() => void this.#running.delete(sent));
        this.#running.add(sent);
      }
    }
  }

  async #send(): Promise<void> {
    const { url, keys, call = embed } = this.#options;
    const key = keys[(this.#turn += 1) % keys.length] ?? "";
    const atMs = this.elapsedMs;
    const made = await call(url, key).catch(nothing);
    this.calls.push({ ...made, atMs, latencyMs: this.elapsedMs - atMs });
  }
}

function nothing(error: unknown): Pick<StackCall, "status" | "requestId" | "failure"> {
  return { status: 0, requestId: "", failure: String(error) };
}

/** One embedding call. Rejects when nothing answers. */
export async function embed(url: string, key: string, keepsConnection = true) {
  const response = await fetch(`${url}/v1/embeddings`, {
    method: "POST",
    ...(!keepsConnection && { keepalive: false }),
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "embed-text-v2", input: `mark:${newMark()} hi` }),
  });
  const text = await response.text();
  const { status } = response;
  const requestId = response.headers.get("x-request-id") ?? "";
  return { status, requestId, ...(status !== 200 && { failure: text }) };
}

/** By which a call is known to the upstream. */
export function newMark(): string {
  return crypto.randomUUID().replaceAll("-", "");
}

/** The most calls that were admitted and begun in any 60 seconds. */
export function mostAdmitted(calls: readonly StackCall[]): number {
  const times = calls.filter(({ status }) => status === 200).map(({ atMs }) => atMs);
  times.sort((one, other) => one - other);
  let most = 0;
  let first = 0;
  for (const [index, time] of times.entries()) {
    while ((times[first] ?? time) <= time - 60_000) first += 1;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

/**
 * The most calls that a limit has admitted in 60 seconds. Counts only those that began and ended in
 * them, because the limit decided at a time between.
 */
export function mostWithinMinute(calls: readonly StackCall[]): number {
  const admitted = calls.filter(({ status }) => status === 200);
  const counts = admitted.map(({ atMs: from }) => {
    const isWithin = ({ atMs, latencyMs }: StackCall) =>
      atMs >= from && atMs + latencyMs <= from + 60_000;
    return admitted.filter(isWithin).length;
  });
  return Math.max(0, ...counts);
}
