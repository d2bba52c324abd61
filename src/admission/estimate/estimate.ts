import type { Block, Conversation, DocumentBlock } from "../../domain/chat/conversation.ts";
import { type EmbeddingRequest, isContent, isImageText } from "../../domain/chat/embedding.ts";
import type { Model } from "../../domain/model.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import { AgingMap } from "../../domain/limits/aging-map.ts";
import { QuantileEstimator } from "./quantile.ts";

/** The size of the input of a call, measured without reading its text. */
export interface InputSize {
  readonly textBytes: number;
  /** A generous guess for images, sounds and files, whose tokens hardly depend on their bytes. */
  readonly attachmentTokens: number;
}

export interface OutputExpectation {
  /** The caller's cap, for one choice. */
  readonly cap: number | undefined;
  /** A cap that is sent, although it is so large that the choice counts as uncapped. */
  readonly sentCap?: number | undefined;
  /** What the caller calls its cap. Undefined: its requests have none. */
  readonly capField?: string;
  readonly choices: number;
}

export interface TokenEstimate {
  /** Rarely too low: admission reserves it, and it is billed if no upstream counts. */
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/**
 * English, code and most CJK text take fewer. A key starts here and never goes below, so text with
 * few tokens does not lower what other text reserves and pays.
 */
const leastTokensPerByte = 1 / 3;
/** Tokenizers fall back to a token a byte for unknown text. */
const mostTokensPerByte = 1;
/** Most tokens of a large image at the common models. */
const tokensPerImage = 1_600;
/**
 * Cohere's models read large images in full: about 160 pixels a token, up to 2.5 million pixels.
 */
const tokensPerEmbeddedImage = 16_000;
/** A page of a document is about 50 kB and 2,000 tokens, a minute of speech 500 kB and 1,000. */
const attachmentBytesPerToken = 25;
/** A thought that only its provider can read: about four bytes a token, in base64. */
const opaqueBytesPerToken = 5;
/** Short answers so far do not mean that the next one is short. */
const leastExpectedOutput = 256;
const learnedLifetimeMs = 24 * 3_600_000;
/** Pairs of a key and a model of one account; the most recently updated ones are kept. */
const mostLearnedPerAccount = 4_096;

/** Bytes of the body that are text, in time linear in the number of parts, not in their length. */
export function measureChatInput(request: Conversation, bodyBytes: number): InputSize {
  let attachmentTokens = 0;
  let attachmentBytes = 0;
  const add = (block: Block): void => {
    if (block.type === "tool-result") return block.content.forEach(add);
    const attachment = measureAttachment(block);
    attachmentTokens += attachment.tokens;
    attachmentBytes += attachment.bytes;
  };
  for (const { blocks } of request.turns) for (const block of blocks) add(block);
  return { textBytes: Math.max(0, bodyBytes - attachmentBytes), attachmentTokens };
}

/** Embeddings of images, as the models that take images read them. */
export function measureEmbeddingInput({ inputs }: EmbeddingRequest, bodyBytes: number): InputSize {
  let attachmentTokens = 0;
  let attachmentBytes = 0;
  const count = (dataUrl: string): void => {
    const { tokens, bytes } = measureBinary(dataUrl.length);
    attachmentTokens += Math.min(tokens, tokensPerEmbeddedImage);
    attachmentBytes += bytes;
  };
  for (const input of inputs) {
    if (typeof input === "string") {
      if (isImageText(input)) count(input);
    } else if (isContent(input)) {
      for (const part of input.content) if (part.type === "image_url") count(part.image_url.url);
    }
  }
  return { textBytes: Math.max(0, bodyBytes - attachmentBytes), attachmentTokens };
}

/** The size of an input that upstreams read several times. */
export function repeatedInput(size: InputSize, readings: number): InputSize {
  if (readings === 1) return size;
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

function measureAttachment(block: Block): Attachment {
  switch (block.type) {
    case "image":
      return { tokens: tokensPerImage, bytes: block.url.length };
    case "audio":
      return measureBinary(block.data.length);
    case "document":
      return measureDocument(block);
    case "reasoning": {
      const bytes = block.opaque?.length ?? 0;
      return { tokens: Math.ceil(bytes / opaqueBytesPerToken), bytes };
    }
    case "text":
    case "refusal":
    case "tool-call":
    case "tool-result":
    case "spoken":
    case "foreign":
      return noAttachment;
  }
}

const noAttachment: Attachment = { tokens: 0, bytes: 0 };

/**
 * Anything but a known binary document counts as text, so that wrapping a prompt in a file does not
 * get around a plan: upstreams read most kinds of file as text.
 */
function measureDocument({ data, text, filename }: DocumentBlock): Attachment {
  if (data === undefined) return text === undefined ? measureBinary(0) : noAttachment;
  const mediaType = mediaTypePattern.exec(data.slice(0, longestMediaType))?.[1] ?? "";
  const extension = filename?.slice(-longestExtension) ?? "";
  const isDocument =
    documentMediaTypes.test(mediaType) ||
    (!textMediaTypes.test(mediaType) && documentExtensions.test(extension));
  return isDocument ? measureBinary(data.length) : noAttachment;
}

function measureBinary(bytes: number): Attachment {
  return { tokens: tokensPerImage + Math.ceil(bytes / attachmentBytesPerToken), bytes };
}

const longestMediaType = 200;
const longestExtension = 10;
const mediaTypePattern = /^data:\s*([^;,]*?)\s*[;,]/i;
const textMediaTypes = /^(?:text\/|application\/(?:json|xml)$)/i;
/** PDF and office formats. No upstream reads these formats as text, whatever the file is called. */
const documentMediaTypes =
  /^application\/(?:pdf|msword|vnd\.ms-excel|vnd\.openxmlformats-officedocument\.(?:wordprocessingml\.document|spreadsheetml\.sheet))$/i;
const documentExtensions = /\.(?:pdf|docx?|xlsx?|pptx?)$/i;

/** What was learned from the answers of one model to one key. */
interface Learned {
  /** Input tokens per byte; only few calls have more. */
  readonly ratio: QuantileEstimator;
  /** Tokens of an answer without a cap; only few answers have more. */
  readonly output: QuantileEstimator;
  /** When it was learned last. Monotonic. */
  at: number;
}

/**
 * Estimates tokens from bytes, and improves with every count an upstream reports. What it learns is
 * kept for each key and model, bounded for each account: no account changes another's estimates.
 */
export class TokenEstimator {
  readonly #accounts: AgingMap<Map<string, Learned>>;
  readonly #defaultOutputTokens: number;

  constructor(options: { defaultOutputTokens: number; nowMs: number }) {
    this.#defaultOutputTokens = options.defaultOutputTokens;
    this.#accounts = new AgingMap(learnedLifetimeMs, options.nowMs);
  }

  estimate(subject: Subject, size: InputSize, output: OutputExpectation): TokenEstimate {
    const learned = this.#learnedOf(subject, nameOf(subject));
    const tokensPerByte = learned?.ratio.value ?? leastTokensPerByte;
    return {
      inputTokens: Math.ceil(size.textBytes * tokensPerByte) + size.attachmentTokens,
      outputTokens: this.#expectOutput(subject.model, output, learned),
    };
  }

  /**
   * Learns from the counts of a whole answer. Answers under a cap are ignored for lengths, so a key
   * cannot train its own reservations down with tiny caps. The input of several choices is ignored
   * for tokens a byte: some upstreams count it once for each choice.
   */
  learn(subject: Subject, { size, output, outputCap, usage }: Observation): void {
    const isReadOnce = output.choices === 1 && size.attachmentTokens === 0;
    const hasRatio = isReadOnce && size.textBytes > 0 && usage.inputTokens > 0;
    const isKnown = outputCap === undefined || output.choices === 1;
    const hasLength = output.cap === undefined && isKnown && usage.outputTokens > 0;
    if (!hasRatio && !hasLength) return;
    const learned = this.#keep(subject);
    if (hasRatio) learned.ratio.observe(usage.inputTokens / size.textBytes);
    if (hasLength) learned.output.observe(lengthOf(usage, output, outputCap));
  }

  #expectOutput(
    { maxOutputTokens }: Model,
    output: OutputExpectation,
    learned: Learned | undefined,
  ): number {
    if (maxOutputTokens === undefined) return 0;
    if (output.cap !== undefined) return output.choices * Math.min(output.cap, maxOutputTokens);
    const usual = learned?.output.value ?? this.#defaultOutputTokens;
    const expected = Math.max(usual, Math.min(leastExpectedOutput, this.#defaultOutputTokens));
    const most = output.sentCap ?? maxOutputTokens;
    return output.choices * Math.ceil(Math.min(expected, most));
  }

  /** `AgingMap` drops entries late, so the exact lifetime is checked here. */
  #learnedOf(subject: Subject, name: string): Learned | undefined {
    const learned = this.#accounts.peek(subject.accountId)?.get(name);
    const isFresh = learned !== undefined && subject.nowMs - learned.at < learnedLifetimeMs;
    return isFresh ? learned : undefined;
  }

  /** The values of the subject, which becomes the most recent one of its account. */
  #keep(subject: Subject): Learned {
    this.#accounts.advance(subject.nowMs);
    const name = nameOf(subject);
    const learned = this.#learnedOf(subject, name) ?? this.#newLearned(subject.nowMs);
    learned.at = subject.nowMs;
    const account = this.#accounts.touch(subject.accountId) ?? new Map<string, Learned>();
    account.delete(name);
    account.set(name, learned);
    this.#accounts.set(subject.accountId, account);
    if (account.size > mostLearnedPerAccount) {
      for (const oldest of account.keys()) {
        account.delete(oldest);
        break;
      }
    }
    return learned;
  }

  #newLearned(at: number): Learned {
    const start = Math.max(1, this.#defaultOutputTokens);
    return {
      at,
      ratio: new QuantileEstimator(ratioOptions),
      output: new QuantileEstimator({ quantile: 0.95, start, minimum: 1, maximum: 1e7 }),
    };
  }
}

const ratioOptions = {
  quantile: 0.98,
  start: leastTokensPerByte,
  minimum: leastTokensPerByte,
  maximum: mostTokensPerByte,
};

/** An answer that ended at the plan's cap would have been longer, by an unknown amount. */
function lengthOf(
  { outputTokens }: TokenUsage,
  { choices }: OutputExpectation,
  outputCap: number | undefined,
): number {
  const isCut = outputCap !== undefined && outputTokens >= nearlyCut * outputCap;
  return isCut ? 2 * outputCap : outputTokens / choices;
}

/** Providers may end an answer a few tokens before its cap. */
const nearlyCut = 0.95;

export interface Observation {
  readonly size: InputSize;
  readonly output: OutputExpectation;
  /** The cap of one choice, if the plan set it. */
  readonly outputCap?: number | undefined;
  readonly usage: TokenUsage;
}

/** What estimates are kept for; texts and lengths differ by key and by model. */
export interface Subject {
  readonly accountId: string;
  readonly keyId: string;
  readonly model: Model;
  /** Monotonic. */
  readonly nowMs: number;
}

function nameOf({ keyId, model }: Subject): string {
  return `${keyId} ${model.alias}`;
}
