import type { ChatRequest, ContentPart } from "../domain/chat.ts";
import type { Model } from "../domain/model.ts";
import type { TokenUsage } from "../domain/usage.ts";
import { AgingMap } from "../limits/aging-map.ts";
import { QuantileEstimator } from "../limits/quantile.ts";

/** How large the input of a call is, found without reading its text. */
export interface InputSize {
  readonly textBytes: number;
  /** A generous guess for images, sounds and files, whose bytes say little about tokens. */
  readonly attachmentTokens: number;
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
/** English takes about as many; text that takes fewer must not lower what other text reserves. */
const leastTokensPerByte = 0.25;
/** What a large image takes at most of the common models. */
const tokensPerImage = 1_600;
/** A page of a document is some 50 kB and 2,000 tokens, a minute of speech 500 kB and 1,000. */
const attachmentBytesPerToken = 25;
/** Short answers so far promise nothing about the next one. */
const leastExpectedOutput = 256;
/** No common tokenizer packs more bytes of varied text into a token; used to refuse, so generous. */
const mostBytesPerToken = 20;
const learnedOutputsLifetimeMs = 24 * 3_600_000;

/** Bytes of the body that are text, in time that depends on the number of parts, not on their length. */
export function measureChatInput(request: ChatRequest, bodyBytes: number): InputSize {
  let attachmentTokens = 0;
  let attachmentBytes = 0;
  for (const { content } of request.messages) {
    if (content === undefined || content === null || typeof content === "string") continue;
    for (const part of content) {
      const attachment = measureAttachment(part);
      attachmentTokens += attachment.tokens;
      attachmentBytes += attachment.bytes;
    }
  }
  return { textBytes: Math.max(0, bodyBytes - attachmentBytes), attachmentTokens };
}

/** The size of an input that upstreams read several times. */
export function repeatedInput(size: InputSize, readings: number): InputSize {
  return {
    textBytes: size.textBytes * readings,
    attachmentTokens: size.attachmentTokens * readings,
  };
}

interface Attachment {
  readonly tokens: number;
  /** Length in the body that is not text. */
  readonly bytes: number;
}

function measureAttachment(part: ContentPart): Attachment {
  switch (part.type) {
    case "text":
    case "refusal":
      return { tokens: 0, bytes: 0 };
    case "image_url":
      return { tokens: tokensPerImage, bytes: part.image_url.url.length };
    case "input_audio":
      return measureBinary(part.input_audio.data.length);
    case "file":
      return measureFile(part.file["file_data"], part.file["filename"]);
  }
}

/**
 * Whatever is not known to be a binary document is text, so that no plan is cheated by wrapping a
 * prompt in a file: upstreams read most kinds of file as the text they hold.
 */
function measureFile(data: unknown, filename: unknown): Attachment {
  if (typeof data !== "string") return measureBinary(0);
  const mediaType = mediaTypePattern.exec(data.slice(0, longestMediaType))?.[1] ?? "";
  const extension = typeof filename === "string" ? filename.slice(-longestExtension) : "";
  const isDocument =
    documentMediaTypes.test(mediaType) ||
    (!textMediaTypes.test(mediaType) && documentExtensions.test(extension));
  return isDocument ? measureBinary(data.length) : { tokens: 0, bytes: 0 };
}

function measureBinary(bytes: number): Attachment {
  return { tokens: tokensPerImage + Math.ceil(bytes / attachmentBytesPerToken), bytes };
}

const longestMediaType = 200;
const longestExtension = 10;
const mediaTypePattern = /^data:\s*([^;,]*?)\s*[;,]/i;
const textMediaTypes = /^(?:text\/|application\/(?:json|xml)$)/i;
/** PDF and what offices write: only what no upstream takes for text, whatever the file's name. */
const documentMediaTypes =
  /^application\/(?:pdf|msword|vnd\.ms-excel|vnd\.openxmlformats-officedocument\.(?:wordprocessingml\.document|spreadsheetml\.sheet))$/i;
const documentExtensions = /\.(?:pdf|docx?|xlsx?|pptx?)$/i;

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
    const attachments = size.attachmentTokens;
    const high = ratio?.high.value ?? startTokensPerByte;
    const median = ratio?.median.value ?? startTokensPerByte;
    return {
      inputTokens: Math.ceil(size.textBytes * high) + attachments,
      likelyInputTokens: Math.max(1, Math.round(size.textBytes * median)) + attachments,
      outputTokens: this.#expectOutput(subject, output),
    };
  }

  /**
   * Learns from the counts of a whole answer. An answer under a cap says nothing about answers
   * without one, so a key cannot train its own reservations down with tiny caps. The input of
   * several choices says nothing about tokens a byte: some upstreams count it once for each choice.
   */
  learn(subject: Subject, { size, output, usage }: Observation): void {
    const isReadOnce = output.choices === 1 && size.attachmentTokens === 0;
    if (isReadOnce && size.textBytes > 0 && usage.inputTokens > 0) {
      const ratio = this.#ratioOf(subject.model.alias);
      const observed = usage.inputTokens / size.textBytes;
      ratio.high.observe(observed);
      ratio.median.observe(observed);
    }
    if (output.cap !== undefined || usage.outputTokens === 0) return;
    this.#outputOf(subject).observe(usage.outputTokens / output.choices);
  }

  #expectOutput(subject: Subject, output: OutputExpectation): number {
    const { maxOutputTokens } = subject.model;
    if (maxOutputTokens === undefined) return 0;
    if (output.cap !== undefined) return output.choices * Math.min(output.cap, maxOutputTokens);
    this.#outputs.advance(subject.nowMs);
    const learned = this.#outputs.peek(outputKey(subject))?.value;
    const expected = Math.max(learned ?? this.#defaultOutputTokens, this.#leastExpected());
    return output.choices * Math.ceil(Math.min(expected, maxOutputTokens));
  }

  #leastExpected(): number {
    return Math.min(leastExpectedOutput, this.#defaultOutputTokens);
  }

  #ratioOf(alias: string): LearnedRatio {
    const known = this.#ratios.get(alias);
    if (known !== undefined) return known;
    const bounds = { start: startTokensPerByte, maximum: 2 };
    const ratio = {
      high: new QuantileEstimator({ quantile: 0.98, minimum: leastTokensPerByte, ...bounds }),
      median: new QuantileEstimator({ quantile: 0.5, minimum: 0.01, ...bounds }),
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

export interface Observation {
  readonly size: InputSize;
  readonly output: OutputExpectation;
  readonly usage: TokenUsage;
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
