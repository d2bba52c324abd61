import type { AnswerReasoning } from "../../../domain/chat/answer.ts";
import { brokenAnswer } from "../../../domain/errors/upstream-failure.ts";
import type { AnswerEvents } from "./answer-events.ts";
import { ignoredInput, type ToolInput } from "./tool-input.ts";

/** A block of thoughts, joined. `data` is of one that the provider redacted. */
interface Thought {
  readonly text: string;
  readonly signature: string;
  readonly data: string;
}

/** The content of an answer, block by block, each by the service's index of it. */
export class ContentBlocks {
  readonly #answer: AnswerEvents;
  /** Tool inputs that are incomplete. */
  readonly #toolInputs = new Map<number | undefined, ToolInput>();
  readonly #thoughts = new Map<number | undefined, Thought>();

  constructor(answer: AnswerEvents) {
    this.#answer = answer;
  }

  /** Whether a tool call is incomplete. */
  get isWithinCall(): boolean {
    return this.#toolInputs.size > 0;
  }

  text(text: string): void {
    this.#answer.text(text);
  }

  call(
    index: number | undefined,
    { id, name }: { readonly id: unknown; readonly name: unknown },
  ): void {
    this.#toolInputs.set(index, this.#answer.toolUse(id, name));
  }

  /** Begins a call of a tool that the service runs itself: it is left out. */
  ignoredCall(index: number | undefined): void {
    this.#toolInputs.set(index, ignoredInput);
  }

  /** More of a call's input, as JSON. */
  input(index: number | undefined, json: string): void {
    const input = this.#toolInputs.get(index);
    if (input === undefined) throw brokenAnswer("the input of a tool has no beginning");
    input.push(json);
  }

  /** Throws `UpstreamFailure` when the thought is too long. */
  thought(
    index: number | undefined,
    piece: { readonly [Part in keyof Thought]?: string | undefined },
  ): void {
    const before = this.#thoughts.get(index) ?? noThought;
    const { text = "" } = piece;
    const thought = {
      text: before.text + text,
      signature: before.signature + (piece.signature ?? ""),
      data: before.data + (piece.data ?? ""),
    };
    this.#thoughts.set(index, thought);
    const length = thought.text.length + thought.signature.length + thought.data.length;
    if (length > longestThought) throw brokenAnswer("the thoughts are too long");
    this.#answer.reasoning(text);
  }

  end(index: number | undefined): void {
    this.#toolInputs.get(index)?.end();
    this.#toolInputs.delete(index);
    const thought = this.#thoughts.get(index);
    if (thought !== undefined) this.#answer.reasoningBlock(blockOf(thought));
    this.#thoughts.delete(index);
  }

  endAll(): void {
    for (const index of this.#thoughts.keys()) this.end(index);
    for (const index of this.#toolInputs.keys()) this.end(index);
  }
}

const noThought: Thought = { text: "", signature: "", data: "" };

/** Longest block of thoughts, in characters of all its parts; real ones are far shorter. */
const longestThought = 4 * 1024 * 1024;

/** Undefined for thoughts without a signature: no model needs those back. */
function blockOf({ text, signature, data }: Thought): AnswerReasoning | undefined {
  if (signature !== "") return { type: "reasoning", text, opaque: signature };
  if (data === "") return undefined;
  return { type: "reasoning", text: "", opaque: data, isRedacted: true };
}
