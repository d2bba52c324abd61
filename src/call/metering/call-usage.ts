import type { ModelKind } from "../../domain/model.ts";
import type { TokenUsage, UsageSource } from "../../domain/usage/usage.ts";

/** Billed tokens of a call and where the counts come from. */
export interface CountedUsage {
  readonly usage: TokenUsage;
  readonly source: UsageSource;
}

/** The tokens of one call: those reported by the upstream, or an estimate. Never below a report. */
export class CallUsage {
  readonly #kind: ModelKind;
  /** The reserved input tokens. */
  #inputTokens: number;
  /** Reports on the whole answer, on the answer so far, and on finished choices or batches. */
  #whole: TokenUsage | undefined;
  #soFar: TokenUsage | undefined;
  #part: TokenUsage | undefined;
  /** The sum of the attempts that failed and that the provider may bill. */
  #failed: CountedUsage | undefined;
  #deliveredPieces = 0;
  #deliveredCharacters = 0;
  /** The delivered part that the last report so far covers. */
  #coveredPieces = 0;
  #coveredCharacters = 0;

  constructor(kind: ModelKind, inputTokens: number) {
    this.#kind = kind;
    this.#inputTokens = inputTokens;
  }

  /** Billed input tokens as known so far. */
  get inputTokens(): number {
    return this.#soFar?.inputTokens || this.#inputTokens;
  }

  /** An upstream counted the input before admission. */
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

  /** An attempt failed, and the provider may bill it. */
  attemptFailed(counted: CountedUsage): void {
    this.#failed = this.#failed === undefined ? counted : sumOf(this.#failed, counted);
  }

  /** The usage of the answer and of every failed attempt that the provider may bill. */
  withFailed(answer: CountedUsage): CountedUsage {
    return this.#failed === undefined ? answer : sumOf(answer, this.#failed);
  }

  /** The upstream's report on the whole answer. */
  get whole(): TokenUsage | undefined {
    return this.#whole;
  }

  get hasDelivered(): boolean {
    return this.#deliveredPieces > 0;
  }

  get deliveredCharacters(): number {
    return this.#deliveredCharacters;
  }

