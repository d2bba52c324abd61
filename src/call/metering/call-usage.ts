import type { ModelKind } from "../../domain/model.ts";
import type { TokenUsage, UsageSource } from "../../domain/usage/usage.ts";
import { largest } from "./sum-usage.ts";

/** Tokens of a call as they are billed, and whose counts they are. */
export interface CountedUsage {
  readonly usage: TokenUsage;
  readonly source: UsageSource;
}

/**
 * The tokens of one call: what its upstream says, and what stands in for it where it says nothing.
 * Never below what the upstream said.
 */
export class CallUsage {
  readonly #kind: ModelKind;
  /** The input as it is reserved. */
  #inputTokens: number;
  /** What the upstream said of the whole answer, of the answer so far, of choices that are done. */
  #whole: TokenUsage | undefined;
  #soFar: TokenUsage | undefined;
  #part: TokenUsage | undefined;
  #deliveredPieces = 0;
  #deliveredCharacters = 0;
  /** What was delivered when the upstream last said its counts so far. */
  #coveredPieces = 0;
  #coveredCharacters = 0;

  constructor(kind: ModelKind, inputTokens: number) {
    this.#kind = kind;
    this.#inputTokens = inputTokens;
  }

  /** What is billed of the input as far as is known. */
  get inputTokens(): number {
    return this.#soFar?.inputTokens || this.#inputTokens;
  }

  /** An upstream counted the input before it was admitted. */
  inputCounted(tokens: number): void {
    this.#inputTokens = tokens;
  }

  delivering(characters: number): void {
    this.#deliveredPieces += 1;
    this.#deliveredCharacters += characters;
  }

  reported(usage: TokenUsage | undefined): void {
    this.#whole = largest(this.#whole, usage);
  }

  reportedSoFar(usage: TokenUsage): void {
    this.#soFar = largest(this.#soFar, usage);
    if (usage.outputTokens === 0) return;
    this.#coveredPieces = this.#deliveredPieces;
    this.#coveredCharacters = this.#deliveredCharacters;
  }

  reportedPart(usage: TokenUsage | undefined): void {
    this.#part = largest(this.#part, usage);
  }

  /** The upstream's counts of the whole answer. */
  get whole(): TokenUsage | undefined {
    return this.#whole;
  }

  get hasDelivered(): boolean {
    return this.#deliveredPieces > 0;
  }

  get deliveredTokens(): number {
    return tokensOf(this.#deliveredPieces, this.#deliveredCharacters);
  }

  /** What the upstream said last, and what was delivered since. */
  get #outputSoFar(): number {
    const pieces = this.#deliveredPieces - this.#coveredPieces;
    const characters = this.#deliveredCharacters - this.#coveredCharacters;
    return (this.#soFar?.outputTokens ?? 0) + tokensOf(pieces, characters);
  }

  /**
   * Of a whole answer. An upstream's count of 0 is none: no prompt is empty, and no text is without
   * tokens. Only an upstream can say that an answer has none; vectors are no output.
   */
  get ofAnswer(): CountedUsage {
    // What was said of parts is in it, or was said of those that another attempt brought.
    const whole = this.#whole && largest(this.#whole, this.#soFar);
    const { usage: delivered, source } = this.ofDelivery;
    if (whole === undefined) {
      const leastOutput = this.#kind === "chat" ? 1 : 0;
      const inputTokens = Math.max(1, delivered.inputTokens);
      const outputTokens = Math.max(leastOutput, delivered.outputTokens);
      return { usage: { ...delivered, inputTokens, outputTokens }, source };
    }
    const inputTokens = whole.inputTokens || delivered.inputTokens;
    const outputTokens = whole.outputTokens || this.deliveredTokens;
    const isSaid = inputTokens === whole.inputTokens && outputTokens === whole.outputTokens;
    const usage = { ...whole, inputTokens, outputTokens };
    return { usage, source: isSaid ? "upstream" : "counted" };
  }

  /** Of an answer that ended early: all of its input, and the output that came. */
  get ofDelivery(): CountedUsage {
    const said = this.#saidEarly;
    const inputTokens = Math.max(this.inputTokens, this.#part?.inputTokens ?? 0);
    const outputTokens = Math.max(this.#outputSoFar, this.#part?.outputTokens ?? 0);
    const cachedInputTokens = Math.min(inputTokens, said?.cachedInputTokens ?? 0);
    const written = said?.cacheWriteTokens;
    const usage = {
      inputTokens,
      outputTokens,
      cachedInputTokens,
      cacheWriteTokens: written && Math.min(inputTokens - cachedInputTokens, written),
      reasoningTokens: said?.reasoningTokens ?? 0,
    };
    const soFar = this.#soFar;
    const isSaid = soFar?.inputTokens === inputTokens && soFar.outputTokens === outputTokens;
    if (isSaid) return { usage, source: "upstream" };
    return { usage, source: this.hasDelivered ? "counted" : "estimated" };
  }

  /** Of a call that brought nobody anything: only what its upstream counted. */
  get ofFailure(): CountedUsage {
    const usage = this.#saidEarly;
    return usage === undefined ? nothing : { usage, source: "upstream" };
  }

  get #saidEarly(): TokenUsage | undefined {
    return largest(this.#part, this.#soFar);
  }
}

/** Most upstreams send a token a piece; where they send more, four characters make a token. */
function tokensOf(pieces: number, characters: number): number {
  return Math.max(pieces, Math.ceil(characters / 4));
}

const nothing: CountedUsage = {
  usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 },
  source: "estimated",
};
