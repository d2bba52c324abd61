import type { AnswerReasoning, ChatEvent, ExtraFields } from "../../domain/chat/answer.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import {
  CallBlock,
  frame,
  RedactedBlock,
  type StreamBlock,
  TextBlock,
  ThoughtBlock,
} from "./stream-blocks.ts";
import {
  type MessageOptions,
  mintedId,
  stopFields,
  tierField,
  writeUsage,
} from "./write-answer.ts";

export interface MessageStreamOptions extends MessageOptions {
  /** The estimated input, for the start of an answer whose upstream counts at the end only. */
  readonly inputTokens: () => number;
}

/**
 * Writes events as the frames of a Messages stream: blocks in the order in which the model began
 * them, one at a time, since clients do not expect two open ones. Reference: Anthropic's page on
 * streaming, and what its SDKs and Claude Code do with each gap.
 */
export class MessageStreamWriter {
  readonly #options: MessageStreamOptions;
  /** The first is the block that is open, or opens next; the others wait for its end. */
  readonly #blocks: StreamBlock[] = [];
  #index = 0;
  #hasStarted = false;
  #usage: TokenUsage | undefined;
  #serviceTier: string | undefined;
  #finish: Extract<ChatEvent, { type: "choice-finish" }> | undefined;
  #calls = false;
  #refuses = false;

  constructor(options: MessageStreamOptions) {
    this.#options = options;
  }

  write(events: readonly ChatEvent[]): string {
    let frames = "";
    if (!this.#hasStarted) {
      for (const event of events) if (event.type === "usage-start") this.#usage = event.usage;
      frames = this.#start();
    }
    for (const event of events) frames += this.#writeEvent(event);
    return frames;
  }

  keepAlive(): string {
    return frame("ping", "");
  }

  /** The end of a whole answer. */
  end(usage: TokenUsage): string {
    this.#usage ??= usage;
    const start = this.#hasStarted ? "" : this.#start();
    const ending = stopFields(this.#finish?.finishReason ?? "stop", {
      stopSequence: this.#finish?.stopSequence,
      stopDetails: this.#finish?.stopDetails,
      calls: this.#calls,
      refuses: this.#refuses,
    });
    const counts = { ...writeUsage(usage), ...tierField(this.#serviceTier) };
    const fields = `,"delta":${JSON.stringify(ending)},"usage":${JSON.stringify(counts)}`;
    return start + this.#flush(true) + frame("message_delta", fields) + frame("message_stop", "");
  }

  #start(): string {
    this.#hasStarted = true;
    const { id, model, inputTokens } = this.#options;
    const usage = this.#usage ?? { ...noUsage, inputTokens: inputTokens() };
    const message = {
      id,
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: writeUsage({ ...usage, outputTokens: 0, reasoningTokens: 0 }),
    };
    return frame("message_start", `,"message":${JSON.stringify(message)}`);
  }

  #writeEvent(event: ChatEvent): string {
    // The requests of this wire ask for one choice.
    if ("choice" in event && event.choice !== 0) return "";
    switch (event.type) {
      case "text-delta":
        return this.#text(event.text, event.isStart) + this.#cite(event.extra?.citation);
      case "refusal-delta":
        this.#refuses = true;
        return this.#text(event.text);
      case "reasoning-delta":
        return event.text === "" ? "" : this.#append(this.#thought(), event.text);
      case "reasoning-block":
        return this.#endThought(event.content);
      case "tool-call-start":
        return this.#call(event.call, event);
      case "function-call-start":
        return this.#call(onlyCall, { ...event, id: "", kind: "function" });
      case "tool-call-delta":
        return this.#appendToCall(event.call, event.arguments);
      case "function-call-delta":
        return this.#appendToCall(onlyCall, event.arguments);
      case "choice-finish":
        this.#finish = event;
        return this.#flush(true);
      case "answer-start":
        this.#serviceTier = event.serviceTier;
        return "";
      case "usage-report":
      case "usage-start":
        return "";
    }
  }

  #text(text: string, isStart?: true): string {
    if (text === "") return "";
    const last = this.#blocks.at(-1);
    const isSame = last instanceof TextBlock && isStart !== true;
    return this.#append(isSame ? last : this.#add(new TextBlock()), text);
  }

  #cite(citation: ExtraFields | undefined): string {
    const last = this.#blocks.at(-1);
    if (citation === undefined || !(last instanceof TextBlock)) return "";
    last.citations.push(citation);
    return this.#append(last, "");
  }

  #thought(): StreamBlock {
    const last = this.#blocks.at(-1);
    return last instanceof ThoughtBlock && !last.isWhole ? last : this.#add(new ThoughtBlock());
  }

  #endThought({ text, opaque, isRedacted }: AnswerReasoning): string {
    if (isRedacted === true) {
      this.#add(new RedactedBlock(opaque ?? ""));
      return this.#flush(false);
    }
    const last = this.#blocks.at(-1);
    const isRunning = last instanceof ThoughtBlock && !last.isWhole;
    if (!isRunning && text === "" && opaque === undefined) return "";
    const thought = isRunning ? last : this.#add(new ThoughtBlock(text));
    thought.end(opaque);
    return this.#flush(false);
  }

  #call(call: number, { id, kind, name }: CallStart): string {
    this.#calls = true;
    this.#add(new CallBlock(call, { id, isText: kind === "custom", name }));
    return this.#flush(false);
  }

  /** What comes after the end of its JSON is dropped. */
  #appendToCall(call: number, text: string): string {
    const block = this.#blocks.find((one) => one instanceof CallBlock && one.call === call);
    return block === undefined ? "" : this.#append(block, text);
  }

  #add<Block extends StreamBlock>(block: Block): Block {
    this.#blocks.push(block);
    return block;
  }

  #append(block: StreamBlock, text: string): string {
    block.append(text);
    return block === this.#blocks[0] && this.#blocks.length === 1 && block.isOpen
      ? block.takeDeltas()
      : this.#flush(false);
  }

  /** Ends the blocks that are over and writes what is known of the next; all at the end. */
  #flush(isEnd: boolean): string {
    let frames = "";
    for (;;) {
      const [block] = this.#blocks;
      if (block === undefined) return frames;
      if (!block.isOpen) {
        const minted = mintedId(this.#options.id, this.#index);
        frames += block.open(this.#index, minted);
        this.#index += 1;
      }
      frames += block.takeDeltas();
      if (!isEnd && !block.isOver(this.#blocks.length > 1)) return frames;
      frames += block.close();
      this.#blocks.shift();
    }
  }
}

type CallStart = Pick<Extract<ChatEvent, { type: "tool-call-start" }>, "id" | "kind" | "name">;

/** The deprecated call of `functions`, which has no number. */
const onlyCall = -1;

const noUsage: TokenUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  reasoningTokens: 0,
};
