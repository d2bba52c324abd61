import type { ExtraFields } from "../../domain/chat/answer.ts";
import { isWholeInput } from "../../domain/chat/tool-input.ts";
import { writeJsonText } from "../../domain/json-object.ts";

/** An event of a Messages stream; `fields` is JSON behind its type. */
export function frame(type: string, fields: string): string {
  return `event: ${type}\ndata: {"type":"${type}"${fields}}\n\n`;
}

/** A block of the stream. */
export abstract class StreamBlock {
  isOpen = false;
  protected waiting = "";
  #head = "";
  #index = 0;

  append(text: string): void {
    this.waiting += text;
  }

  open(index: number, minted: string): string {
    this.isOpen = true;
    this.#index = index;
    this.#head = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":`;
    const content = `,"index":${index},"content_block":${this.content(minted)}`;
    return frame("content_block_start", content) + this.first();
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

  /** Whether nothing can come for it any more; `hasNext`: another block has begun. */
  isOver(hasNext: boolean): boolean {
    return hasNext;
  }

  /** A delta of a type with a field, whose value is JSON. */
  protected write(type: string, field: string, json: string): string {
    return `${this.#head}"${type}","${field}":${json}}}\n\n`;
  }

  protected first(): string {
    return "";
  }

  protected last(): string {
    return "";
  }

  /** The block as its start has it, as JSON. */
  protected abstract content(minted: string): string;
  protected abstract delta(text: string): string;
}

export class TextBlock extends StreamBlock {
  /** Those that are not written yet. */
  readonly citations: ExtraFields[] = [];

  override takeDeltas(): string {
    let deltas = super.takeDeltas();
    for (let citation; (citation = this.citations.shift()) !== undefined;) {
      deltas += this.write("citations_delta", "citation", JSON.stringify(citation));
    }
    return deltas;
  }

  protected content(): string {
    return '{"type":"text","text":""}';
  }

  protected delta(text: string): string {
    return this.write("text_delta", "text", writeJsonText(text));
  }
}

export class ThoughtBlock extends StreamBlock {
  isWhole = false;
  #signature: string | undefined;
  #hasText = false;

  constructor(text = "") {
    super();
    this.waiting = text;
  }

  end(signature: string | undefined): void {
    this.isWhole = true;
    this.#signature = signature;
  }

  override isOver(hasNext: boolean): boolean {
    return hasNext || this.isWhole;
  }

  protected content(): string {
    return '{"type":"thinking","thinking":"","signature":""}';
  }

  protected delta(text: string): string {
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

export class RedactedBlock extends StreamBlock {
  readonly #data: string;

  constructor(data: string) {
    super();
    this.#data = data;
  }

  override isOver(): boolean {
    return true;
  }

  protected content(): string {
    return `{"type":"redacted_thinking","data":${JSON.stringify(this.#data)}}`;
  }

  protected delta(): string {
    return "";
  }
}

interface CallAbout {
  /** Empty: the upstream gave none. */
  readonly id: string;
  /** Whether the tool takes text. */
  readonly isText: boolean;
  readonly name: string;
}

/** A call. The text of a tool that takes no JSON stands in the field `input` of an object. */
export class CallBlock extends StreamBlock {
  readonly call: number;
  readonly #about: CallAbout;
  #json = "";
  #checkedLength = 0;

  constructor(call: number, about: CallAbout) {
    super();
    this.call = call;
    this.#about = about;
  }

  override append(text: string): void {
    super.append(text);
    this.#json += text;
  }

  /** The next block may begin once the input is whole: parts of several calls may alternate. */
  override isOver(hasNext: boolean): boolean {
    if (!hasNext || this.#about.isText || this.#json.length === this.#checkedLength) return false;
    this.#checkedLength = this.#json.length;
    return isWholeInput(this.#json.trimEnd());
  }

  protected content(minted: string): string {
    const { id, name } = this.#about;
    const sent = JSON.stringify(id === "" ? minted : id);
    return `{"type":"tool_use","id":${sent},"name":${JSON.stringify(name)},"input":{}}`;
  }

  protected override first(): string {
    return this.#part(this.#about.isText ? '{"input":"' : "");
  }

  protected delta(text: string): string {
    return this.#part(this.#about.isText ? JSON.stringify(text).slice(1, -1) : text);
  }

  /** Clients parse what the parts make together. */
  protected override last(): string {
    if (this.#about.isText) return this.#part('"}');
    return this.#json.trim() === "" ? this.#part("{}") : "";
  }

  #part(json: string): string {
    return this.write("input_json_delta", "partial_json", writeJsonText(json));
  }
}
