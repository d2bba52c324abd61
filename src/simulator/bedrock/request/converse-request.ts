import type { Prompt } from "../../answer/prompt.ts";

/** A Converse or ConverseStream request, with what only this wire cares about beside the prompt. */
export interface ConverseRequest {
  /** The id or ARN of the path, decoded. */
  readonly model: string;
  readonly prompt: Prompt;
  /** All tokens of the prompt, those of the cache included. */
  readonly promptTokens: number;
  readonly cache: CacheUse | undefined;
  readonly isStreamed: boolean;
  /** The asked-for tokens of the answer, else the most that the model writes. */
  readonly maxOutputTokens: number;
  /** How the model's thoughts come back, if it has any. */
  readonly thoughts: "shown" | "omitted" | "redacted";
  readonly guardrail: GuardrailUse | undefined;
  /** Echoed in the answer; undefined when the request names none. */
  readonly serviceTier: string | undefined;
  readonly latency: "standard" | "optimized" | undefined;
  /** JSON pointers of model fields that the answer shall repeat, such as `/stop_sequence`. */
  readonly responseFieldPaths: readonly string[];
}

/** How much of the prompt is before a `cachePoint`. Undefined on requests without one. */
export interface CacheUse {
  readonly readTokens: number;
  readonly writeTokens: number;
  /** The part of it for each time that it lasts. */
  readonly written: Readonly<Record<"5m" | "1h", number>>;
}

export interface GuardrailUse {
  readonly identifier: string;
  readonly version: string;
  readonly hasTrace: boolean;
  /**
   * What it does: it blocks where the newest words of the user begin with `guard:`, and masks the
   * answer where they begin with `mask:`.
   */
  readonly action: "none" | "blocked" | "masked";
}
