import type { ChatEvent } from "../../domain/chat/answer.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { type EventOf, type StreamOptions, StreamWriter } from "../stream-writer.ts";
import { CallBlock, frame, StreamBlock, TextBlock, ThoughtBlock } from "./stream-blocks.ts";
import {
  type MessageOptions,
  mintedId,
  stopFields,
  tierField,
  writeUsage,
} from "./write-answer.ts";

/** The input is told at the start of an answer, also where its upstream counts at the end only. */
export type MessageStreamOptions = MessageOptions & Pick<StreamOptions, "inputTokens">;

/**
 * Writes events as the frames of a Messages stream: blocks in the order in which the model began
 * them, one at a time, since clients do not expect two open ones. Reference: Anthropic's page on
 * streaming, and what its SDKs and Claude Code do with each gap.
 */
export class MessageStreamWriter extends StreamWriter {
  readonly #options: MessageStreamOptions;
  /** The first is the block that is open, or opens next; the others wait for its end. */
  readonly #blocks: StreamBlock[] = [];
  /** Of blocks. */
  #count = 0;
  #hasStarted = false;
  #usage: TokenUsage | undefined;
  #calls = false;

  constructor(options: MessageStreamOptions) {
    super({ choices: false });
    this.#options = options;
  }

  override write(events: readonly ChatEvent[]): string {
    if (!this.#hasStarted) {
      for (const event of events) if (event.type === "usage-start") this.#usage = event.usage;
      this.#start();
    }
    return super.write(events);
  }

  keepAlive(): string {
    return frame("ping", "");
  }

  end(usage: TokenUsage): string {
    this.#usage ??= usage;
    if (!this.#hasStarted) this.#start();
    this.#flush(true);
    const ending = stopFields(this.finish, { calls: this.#calls, refuses: this.hasRefusal });
    const counts = { ...writeUsage(usage), ...tierField(this.serviceTier) };
    const fields = `,"delta":${JSON.stringify(ending)},"usage":${JSON.stringify(counts)}`;
    return this.take() + frame("message_delta", fields) + frame("message_stop", "");
  }

  protected text({ text, isStart, extra }: EventOf<"text-delta">): void {
    if (text !== "") this.#say(text, isStart);
    const last = this.#blocks.at(-1);
    if (extra?.citation === undefined || !(last instanceof TextBlock)) return;
    last.citations.push(extra.citation);
    this.#append(last, "");
  }

  protected refusal({ text }: EventOf<"refusal-delta">): void {
    if (text !== "") this.#say(text);
  }

  protected thought({ text }: EventOf<"reasoning-delta">): void {
    if (text !== "") this.#append(this.#openThought() ?? this.#addThought(), text);
  }

  protected thoughtEnd({ content }: EventOf<"reasoning-block">): void {
    const { text, opaque, isRedacted } = content;
    if (isRedacted === true) {
      const content = { type: "redacted_thinking", data: opaque ?? "" };
      this.#add(new StreamBlock(this.#next(), JSON.stringify(content))).isWhole = true;
    } else {
      const open = this.#openThought();
      if (open === undefined && text === "" && opaque === undefined) return;
      const thought = open ?? this.#addThought();
      if (open === undefined) thought.append(text);
      thought.end(opaque);
    }
    this.#flush(false);
  }

  protected callStart(event: EventOf<"tool-call-start">): void {
    this.#calls = true;
    const index = this.#next();
    const id = event.id === "" ? mintedId(this.#options.id, index) : event.id;
    this.#add(new CallBlock(index, { ...event, id }));
    this.#flush(false);
  }

  /** What comes after the end of its JSON is dropped. */
  protected callDelta({ call, arguments: text }: EventOf<"tool-call-delta">): void {
    const block = this.#blocks.find((one) => one instanceof CallBlock && one.call === call);
    if (block !== undefined) this.#append(block, text);
  }

  protected choiceEnd(): void {
    this.#flush(true);
  }

  #start(): void {
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
    this.frames += frame("message_start", `,"message":${JSON.stringify(message)}`);
  }

  #say(text: string, isStart?: true): void {
    const last = this.#blocks.at(-1);
    const isSame = last instanceof TextBlock && isStart !== true;
    this.#append(isSame ? last : this.#add(new TextBlock(this.#next())), text);
  }

  #addThought(): ThoughtBlock {
    return this.#add(new ThoughtBlock(this.#next()));
  }

  #openThought(): ThoughtBlock | undefined {
    const last = this.#blocks.at(-1);
    return last instanceof ThoughtBlock && !last.isWhole ? last : undefined;
  }

  /** The index of a new block. */
  #next(): number {
    this.#count += 1;
    return this.#count - 1;
  }

  #add<Block extends StreamBlock>(block: Block): Block {
    this.#blocks.push(block);
    return block;
  }

  #append(block: StreamBlock, text: string): void {
    block.append(text);
    const isAlone = block === this.#blocks[0] && this.#blocks.length === 1;
    if (isAlone && block.isOpen) this.frames += block.takeDeltas();
    else this.#flush(false);
  }

  /** Ends the blocks that are over and writes what is known of the next; all at the end. */
  #flush(isEnd: boolean): void {
    for (;;) {
      const [block] = this.#blocks;
      if (block === undefined) return;
      this.frames += (block.isOpen ? "" : block.open()) + block.takeDeltas();
      if (!isEnd && !block.isOver(this.#blocks.length > 1)) return;
      this.frames += block.close();
      this.#blocks.shift();
    }
  }
}

const noUsage: TokenUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  reasoningTokens: 0,
};
