import type { FaultMode } from "./faults/fault-mode.ts";

/** What really happened to one call, to hold a gateway's own account against. */
export interface TruthEntry {
  readonly id: string;
  readonly model: string;
  readonly kind: "chat" | "embeddings" | "models" | "count-tokens";
  /** The status that was sent; 0 when the connection was closed before one was. */
  readonly status: number;
  readonly promptTokens: number;
  /** Tokens that were handed to the connection, not those that were planned. */
  readonly completionTokens: number;
  readonly isStreamed: boolean;
  /** Whether the caller was told the usage. */
  readonly hasUsage: boolean;
  /** The caller closed the connection before the answer had ended. */
  readonly clientLeft: boolean;
  readonly fault: FaultMode;
  /** The `x-request-id` that came with the call. */
  readonly requestId: string | null;
  /** What the body calls itself: the word behind `mark:` somewhere in it. */
  readonly mark: string | null;
  /** Wall clock, milliseconds since the Unix epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
}

/** The newest calls, oldest first, up to a limit. */
export class TruthLog {
  readonly #limit: number;
  #entries: TruthEntry[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  get entries(): readonly TruthEntry[] {
    return this.#entries.slice(-this.#limit);
  }

  get size(): number {
    return Math.min(this.#entries.length, this.#limit);
  }

  add(entry: TruthEntry): void {
    this.#entries.push(entry);
    // Cutting at twice the limit makes the cut cheap on average.
    if (this.#entries.length >= this.#limit * 2) this.#entries = this.#entries.slice(-this.#limit);
  }

  clear(): void {
    this.#entries = [];
  }
}
