import type { Prompt } from "../../answer/prompt.ts";

/** A Converse or ConverseStream request: the prompt and the fields of this wire only. */
export interface ConverseRequest {
  /** The id or ARN of the path, decoded. */
  readonly model: string;
  readonly prompt: Prompt;
  /** All tokens of the prompt, those of the cache included. */
  readonly promptTokens: number;
  readonly cache: CacheUse | undefined;
  readonly isStreamed: boolean;
  /** The requested limit of the answer, else the model's. */
  readonly maxOutputTokens: number;
  /** How the answer contains the model's thoughts, if it has any. */
  readonly thoughts: "shown" | "omitted" | "redacted";
  readonly guardrail: GuardrailUse | undefined;
  /** Repeated in the answer; undefined if the request has none. */
  readonly serviceTier: string | undefined;
  readonly latency: "standard" | "optimized" | undefined;
  /** JSON pointers of model fields that the answer should contain, such as `/stop_sequence`. */
  readonly responseFieldPaths: readonly string[];
}

/** The tokens before the last `cachePoint` of a prompt. */
export interface CacheUse {
  readonly readTokens: number;
  readonly writeTokens: number;
  /** `writeTokens` by lifetime. */
  readonly written: Readonly<Record<"5m" | "1h", number>>;
}

export interface GuardrailUse {
  readonly identifier: string;
  readonly version: string;
  readonly hasTrace: boolean;
  /** A last user message that begins with `guard:` is blocked; `mask:` masks the answer. */
  readonly action: "none" | "blocked" | "masked";
}
