import type { ChatEvent } from "../domain/chat/answer.ts";
import type { GatewayError } from "../domain/errors/gateway-error.ts";
import type { TokenUsage } from "../domain/usage/usage.ts";

/** What the writers of answers are told of their call. */
export interface AnswerOptions {
  /** Of the answer, in the form of its wire. */
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  /** The name that the caller asked for, or the alias of the fallback that served. */
  readonly model: string;
}

export interface StreamOptions extends AnswerOptions {
  /** The time in Unix seconds. */
  readonly now: () => number;
  /** The input in tokens as far as it is known: counted, or as admission estimated it. */
  readonly inputTokens: () => number;
}

export type EventOf<Type extends ChatEvent["type"]> = Extract<ChatEvent, { readonly type: Type }>;

/** Writes the frames of one streamed answer in the form of a wire: a method for each event. */
export abstract class StreamWriter {
  /** Written and not taken. */
  protected frames = "";
  protected serviceTier: string | undefined;
  protected hasRefusal = false;
  /** How the answer ended; undefined until it has. */
  protected finish: EventOf<"choice-finish"> | undefined;

  readonly #hasChoices: boolean;

  /** Without choices: only the first is written, because no request of the wire asks for more. */
  constructor(has: { readonly choices: boolean }) {
    this.#hasChoices = has.choices;
  }

  /** The frames of events; empty if they have none. */
  write(events: readonly ChatEvent[]): string {
    for (const event of events) {
      if (this.#hasChoices || !("choice" in event) || event.choice === 0) this.#add(event);
    }
    return this.take();
  }

  /** The end of a whole answer. A promise, which never rejects, only where something is stored. */
  abstract end(usage: TokenUsage): string | Promise<string>;

  /** An empty event, for clients that cannot parse comments. Undefined: only a comment may be sent. */
  abstract keepAlive(): string | undefined;

  /** The end of an answer that fails after its 200 was sent. Undefined: the dialect's error frame. */
  fail(_error: GatewayError): string | undefined {
    return undefined;
  }

  /** The reader left. May be called at any time. */
  cancel(): void {
    return undefined;
  }

  protected take(): string {
    const { frames } = this;
    this.frames = "";
    return frames;
  }

  protected abstract text(event: EventOf<"text-delta">): void;
  protected abstract refusal(event: EventOf<"refusal-delta">): void;
  protected abstract thought(event: EventOf<"reasoning-delta">): void;
  protected abstract thoughtEnd(event: EventOf<"reasoning-block">): void;
  protected abstract callStart(event: EventOf<"tool-call-start">): void;
  protected abstract callDelta(event: EventOf<"tool-call-delta">): void;
  protected abstract choiceEnd(event: EventOf<"choice-finish">): void;

  /** The call of the deprecated `functions` is one without an id in the wires that have no other. */
  protected functionStart({ choice, name }: EventOf<"function-call-start">): void {
    const call = { choice, call: onlyCall, id: "", kind: "function", name } as const;
    this.callStart({ type: "tool-call-start", ...call });
  }

  protected functionDelta({ choice, arguments: text }: EventOf<"function-call-delta">): void {
    this.callDelta({ type: "tool-call-delta", choice, call: onlyCall, arguments: text });
  }

  protected answerStart({ serviceTier }: EventOf<"answer-start">): void {
    this.serviceTier = serviceTier;
  }

  protected usageReport(_event: EventOf<"usage-report">): void {
    return undefined;
  }

  #add(event: ChatEvent): void {
    switch (event.type) {
      case "text-delta":
        return this.text(event);
      case "refusal-delta":
        this.hasRefusal = true;
        return this.refusal(event);
      case "reasoning-delta":
        return this.thought(event);
      case "reasoning-block":
        return this.thoughtEnd(event);
      case "tool-call-start":
        return this.callStart(event);
      case "tool-call-delta":
        return this.callDelta(event);
      case "function-call-start":
        return this.functionStart(event);
      case "function-call-delta":
        return this.functionDelta(event);
      case "choice-finish":
        this.finish = event;
        return this.choiceEnd(event);
      case "answer-start":
        return this.answerStart(event);
      case "usage-report":
        return this.usageReport(event);
      case "usage-start":
    }
  }
}

/** Less than the number of any other call. */
const onlyCall = -1;
