import { GatewayError, internalError } from "../domain/errors/gateway-error.ts";
import type { Model } from "../domain/model.ts";
import { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import { admit, canEverFit, type Admission, type AdmissionRequest } from "../admission/admit.ts";
import type { AttemptContext } from "./attempts/attempt.ts";
import { attemptInTurn } from "./attempts/attempt-loop.ts";
import type { Call } from "../snapshot/call.ts";
import { checkModels } from "./attempts/call-candidates.ts";
import { canCount } from "./count-input.ts";
import { failureError } from "./failure-error.ts";
import { Meter } from "./metering/meter.ts";
import type { CallWork } from "./call-work.ts";
import { resolveModel } from "../snapshot/resolve-model.ts";
import type { RunningAttempt } from "./attempts/running-attempt.ts";
import type { PipelineServices } from "./services.ts";

/** An answer under way, with what accounts for it. Whoever receives it must close the meter. */
export interface StartedCall<Answer> {
  readonly answer: Answer;
  readonly admission: Admission;
  /** The one that brought the answer. */
  readonly attempt: RunningAttempt;
  readonly meter: Meter;
}

/**
 * The order of a call, and every branch between its steps: resolve, admit, attempt until one
 * target answers. Each step needs the result of the one before it. Throws `GatewayError`; the call
 * is then accounted for.
 */
export async function runCall<Answer>(
  arriving: Call,
  work: CallWork<Answer>,
  services: PipelineServices,
): Promise<StartedCall<Answer>> {
  if (!services.ledger.hasRoom) throw ledgerFull(arriving);
  const resolved = resolveModel(arriving, work.alias, work.kind);
  const { model } = resolved;
  const subject = {
    accountId: arriving.caller.key.accountId,
    keyId: arriving.caller.key.id,
    model,
    nowMs: services.clock.monotonic(),
  };
  const { output, isStreamed } = work;
  const size = work.measure(model, arriving);
  const estimate = services.estimator.estimate(subject, size, output);
  // From here the meter tells of the end of the call, however it comes.
  const call = services.running.enter(arriving);
  const meter = new Meter({ call, model, size, output, estimate, isStreamed }, services);
  try {
    checkModels(model, { call, work });
    const request = { call, resolved, estimate, output };
    const admission = await admit(
      canEverFit(request) ? request : await counted(request, work, { call, meter, services }),
      services,
    );
    openAccount(meter, admission, call);
    if (services.overload.refusesAdmitted(call.caller.key, admission.capacityClass)) {
      throw services.overload.refusal();
    }
    const { answer, attempt } = await attemptInTurn({
      call,
      admission,
      work,
      meter,
      services,
    });
    meter.path.isServedBy(attempt);
    return { answer, admission, attempt, meter };
  } catch (error) {
    const failure = toCallError(error, model);
    meter.failed(failure);
    throw failure;
  }
}

/**
 * An estimate errs on the safe side, so a request that seems larger than the limit is counted, if
 * it can be, before it is refused for good. Only for calls whose request was counted when it came, so
 * that no key makes more work than its plan allows.
 */
async function counted<Answer>(
  request: AdmissionRequest,
  work: CallWork<Answer>,
  context: AttemptContext,
): Promise<AdmissionRequest> {
  const { model } = request.resolved;
  const { counted: countedRequest, snapshot } = context.call;
  if (work.countInput === undefined || countedRequest === undefined) return request;
  if (!canCount(model, snapshot)) return request;
  const inputTokens = await work.countInput(model, context);
  if (inputTokens === undefined) return request;
  context.meter.inputCounted(inputTokens);
  // What is too long for the model is so under any plan.
  checkModels(model, { call: context.call, work });
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

/** What a call that failed tells its caller; anything unforeseen stays an internal error. */
export function toCallError(error: unknown, model: Model): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof UpstreamFailure) return failureError(error, model);
  return internalError(error);
}
