import type { Model, ModelKind } from "../domain/model.ts";
import type { AttemptContext } from "./attempts/attempt.ts";
import type { Call } from "../snapshot/call.ts";
import type { InputSize, OutputExpectation } from "../admission/estimate/estimate.ts";
import type { Candidate } from "../routing/candidates.ts";

/**
 * A call's request and how it is sent to a target: what differs between chat, streamed chat and
 * embeddings.
 */
export interface CallWork<Answer> {
  readonly alias: string;
  readonly kind: ModelKind;
  readonly isStreamed: boolean;
  readonly output: OutputExpectation;
  /** How many inputs, each of at most a context window, upstreams may read. */
  readonly inputs: number;
  /** The part of the call that no attempt has answered yet, from 0 to 1. */
  unanswered(): number;
  /**
   * Upper bound of the input that possible upstreams may read, for all requests of the call
   * together.
   */
  measure(model: Model, call: Pick<Call, "snapshot" | "environment">): InputSize;
  /** Refuses, with 400, a request that this model cannot serve. */
  check(model: Model): void;
  /** The exact number of input tokens, if it can be counted without an answer. */
  countInput?(model: Model, context: AttemptContext): Promise<number | undefined>;
  /** Resolves once the answer, or its first event, is decoded. */
  attempt(candidate: Candidate, context: AttemptContext): Promise<Answer>;
}
