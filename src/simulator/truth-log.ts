import type { FaultMode } from "./faults/fault-mode.ts";

/** What really happened to one call, to compare with a gateway's usage records. */
export interface TruthEntry {
  readonly id: string;
  readonly model: string;
  readonly kind: "chat" | "embeddings" | "models" | "count-tokens";
  /** The status that was sent; 0 if the connection was closed before. */
  readonly status: number;
  readonly promptTokens: number;
  /** Tokens that were handed to the connection, not planned ones. */
  readonly completionTokens: number;
  readonly isStreamed: boolean;
  /** Whether the usage was sent to the caller. */
  readonly hasUsage: boolean;
  /** The caller closed the connection before the end of the answer. */
  readonly clientLeft: boolean;
  readonly fault: FaultMode;
  /** The `x-request-id` that came with the call. */
  readonly requestId: string | null;
  /** The word after `mark:` in the body. */
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
