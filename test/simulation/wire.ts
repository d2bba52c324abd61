import type { TransportRequest } from "../../src/upstream-client/transport.ts";

/** What an upstream reads of a request. */
export interface UpstreamRequest {
  readonly call: string;
  readonly model: string;
  readonly kind: "whole" | "stream" | "embedding";
  readonly cap: number | undefined;
  readonly choices: number;
  readonly inputBytes: number;
  /** Embeddings: how many; 0 for chat. */
  readonly inputs: number;
  /** Wall clock of who signed it; undefined: it is not signed. */
  readonly signedAt: number | undefined;
}

export interface TokenCounts {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** What is to be said, in one piece or in several. */
export interface AnswerWords {
  /** By choice, then by piece. */
  readonly pieces: readonly (readonly string[])[];
  /** Each time that they are told. */
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
  /** From so many bytes on a reader may know that all choices have ended. */
  readonly finishedBytes: number;
}

/** How a provider speaks. Written apart from the adapters that it tests. */
export interface Wire {
  read(url: URL, request: TransportRequest): UpstreamRequest;
  refusal(name: RefusalName): Refusal;
  /** A whole answer, to be sent as JSON. */
  whole(words: AnswerWords): unknown;
  streamed(words: AnswerWords): StreamedWords;
  /** How an answer that has begun says that it failed. */
  error(): Uint8Array;
  /** An event of a stream that makes no sense. */
  malformed(): Uint8Array;
}

/** The first word of a prompt names the call, whatever becomes of the other fields on the way. */
export function callOfPrompt(prompt: string): string {
  return prompt.split(" ", 1)[0] ?? "";
}

export function bytesOf(chunks: readonly Uint8Array[]): number {
  return chunks.reduce((sum, { length }) => sum + length, 0);
}
