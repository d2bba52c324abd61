import type { ChatRequest, ContentPart } from "../domain/chat.ts";
import type { Model } from "../domain/model.ts";
import type { TokenUsage } from "../domain/usage.ts";
import { AgingMap } from "../limits/aging-map.ts";
import { QuantileEstimator } from "../limits/quantile.ts";

/** How large the input of a call is, found without reading its text. */
export interface InputSize {
  readonly textBytes: number;
  /** Images, sounds and files, whose bytes say nothing about tokens. */
  readonly attachments: number;
}

export interface OutputExpectation {
  /** The caller's cap, for one choice. */
  readonly cap: number | undefined;
  readonly choices: number;
}

export interface TokenEstimate {
  /** Rarely below the truth: what admission reserves. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Near the truth: what is billed when the upstream does not say. */
  readonly likelyInputTokens: number;
}

/** Before anything was learned: at least as many tokens as English, code and CJK text take. */
const startTokensPerByte = 1 / 3;
/** What a large image takes at most of the common models. */
const tokensPerAttachment = 1_600;
/** No common tokenizer packs more bytes of varied text into a token; used to refuse, so generous. */
const mostBytesPerToken = 20;
const learnedOutputsLifetimeMs = 24 * 3_600_000;

/** Bytes of the body that are text, in time that depends on the number of parts, not on their length. */
export function measureChatInput(request: ChatRequest, bodyBytes: number): InputSize {
  let attachments = 0;
  let attachmentBytes = 0;
  for (const { content } of request.messages) {
    if (content === undefined || content === null || typeof content === "string") continue;
    for (const part of content) {
      const bytes = attachmentSize(part);
      if (bytes === undefined) continue;
      attachments += 1;
      attachmentBytes += bytes;
    }
  }
  return { textBytes: Math.max(0, bodyBytes - attachmentBytes), attachments };
}

function attachmentSize(part: ContentPart): number | undefined {
  switch (part.type) {
    case "text":
    case "refusal":
      return undefined;
    case "image_url":
      return part.image_url.url.length;
    case "input_audio":
      return part.input_audio.data.length;
    case "file":
      return typeof part.file["file_data"] === "string" ? part.file["file_data"].length : 0;
  }
}

/** Fewer tokens than this the text cannot have. */
export function leastTokens(size: InputSize): number {
  return Math.ceil(size.textBytes / mostBytesPerToken);
}

interface LearnedRatio {
  readonly high: QuantileEstimator;
  readonly median: QuantileEstimator;
}

/** Guesses tokens from bytes, and gets better with every count an upstream reports. */
export class TokenEstimator {
  readonly #ratios = new Map<string, LearnedRatio>();
  readonly #outputs: AgingMap<QuantileEstimator>;
  readonly #defaultOutputTokens: number;

  constructor(options: { defaultOutputTokens: number; nowMs: number }) {
    this.#defaultOutputTokens = options.defaultOutputTokens;
    this.#outputs = new AgingMap(learnedOutputsLifetimeMs, options.nowMs);
  }

  estimate(subject: Subject, size: InputSize, output: OutputExpectation): TokenEstimate {
    const ratio = this.#ratios.get(subject.model.alias);
    const attachments = size.attachments * tokensPerAttachment;
    const high = ratio?.high.value ?? startTokensPerByte;
    const median = ratio?.median.value ?? startTokensPerByte;
    return {
      inputTokens: Math.ceil(size.textBytes * high) + attachments,
      likelyInputTokens: Math.max(1, Math.round(size.textBytes * median)) + attachments,
      outputTokens: this.#expectOutput(subject, output),
    };
  }

  /** Learns from the counts of a whole answer. */
  learn(subject: Subject, size: InputSize, usage: TokenUsage): void {
    if (size.attachments === 0 && size.textBytes > 0 && usage.inputTokens > 0) {
      const ratio = this.#ratioOf(subject.model.alias);
      const observed = usage.inputTokens / size.textBytes;
      ratio.high.observe(observed);
      ratio.median.observe(observed);
    }
    if (usage.outputTokens > 0) this.#outputOf(subject).observe(usage.outputTokens);
  }

  #expectOutput(subject: Subject, output: OutputExpectation): number {
    const { maxOutputTokens } = subject.model;
    if (maxOutputTokens === undefined) return 0;
    if (output.cap !== undefined) return output.choices * Math.min(output.cap, maxOutputTokens);
    this.#outputs.advance(subject.nowMs);
    const learned = this.#outputs.peek(outputKey(subject))?.value;
    const expected = learned ?? output.choices * this.#defaultOutputTokens;
    return Math.ceil(Math.min(expected, output.choices * maxOutputTokens));
  }

  #ratioOf(alias: string): LearnedRatio {
    const known = this.#ratios.get(alias);
    if (known !== undefined) return known;
    const bounds = { start: startTokensPerByte, minimum: 0.01, maximum: 2 };
    const ratio = {
      high: new QuantileEstimator({ quantile: 0.98, ...bounds }),
      median: new QuantileEstimator({ quantile: 0.5, ...bounds }),
    };
    this.#ratios.set(alias, ratio);
    return ratio;
  }

  #outputOf(subject: Subject): QuantileEstimator {
    this.#outputs.advance(subject.nowMs);
    const key = outputKey(subject);
    const known = this.#outputs.touch(key);
    if (known !== undefined) return known;
    const start = Math.max(1, this.#defaultOutputTokens);
    const estimator = new QuantileEstimator({ quantile: 0.95, start, minimum: 1, maximum: 1e7 });
    this.#outputs.set(key, estimator);
    return estimator;
  }
}

/** Whose answers are estimated; lengths differ by key and by model. */
export interface Subject {
  readonly keyId: string;
  readonly model: Model;
  /** Monotonic. */
  readonly nowMs: number;
}

function outputKey(subject: Subject): string {
  return `${subject.keyId} ${subject.model.alias}`;
}
