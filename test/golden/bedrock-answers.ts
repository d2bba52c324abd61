import { eventFrame } from "../../simulator/bedrock/event-frames.ts";
import type { Piece } from "./scripted-upstream.ts";

/** Frames as the provider's models send them, each beside the chunks that its caller gets for it. */

/** One frame of an answer, and what stands in the caller's stream because of it. */
export interface Step {
  /** Says where a stream stands once the frame has come. */
  readonly at: string;
  readonly frame: Piece;
  /** Whole events of the stream, most often one or none. */
  readonly seen: string;
}

/** How a family says what it thinks: signed or hidden blocks, or words that nobody signed. */
export type Thoughts = "signed" | "unsigned" | "none";

export interface Counts {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadInputTokens?: number;
  readonly cacheWriteInputTokens?: number;
}

/** Puts an answer of Converse's together, block by block. */
export class Answer {
  readonly #alias: string;
  readonly #steps: Step[] = [];
  #isBegun = false;
  #held = "";
  #block = 0;

  constructor(alias: string) {
    this.#alias = alias;
    this.#add("messageStart", { role: "assistant", p: "abcdefgh" });
  }

  get steps(): readonly Step[] {
    return this.#steps;
  }

  /** A block of text has no start of its own, and padding that nobody is to see. */
  text(...pieces: readonly string[]): this {
    for (const text of pieces) {
      this.#delta({ text }, this.#chunk(`"content":${JSON.stringify(text)}`));
    }
    return this.#endBlock();
  }

  /** Text that may not be part of the answer: the caller gets it, if at all, before a call. */
  heldText(...pieces: readonly string[]): this {
    for (const text of pieces) this.#delta({ text }, "");
    this.#held += pieces.join("");
    return this.#endBlock();
  }

  /** The call of a tool whose input is the answer. */
  answerCall({ id, name, input }: ToolCall): this {
    this.#held = "";
    this.#startCall(id, name, "");
    for (const text of ["", ...input]) {
      const seen = text === "" ? "" : this.#chunk(`"content":${JSON.stringify(text)}`);
      this.#delta({ toolUse: { input: text } }, seen);
    }
    return this.#endBlock();
  }

  /** Text that the caller gets in other pieces, or less of; `seen` has a list for each piece. */
  cutText(pieces: readonly string[], seen: readonly (readonly string[])[]): this {
    for (const [index, text] of pieces.entries()) {
      const words = seen[index] ?? [];
      const chunks = words.map((word) => this.#chunk(`"content":${JSON.stringify(word)}`));
      this.#delta({ text }, chunks.join(""));
    }
    return this;
  }

  /** The caller gets it again, sealed and whole, once it is. */
  signedThought(pieces: readonly string[], signature: string): this {
    for (const text of pieces) this.#think(text);
    this.#delta({ reasoningContent: { signature } }, "");
    const text = JSON.stringify(pieces.join(""));
    const inside = `"type":"reasoning.text","text":${text},"signature":"SEAL.${signature}"`;
    return this.#endBlock(this.#detail(inside));
  }

  hiddenThought(redactedContent: string): this {
    this.#delta({ reasoningContent: { redactedContent } }, "");
    const inside = `"type":"reasoning.encrypted","data":"SEAL.${redactedContent}"`;
    return this.#endBlock(this.#detail(inside));
  }

  unsignedThought(...pieces: readonly string[]): this {
    for (const text of pieces) this.#think(text);
    return this.#endBlock();
  }

  /** The first piece of an input is empty; a tool without arguments gets no other. */
  call(index: number, { id, name, input }: ToolCall): this {
    const released =
      this.#held === "" ? "" : this.#chunk(`"content":${JSON.stringify(this.#held)}`);
    this.#held = "";
    const header = headerOf(index, id, name);
    const opening = this.#isBegun
      ? this.#chunk(`"tool_calls":[${header}]`)
      : this.#opening(`"content":null,"tool_calls":[${header}],"refusal":null`);
    this.#startCall(id, name, released + opening);
    const piece = (text: string): string =>
      this.#chunk(`"tool_calls":[${argumentsOf(index, text)}]`);
    for (const text of ["", ...input]) {
      this.#delta({ toolUse: { input: text } }, text === "" ? "" : piece(text));
    }
    return this.#endBlock(input.length === 0 ? piece("{}") : "");
  }

  /** The finish is told with the counts behind it, when nothing can go wrong any more. */
  end(stopReason: string, finish: string, counts: Counts, metadata: object = {}): this {
    this.#add("messageStop", { stopReason });
    const {
      inputTokens,
      outputTokens,
      cacheReadInputTokens = 0,
      cacheWriteInputTokens = 0,
    } = counts;
    const totalTokens = inputTokens + outputTokens + cacheReadInputTokens + cacheWriteInputTokens;
    const seen = this.#chunk("", finish) + this.#usage(counts, totalTokens) + "data: [DONE]\n\n";
    const usage = { ...counts, totalTokens };
    this.#add("metadata", { usage, metrics: { latencyMs: 12 }, ...metadata }, seen);
    return this;
  }

  #startCall(toolUseId: string, name: string, seen: string): void {
    const body = { contentBlockIndex: this.#block, start: { toolUse: { toolUseId, name } } };
    this.#add("contentBlockStart", body, seen);
  }

  #think(text: string): void {
    const chunk = this.#chunk(`"reasoning_content":${JSON.stringify(text)}`);
    this.#delta({ reasoningContent: { text } }, chunk);
  }

