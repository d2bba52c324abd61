import type { TransportRequest } from "../../src/upstream-client/transport.ts";

/** A request as an upstream reads it. */
export interface UpstreamRequest {
  readonly call: string;
  readonly model: string;
  readonly kind: "whole" | "stream" | "embedding";
  readonly cap: number | undefined;
  readonly choices: number;
  readonly inputBytes: number;
  /** The number of embedding inputs; 0 for chat. */
  readonly inputs: number;
  /** The wall clock of the signer; undefined: it is not signed. */
  readonly signedAt: number | undefined;
}

export interface TokenCounts {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The words of an answer, in one or several pieces. */
export interface AnswerWords {
  /** By choice, then by piece. */
  readonly pieces: readonly (readonly string[])[];
  /** One for each time that they are sent. */
  readonly usages: readonly TokenCounts[];
  readonly vectors: number;
}

export type RefusalName =
  | "throttled"
  | "failed"
  | "overloaded"
  | "bad-credential"
  | "stale-credential"
  | "invalid"
  | "overflow"
  | "content-refused"
  | "unknown-model";

export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export interface StreamedWords {
  readonly contentType: string;
  readonly chunks: readonly Uint8Array[];
  /** The number of bytes after which the end of all choices is known. */
  readonly finishedBytes: number;
}

/** The wire format of a provider. Independent of the adapters that it tests. */
export interface Wire {
  read(url: URL, request: TransportRequest): UpstreamRequest;
  refusal(name: RefusalName): Refusal;
  /** An unstreamed answer, sent as JSON. */
  whole(words: AnswerWords): unknown;
  streamed(words: AnswerWords): StreamedWords;
  /** The failure of an answer that has begun. */
  error(): Uint8Array;
  /** A malformed event of a stream. */
  malformed(): Uint8Array;
}

/** The call of a prompt, named by its first word, because other fields may change on the way. */
export function callOfPrompt(prompt: string): string {
  return prompt.split(" ", 1)[0] ?? "";
}

export function bytesOf(chunks: readonly Uint8Array[]): number {
  return chunks.reduce((sum, { length }) => sum + length, 0);
}