  get deliveredTokens(): number {
    return tokensOf(this.#deliveredPieces, this.#deliveredCharacters);
  }

  /** Output of the last report, plus what was delivered since. */
  get #outputSoFar(): number {
    const pieces = this.#deliveredPieces - this.#coveredPieces;
    const characters = this.#deliveredCharacters - this.#coveredCharacters;
    return (this.#soFar?.outputTokens ?? 0) + tokensOf(pieces, characters);
  }

  /**
   * Usage of a complete answer. A reported 0 counts as missing, since neither prompts nor texts are
   * empty; only a report can say that there was no output. Vectors are not output.
   */
  get ofAnswer(): CountedUsage {
    // Reports on parts are included in it, or belong to another attempt.
    const whole = this.#whole && largest(this.#whole, this.#soFar);
    if (whole && whole.inputTokens > 0 && whole.outputTokens > 0) {
      return { usage: whole, source: sourceOf(whole) };
    }
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
    if (isSaid) return { usage: whole, source: sourceOf(whole) };
    return {
      usage: { ...whole, inputTokens, outputTokens, requests: undefined },
      source: "counted",
    };
  }

  /** Usage of an answer that ended early: the whole input and the delivered output. */
  get ofDelivery(): CountedUsage {
    const said = this.#saidEarly;
    const inputTokens = Math.max(this.inputTokens, this.#part?.inputTokens ?? 0);
    const outputTokens = Math.max(this.#outputSoFar, this.#part?.outputTokens ?? 0);
    const cachedInputTokens = Math.min(inputTokens, said?.cachedInputTokens ?? 0);
    const written = said?.cacheWriteTokens;
    const written1h = said?.cacheWrite1hTokens;
    const mostWritten = inputTokens - cachedInputTokens;
    const usage = {
      inputTokens,
      outputTokens,
      cachedInputTokens,
      cacheWriteTokens: written && Math.min(mostWritten, written),
      cacheWrite1hTokens: written1h && Math.min(mostWritten, written1h),
      serviceTier: said?.serviceTier,
      reasoningTokens: said?.reasoningTokens ?? 0,
    };
    const soFar = this.#soFar;
    const isSaid = soFar?.inputTokens === inputTokens && soFar.outputTokens === outputTokens;
    if (isSaid) return { usage, source: sourceOf(soFar) };
    return { usage, source: this.hasDelivered ? "counted" : "estimated" };
  }

  /** Usage of a call that delivered nothing: only what the upstream reported. */
  get ofFailure(): CountedUsage {
    const usage = this.#saidEarly;
    return usage === undefined ? nothing : { usage, source: sourceOf(usage) };
  }

  get #saidEarly(): TokenUsage | undefined {
    return largest(this.#part, this.#soFar);
  }
}

/** The origin of a usage that an upstream reported. */
export function sourceOf({ isBounded }: TokenUsage): UsageSource {
  return isBounded === true ? "bounded" : "upstream";
}

/** The source of a sum is that of its least certain part. */
function sumOf(one: CountedUsage, other: CountedUsage): CountedUsage {
  const isLess = certainty.indexOf(other.source) > certainty.indexOf(one.source);
  const isEmpty = one.usage.inputTokens + one.usage.outputTokens === 0;
  return {
    usage: sumReported([one.usage, other.usage]) ?? one.usage,
    source: isLess || isEmpty ? other.source : one.source,
  };
}

const certainty: readonly UsageSource[] = ["upstream", "bounded", "counted", "estimated"];

/** Most upstreams send one token per chunk; for larger chunks, four characters make a token. */
function tokensOf(pieces: number, characters: number): number {
  return Math.max(pieces, Math.ceil(characters / 4));
}

const nothing: CountedUsage = {
  usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 },
  source: "estimated",
};

/** Undefined unless every part was reported: a partial sum would look complete. */
export function sumUsage(parts: readonly (TokenUsage | undefined)[]): TokenUsage | undefined {
  const isWhole = parts.every((usage) => usage !== undefined && usage.inputTokens > 0);
  return isWhole ? sumReported(parts) : undefined;
}

/** The sum of the reported parts; undefined if there are none. */
export function sumReported(parts: readonly (TokenUsage | undefined)[]): TokenUsage | undefined {
  let sum: TokenUsage | undefined;
  const requests: TokenUsage[] = [];
  for (const usage of parts) {
    if (usage === undefined) continue;
    if (usage.requests === undefined) requests.push(usage);
    else requests.push(...usage.requests);
    if (sum === undefined) {
      sum = usage;
      continue;
    }
    sum = {
      inputTokens: usage.inputTokens + sum.inputTokens,
      outputTokens: usage.outputTokens + sum.outputTokens,
      cachedInputTokens: usage.cachedInputTokens + sum.cachedInputTokens,
      cacheWriteTokens: added(usage.cacheWriteTokens, sum.cacheWriteTokens),
      cacheWrite1hTokens: added(usage.cacheWrite1hTokens, sum.cacheWrite1hTokens),
      reasoningTokens: usage.reasoningTokens + sum.reasoningTokens,
      isBounded: usage.isBounded ?? sum.isBounded,
      serviceTier: usage.serviceTier === sum.serviceTier ? sum.serviceTier : undefined,
    };
  }
  return sum === undefined || requests.length === 1 ? sum : { ...sum, requests };
}

/** The larger of two reports for each count: counts only grow. */
export function largest(
  one: TokenUsage | undefined,
  other: TokenUsage | undefined,
): TokenUsage | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  if (isAtLeast(one, other)) return one;
  if (isAtLeast(other, one)) return other;
  return {
    inputTokens: Math.max(one.inputTokens, other.inputTokens),
    outputTokens: Math.max(one.outputTokens, other.outputTokens),
    cachedInputTokens: Math.max(one.cachedInputTokens, other.cachedInputTokens),
    cacheWriteTokens: larger(one.cacheWriteTokens, other.cacheWriteTokens),
    cacheWrite1hTokens: larger(one.cacheWrite1hTokens, other.cacheWrite1hTokens),
    reasoningTokens: Math.max(one.reasoningTokens, other.reasoningTokens),
    isBounded: one.isBounded ?? other.isBounded,
    serviceTier: one.serviceTier ?? other.serviceTier,
  };
}

function isAtLeast(one: TokenUsage, other: TokenUsage): boolean {
  return (
    one.inputTokens >= other.inputTokens &&
    one.outputTokens >= other.outputTokens &&
    one.cachedInputTokens >= other.cachedInputTokens &&
    (one.cacheWriteTokens ?? 0) >= (other.cacheWriteTokens ?? 0) &&
    (one.cacheWrite1hTokens ?? 0) >= (other.cacheWrite1hTokens ?? 0) &&
    one.reasoningTokens >= other.reasoningTokens &&
    (one.serviceTier !== undefined || other.serviceTier === undefined) &&
    (one.isBounded === true || other.isBounded !== true)
  );
}

/** For counts that most upstreams do not report. */
function added(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : one + other;
}

function larger(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}
