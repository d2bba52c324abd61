import { GatewayError, internalError } from "../domain/gateway-error.ts";
import type { Model, ModelKind } from "../domain/model.ts";
import { UpstreamFailure } from "../domain/upstream-failure.ts";
import {
  admit,
  canEverFit,
  chargeRequest,
  type Admission,
  type AdmissionRequest,
} from "./admit.ts";
import type { AttemptContext } from "./attempt.ts";
import type { Call } from "./call.ts";
import { canCount } from "./count-input.ts";
import { listCandidates, type Candidate } from "./candidates.ts";
import type { InputSize, OutputExpectation } from "./estimate.ts";
import { failureError } from "./failure-error.ts";
import { Meter } from "./meter.ts";
import { resolveModel } from "./resolve-model.ts";
import { decideRetry } from "./retry.ts";
import type { PipelineServices } from "./services.ts";
import type { Snapshot } from "./snapshot.ts";

/** One kind of call: what differs between chat, streamed chat and embeddings. */
export interface Operation<Answer> {
  readonly alias: string;
  readonly kind: ModelKind;
  readonly isStreamed: boolean;
  readonly output: OutputExpectation;
  /** What the upstreams of this model may read at most, all requests of the call together. */
  measure(model: Model, snapshot: Snapshot): InputSize;
  /** Refuses, with 400, what this model cannot take. */
  check(model: Model): void;
  /** The exact number of those tokens, where it can be had without an answer. */
  countInput?(model: Model, context: AttemptContext): Promise<number | undefined>;
  /** Resolves once the answer, or the first event of it, is decoded. */
  attempt(candidate: Candidate, context: AttemptContext): Promise<Answer>;
}

/** An answer under way, with what accounts for it. Whoever receives it must close the meter. */
export interface StartedCall<Answer> {
  readonly answer: Answer;
  readonly admission: Admission;
  readonly meter: Meter;
}

/**
 * The order of a call, and every branch between its steps: resolve, admit, attempt until one
 * target answers. Each step needs the result of the one before it. Throws `GatewayError`; the call
 * is then accounted for.
 */
export async function runCall<Answer>(
  arriving: Call,
  operation: Operation<Answer>,
  services: PipelineServices,
): Promise<StartedCall<Answer>> {
  if (!services.ledger.hasRoom) throw ledgerFull(arriving);
  const resolved = resolveModel(arriving, operation.alias, operation.kind);
  const { model } = resolved;
  const subject = {
    keyId: arriving.caller.key.id,
    model,
    nowMs: services.clock.monotonic(),
  };
  const { output, isStreamed } = operation;
  const size = operation.measure(model, arriving.snapshot);
  const estimate = services.estimator.estimate(subject, size, output);
  // From here the meter tells of the end of the call, however it comes.
  const call = services.running.enter(arriving);
  const meter = new Meter({ call, model, size, output, estimate, isStreamed }, services);
  try {
    operation.check(model);
    const isCapped = operation.output.cap !== undefined;
    const request = { call, resolved, estimate, isCapped };
    const admission = await admit(
      canEverFit(request) ? request : await counted(request, operation, { call, meter, services }),
      services,
    );
    openAccount(meter, admission, call);
    const answer = await attemptInTurn({ call, model, operation, meter, services });
    return { answer, admission, meter };
  } catch (error) {
    const failure = toCallError(error, model);
    meter.failed(failure);
    throw failure;
  }
}

/**
 * An estimate errs on the safe side, so a request that seems larger than the limit is counted, if
 * it can be, before it is refused for good. Counting is a request of its own: it is charged as one,
 * so that no key makes more work than its plan allows.
 */
async function counted<Answer>(
  request: AdmissionRequest,
  operation: Operation<Answer>,
  context: AttemptContext,
): Promise<AdmissionRequest> {
  const { model } = request.resolved;
  if (operation.countInput === undefined || !canCount(model, context.call.snapshot)) return request;
  await chargeRequest(request, context.services);
  const inputTokens = await operation.countInput(model, context);
  if (inputTokens === undefined) return request;
  return { ...request, estimate: { ...request.estimate, inputTokens } };
}

function openAccount(meter: Meter, admission: Admission, call: Call): void {
  try {
    meter.admitted(admission);
  } catch (error) {
    throw ledgerFull(call, error);
  }
}

function ledgerFull({ caller, environment }: Call, cause?: unknown): GatewayError {
  const { key, publicId } = caller;
  return new GatewayError("model_unavailable", {
    message:
      "The gateway cannot record usage at the moment. Please retry with exponential backoff.",
    headers: { "retry-after": "5", "retry-after-ms": "5000" },
    cause,
    explanation: {
      rule: "ledger_full",
      summary: "There is no place where the usage of another call could be kept safely.",
      keyId: key.id,
      publicId,
      accountId: key.accountId,
      application: key.application,
      environment: environment.name,
    },
  });
}

interface AttemptLoop<Answer> {
  readonly call: Call;
  readonly model: Model;
  readonly operation: Operation<Answer>;
  readonly meter: Meter;
  readonly services: PipelineServices;
}

/** Tries the candidates until one answers. Nothing has reached the caller while this runs. */
async function attemptInTurn<Answer>(loop: AttemptLoop<Answer>): Promise<Answer> {
  const { call, model, operation, meter, services } = loop;
  const context = { call, meter, services };
  let lastFailure: UpstreamFailure | undefined;
  for (const candidate of listCandidates(model, call.snapshot, services.random)) {
    for (let tries = 1; ; tries += 1) {
      meter.attempting(candidate.target);
      let failure: UpstreamFailure;
      try {
        return await operation.attempt(candidate, context);
      } catch (error) {
        if (!(error instanceof UpstreamFailure)) throw error;
        failure = tries === 1 ? error : withoutExcuse(error);
        services.onAttemptFailed(call, candidate, failure);
      }
      lastFailure = graver(lastFailure, failure);
      const decision = decideRetry(failure.details.kind, tries);
      if (decision === "give-up") throw failure;
      if (decision === "next-target") break;
    }
  }
  throw lastFailure ?? noTarget();
}

/** A fresh credential that is refused as well is not stale, and the operator must know. */
function withoutExcuse(failure: UpstreamFailure): UpstreamFailure {
  const { details } = failure;
  if (details.kind !== "stale-credential") return failure;
  return new UpstreamFailure({ ...details, kind: "bad-credential" }, { cause: failure });
}

/** A target that cannot do what was asked says nothing about one that could and was down. */
function graver(before: UpstreamFailure | undefined, now: UpstreamFailure): UpstreamFailure {
  return before !== undefined && now.details.kind === "unsupported" ? before : now;
}

function noTarget(): UpstreamFailure {
  return new UpstreamFailure({
    kind: "unavailable",
    message: "the model has no target in the configuration",
  });
}

/** What a call that failed tells its caller; anything unforeseen stays an internal error. */
export function toCallError(error: unknown, model: Model): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof UpstreamFailure) return failureError(error, model);
  return internalError(error);
}
