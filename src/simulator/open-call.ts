import type { Frame } from "./frame.ts";
import type { TruthEntry } from "./truth-log.ts";

export type CallDetails = Pick<
  TruthEntry,
  "model" | "kind" | "status" | "promptTokens" | "isStreamed" | "fault" | "mark"
>;

export type EndedCall = Omit<TruthEntry, "endedAt">;

/** A running call. Several parts of the server report its end; only the first report counts. */
export class OpenCall {
  readonly id: string;
  readonly #requestId: string | null;
  readonly #startedAt: number;
  readonly #listeners: ((entry: EndedCall) => void)[];
  #details: CallDetails;
  #completionTokens = 0;
  #hasUsage = false;
  #isEnded = false;

  constructor(
    beginning: Pick<TruthEntry, "id" | "kind" | "requestId" | "startedAt">,
    onEnd: (entry: EndedCall) => void,
  ) {
    this.id = beginning.id;
    this.#requestId = beginning.requestId;
    this.#startedAt = beginning.startedAt;
    this.#listeners = [onEnd];
    this.#details = {
      model: "",
      kind: beginning.kind,
      status: 0,
      promptTokens: 0,
      isStreamed: false,
      fault: "ok",
      mark: null,
    };
  }

  update(details: Partial<CallDetails>): void {
    this.#details = { ...this.#details, ...details };
  }

  countSent({ tokens, hasUsage = false }: Omit<Frame, "data">): void {
    this.#completionTokens += tokens;
    this.#hasUsage ||= hasUsage;
  }

  whenEnded(listener: (entry: EndedCall) => void): void {
    this.#listeners.push(listener);
  }

  end(clientLeft: boolean): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const entry: EndedCall = {
      ...this.#details,
      id: this.id,
      completionTokens: this.#completionTokens,
      hasUsage: this.#hasUsage,
      clientLeft,
      requestId: this.#requestId,
      startedAt: this.#startedAt,
    };
    for (const listener of this.#listeners) listener(entry);
  }
}
