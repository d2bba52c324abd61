import { GatewayError, internalError } from "../domain/errors/gateway-error.ts";
import { retryHeaders } from "../domain/limits/headers.ts";
import type { Model } from "../domain/model.ts";
import { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import { type Admission, type AdmissionRequest, admit, canEverFit } from "../admission/admit.ts";
import { attemptInTurn } from "./attempts/attempt-loop.ts";
import { type Call, resolveModel } from "../snapshot/call.ts";
import type { RunningHooks } from "../snapshot/call-hooks.ts";
import { type CallWork, checkModels, type CountContext } from "./attempts/call-candidates.ts";
import { canCount } from "./count-input.ts";
import { failureError } from "./failure-error.ts";
import { Meter } from "./metering/meter.ts";
import { untilEnded } from "./hooks.ts";
import type { CallServices } from "./services.ts";
import { labelsOf } from "./labels.ts";
import type { Attempt } from "./attempts/attempt.ts";

/** A running answer and its meter, which the receiver must close. */
export interface StartedCall<Answer> {
  readonly answer: Answer;
  /** Its signal fires at every end of the call. */
  readonly call: Call;
  readonly admission: Admission;
  /** The attempt that answered. */
  readonly attempt: Attempt;
  readonly meter: Meter;
}

/**
 * Runs the steps of a call: resolve, admit, attempt until one target answers. Throws
 * `GatewayError`; the call is then accounted for.
 */
export async function runCall<Answer>(
  call: Call,
  work: CallWork<Answer>,
  services: CallServices,
): Promise<StartedCall<Answer>> {
  if (!services.ledger.hasRoom) throw ledgerFull();
  const model = resolveModel(call, work.alias, work.kind);
  const subject = {
    accountId: call.caller.key.accountId,
    keyId: call.caller.key.id,
    model,
    nowMs: services.clock.monotonic(),
  };
  const { inputs, images, isStreamed, dialect, serviceTier } = work;
  const labels = labelsOf(call, work.named, services);
  const output = work.expectedOutput(model);
  const size = work.measure(model, call);
  const estimate = services.estimator.estimate(subject, size, output);
  // From here the meter reports every end of the call.
  services.running.enter(call);
  call.origin?.becomesCall();
  const meter = new Meter(
    {
      call,
      model,
      size,
      output,
      estimate,
      inputs,
      images,
      isStreamed,
      dialect,
      serviceTier,
      labels,
    },
    services,
  );
  try {
    checkModels(model, { call, work });
    const { arrivedAt } = meter;
    const endUser = services.endUsers.of(call, labels.endUserScope);
    const { spender } = labels;
    const request = { call, model, estimate, output, arrivedAt, size, work, endUser, spender };
    const admitting = admit(
      canEverFit(request) ? request : await counted(request, work, { call, meter, services }),
      services,
    );
    const admission = admitting instanceof Promise ? await admitting : admitting;
    const failure = await meter.admitted(admission);
    if (failure !== undefined) throw ledgerFull(failure);
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
    return { answer, call, admission, attempt, meter };
  } catch (error) {
    const failure = toCallError(error, model);
    meter.failed(failure);
    await meter.recorded;
    throw failure;
  }
}

/**
 * Completes the accounting of a whole answer. `give` passes it through the hooks; if that throws,
 * the call has failed and is still billed.
 */
export async function completeWhole<Answer>(
  started: StartedCall<Answer>,
  give: (answer: Answer, hooks: RunningHooks) => Promise<Answer>,
): Promise<StartedCall<Answer>> {
  const { answer, call, meter, admission } = started;
  try {
    const { hooks, signal } = call;
    const given = hooks && (await untilEnded(give(answer, hooks), signal));
    meter.completed();
    await meter.recorded;
    return given === undefined ? started : { ...started, answer: given };
  } catch (error) {
    const failure = toCallError(error, admission.model);
    meter.failed(failure);
    await meter.recorded;
    throw failure;
  }
}

/**
 * Counts a request exactly before it is refused for its estimated size, since estimates are high.
 * Only for calls that counted as a request on arrival, so that the plan bounds the work.
 */
async function counted<Answer>(
  request: AdmissionRequest,
  work: CallWork<Answer>,
  context: CountContext & { readonly meter: Meter },
): Promise<AdmissionRequest> {
  const { model } = request;
  const { counted: countedRequest, snapshot } = context.call;
  if (work.countInput === undefined || countedRequest === undefined) return request;
  if (!canCount(model, snapshot)) return request;
  const inputTokens = await work.countInput(model, context);
  if (inputTokens === undefined) return request;
  context.meter.inputCounted(inputTokens);
  // An input that is too long for the model is refused under any plan.
  checkModels(model, { call: context.call, work });
  return { ...request, isCounted: true, estimate: { ...request.estimate, inputTokens } };
}

function ledgerFull(cause?: unknown): GatewayError {
  return new GatewayError("model_unavailable", {
    message:
      "The gateway cannot record usage at the moment. Please retry with exponential backoff.",
    headers: retryHeaders(5_000),
    cause,
    explanation: {
      rule: "ledger_full",
      summary: "There is no place to store the usage of another call safely.",
    },
  });
}

/** The error that a failed call returns; unexpected errors become an internal error. */
export function toCallError(error: unknown, model: Model): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof UpstreamFailure) return failureError(error, model);
  return internalError(error);
}