  #detail(inside: string): string {
    const place = `"format":"anthropic-claude-v1","index":${this.#block}`;
    return this.#chunk(`"reasoning_details":[{${inside},${place}}]`);
  }

  #endBlock(seen = ""): this {
    this.#add("contentBlockStop", { contentBlockIndex: this.#block }, seen);
    this.#block += 1;
    return this;
  }

  #delta(delta: object, seen: string): void {
    this.#add("contentBlockDelta", { contentBlockIndex: this.#block, delta, p: "abc" }, seen);
  }

  #add(event: string, body: object, seen = ""): void {
    const at = `${this.#steps.length + 1} ${event} ${JSON.stringify(body).slice(0, 80)}`;
    this.#steps.push({ at, frame: eventFrame(event, JSON.stringify(body)), seen });
  }

  #chunk(delta: string, finish = "null"): string {
    const role = this.#isBegun ? "" : this.#opening('"content":"","refusal":null');
    return `${role}${chunkOf(this.#alias, delta, finish)}`;
  }

  #opening(fields: string): string {
    this.#isBegun = true;
    return chunkOf(this.#alias, `"role":"assistant",${fields}`, "null");
  }

  #usage(counts: Counts, totalTokens: number): string {
    return usageChunk(this.#alias, {
      prompt: totalTokens - counts.outputTokens,
      completion: counts.outputTokens,
      read: counts.cacheReadInputTokens ?? 0,
      written: counts.cacheWriteInputTokens ?? 0,
    });
  }
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** Pieces of JSON; none for a tool without arguments. */
  readonly input: readonly string[];
}

export const headOf = (alias: string): string =>
  `data: {"id":"ID","object":"chat.completion.chunk","created":0,"model":"${alias}",` +
  `"choices":`;

/** A chunk of a stream that ends with its usage; `finish` is JSON, and fields behind it. */
export const chunkOf = (alias: string, delta: string, finish = "null"): string =>
  `${headOf(alias)}[{"index":0,"delta":{${delta}},"logprobs":null,"finish_reason":${finish}}],` +
  `"usage":null}\n\n`;

export interface ToldCounts {
  readonly prompt: number;
  readonly completion: number;
  readonly read: number;
  readonly written: number;
}

export function usageChunk(alias: string, told: ToldCounts): string {
  const written = told.written === 0 ? "" : `"cache_write_tokens":${told.written},`;
  return (
    `${headOf(alias)}[],"usage":{"prompt_tokens":${told.prompt},` +
    `"completion_tokens":${told.completion},"total_tokens":${told.prompt + told.completion},` +
    `"prompt_tokens_details":{"cached_tokens":${told.read},${written}"audio_tokens":0},` +
    `"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,` +
    `"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}\n\n`
  );
}

export const headerOf = (index: number, id: string, name: string): string =>
  `{"index":${index},"id":"${id}","type":"function","function":{"name":"${name}","arguments":""}}`;

export const argumentsOf = (index: number, text: string): string =>
  `{"index":${index},"function":{"arguments":${JSON.stringify(text)}}}`;
