import type { Clock } from "./time.ts";
import type { ServerBehaviour } from "./openai/profiles.ts";
import type { BedrockService } from "./bedrock/service.ts";
import type { Fault, FaultChooser, FaultMode } from "./faults/fault-modes.ts";
import type { Frame, Reply } from "./reply.ts";

/** The reply to a call and its fault. */
export interface Plan {
  readonly reply: Reply;
  readonly fault: Fault;
}

/** What both wires need to plan a call. */
export interface PlanParts {
  readonly clock: Clock;
  readonly faults: FaultChooser;
  /** Keys for OpenAI's wire. Undefined: any. */
  readonly apiKeys: ReadonlySet<string> | undefined;
  /** For models whose names do not contain one. Undefined: no limit. */
  readonly contextWindow: number | undefined;
  /** Of the chat wire, for models whose names do not contain one. */
  readonly server: ServerBehaviour;
  readonly bedrock: BedrockService;
}

export interface IncomingCall {
  readonly request: Request;
  readonly call: OpenCall;
}

type EndedCall = Omit<TruthEntry, "endedAt">;

/** A running call. Several parts of the server report its end; only the first report counts. */
export class OpenCall {
  readonly id: string;
  readonly #onEnd: (entry: EndedCall) => void;
  #entry: EndedCall;
  #isEnded = false;

  constructor(
    beginning: Pick<TruthEntry, "id" | "kind" | "requestId" | "startedAt">,
    onEnd: (entry: EndedCall) => void,
  ) {
    this.id = beginning.id;
    this.#onEnd = onEnd;
    const unknown = { model: "", status: 0, promptTokens: 0, completionTokens: 0, mark: null };
    const facts = { isStreamed: false, hasUsage: false, clientLeft: false, fault: "ok" } as const;
    this.#entry = { ...beginning, ...unknown, ...facts };
  }

  update(details: Partial<EndedCall>): void {
    this.#entry = { ...this.#entry, ...details };
  }

  countSent({ tokens, hasUsage = false }: Omit<Frame, "data">): void {
    const { completionTokens, hasUsage: had } = this.#entry;
    this.update({ completionTokens: completionTokens + tokens, hasUsage: had || hasUsage });
  }

  end(clientLeft: boolean): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#onEnd({ ...this.#entry, clientLeft });
  }
}

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

/** The word after `mark:` in any text of a request; identifies the request in the truth log. */
export function markOf(body: string): string | null {
  return /mark:([\w-]{1,64})/.exec(body)?.[1] ?? null;
}
