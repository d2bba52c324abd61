import type { Model, ModelKind } from "../domain/model.ts";
import type { AttemptContext } from "./attempts/attempt.ts";
import type { Call } from "../snapshot/call.ts";
import type { InputSize, OutputExpectation } from "../admission/estimate/estimate.ts";
import type { Candidate } from "../routing/candidates.ts";

/** What a call asks for, and how a target is asked: what differs between chat, streamed chat and embeddings. */
export interface CallWork<Answer> {
  readonly alias: string;
  readonly kind: ModelKind;
  readonly isStreamed: boolean;
  readonly output: OutputExpectation;
  /** What the upstreams that may serve may read at most, all requests of the call together. */
  measure(model: Model, call: Pick<Call, "snapshot" | "environment">): InputSize;
  /** Refuses, with 400, what this model cannot take. */
  check(model: Model): void;
  /** The exact number of those tokens, where it can be had without an answer. */
  countInput?(model: Model, context: AttemptContext): Promise<number | undefined>;
  /** Resolves once the answer, or the first event of it, is decoded. */
  attempt(candidate: Candidate, context: AttemptContext): Promise<Answer>;
}
