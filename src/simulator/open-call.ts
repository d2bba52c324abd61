import type { Frame } from "./frame.ts";
import type { TruthEntry } from "./truth-log.ts";

export type CallDetails = Pick<
  TruthEntry,
  "model" | "kind" | "status" | "promptTokens" | "isStreamed" | "fault"
>;

/** A call while it runs. It ends once, however many parts of the server see the end. */
export class OpenCall {
  readonly id: string;
  readonly #requestId: string | null;
  readonly #startedAt: number;
  readonly #onEnd: (entry: Omit<TruthEntry, "endedAt">) => void;
  #details: CallDetails;
  #completionTokens = 0;
  #hasUsage = false;
  #isEnded = false;

  constructor(
    beginning: Pick<TruthEntry, "id" | "kind" | "requestId" | "startedAt">,
    onEnd: (entry: Omit<TruthEntry, "endedAt">) => void,
  ) {
    this.id = beginning.id;
    this.#requestId = beginning.requestId;
    this.#startedAt = beginning.startedAt;
    this.#onEnd = onEnd;
    this.#details = {
      model: "",
      kind: beginning.kind,
      status: 0,
      promptTokens: 0,
      isStreamed: false,
      fault: "ok",
    };
  }

  update(details: Partial<CallDetails>): void {
    this.#details = { ...this.#details, ...details };
  }

  countSent({ tokens, hasUsage = false }: Omit<Frame, "data">): void {
    this.#completionTokens += tokens;
    this.#hasUsage ||= hasUsage;
  }

  end(clientLeft: boolean): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#onEnd({
      ...this.#details,
      id: this.id,
      completionTokens: this.#completionTokens,
      hasUsage: this.#hasUsage,
      clientLeft,
      requestId: this.#requestId,
      startedAt: this.#startedAt,
    });
  }
}
