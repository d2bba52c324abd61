import type { ExtraFields } from "../../domain/chat/answer.ts";
import { isWholeInput } from "../../domain/chat/tool-input.ts";
import { writeJsonText } from "../../domain/json-object.ts";
import type { EventOf } from "../stream-writer.ts";

/** An event of a Messages stream; `fields` is JSON behind its type. */
export function frame(type: string, fields: string): string {
  return `event: ${type}\ndata: {"type":"${type}"${fields}}\n\n`;
}

/** A block of the stream. By itself it has nothing but its start. */
export class StreamBlock {
  isOpen = false;
  /** Nothing can come for it any more. */
  isWhole = false;
  protected waiting = "";
  readonly #index: number;
  readonly #content: string;
  readonly #head: string;

  /** `content`: the block as its start has it, as JSON. */
  constructor(index: number, content: string) {
    this.#index = index;
    this.#content = content;
    this.#head = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":`;
  }

  append(text: string): void {
    this.waiting += text;
  }

  open(): string {
    this.isOpen = true;
    const fields = `,"index":${this.#index},"content_block":${this.#content}`;
    return frame("content_block_start", fields) + this.first();
  }

  takeDeltas(): string {
    if (this.waiting === "") return "";
    const text = this.waiting;
    this.waiting = "";
    return this.delta(text);
  }

  close(): string {
    return this.last() + frame("content_block_stop", `,"index":${this.#index}`);
  }

  /** `hasNext`: another block has begun. */
  isOver(hasNext: boolean): boolean {
    return hasNext || this.isWhole;
  }

  /** A delta of a type with a field, whose value is JSON. */
  protected write(type: string, field: string, json: string): string {
    return `${this.#head}"${type}","${field}":${json}}}\n\n`;
  }

  protected first(): string {
    return "";
  }

  protected delta(_text: string): string {
    return "";
  }

  protected last(): string {
    return "";
  }
}

export class TextBlock extends StreamBlock {
  /** Those that are not written yet. */
  readonly citations: ExtraFields[] = [];

  constructor(index: number) {
    super(index, '{"type":"text","text":""}');
  }

  override takeDeltas(): string {
    let deltas = super.takeDeltas();
    for (let citation; (citation = this.citations.shift()) !== undefined;) {
      deltas += this.write("citations_delta", "citation", JSON.stringify(citation));
    }
    return deltas;
  }

  protected override delta(text: string): string {
    return this.write("text_delta", "text", writeJsonText(text));
  }
}

export class ThoughtBlock extends StreamBlock {
  #signature: string | undefined;
  #hasText = false;

  constructor(index: number) {
    super(index, '{"type":"thinking","thinking":"","signature":""}');
  }

  end(signature: string | undefined): void {
    this.isWhole = true;
    this.#signature = signature;
  }

  protected override delta(text: string): string {
    this.#hasText = true;
    return this.write("thinking_delta", "thinking", writeJsonText(text));
  }

  /** A thought that is not shown has one empty delta, as Anthropic sends it. */
  protected override last(): string {
    if (this.#signature === undefined) return "";
    const text = this.#hasText ? "" : this.delta("");
    return text + this.write("signature_delta", "signature", writeJsonText(this.#signature));
  }
}

/** A call. The text of a tool that takes no JSON stands in the field `input` of an object. */
export class CallBlock extends StreamBlock {
  readonly call: number;
  readonly #isText: boolean;
  #json = "";
  #checkedLength = 0;

  constructor(
    index: number,
    { call, id, kind, name }: Pick<EventOf<"tool-call-start">, "call" | "id" | "kind" | "name">,
  ) {
    super(index, JSON.stringify({ type: "tool_use", id, name, input: {} }));
    this.call = call;
    this.#isText = kind === "custom";
  }

  override append(text: string): void {
    super.append(text);
    this.#json += text;
  }

  /** The next block may begin once the input is whole: parts of several calls may alternate. */
  override isOver(hasNext: boolean): boolean {
    if (!hasNext || this.#isText || this.#json.length === this.#checkedLength) return false;
    this.#checkedLength = this.#json.length;
    return isWholeInput(this.#json.trimEnd());
  }

  protected override first(): string {
    return this.#part(this.#isText ? '{"input":"' : "");
  }

  protected override delta(text: string): string {
    return this.#part(this.#isText ? JSON.stringify(text).slice(1, -1) : text);
  }

  /** Clients parse what the parts make together. */
  protected override last(): string {
    if (this.#isText) return this.#part('"}');
    return this.#json.trim() === "" ? this.#part("{}") : "";
  }

  #part(json: string): string {
    return this.write("input_json_delta", "partial_json", writeJsonText(json));
  }
}
