import type { EndSource } from "../domain/waiting/end-signal.ts";
import { type CapacityMode, capacityModes } from "../domain/limits/capacity.ts";
import { type Caller, mayUseModel } from "../domain/keys/key.ts";
import { type Environment, type Model, type ModelKind, modelNamed } from "../domain/model.ts";
import type { RequestTrace } from "../domain/request-trace.ts";
import type { CallSpanIds } from "../domain/tracing.ts";
import type { CountedRequest } from "../domain/limits/limit-scope.ts";
import type { RunningHooks } from "./call-hooks.ts";
import type { Snapshot } from "./snapshot.ts";
import type { RefusalExplanation } from "../domain/errors/refusal.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";

/** Paths of a dialect, by the kind of model, and of the list of models; used in messages. */
export type ModelEndpoints = Readonly<Record<ModelKind | "list", string>>;

/** Options that a caller sets in headers. */
export interface CallOptions {
  readonly capacity: CapacityMode;
  /** Deadline of the caller in monotonic milliseconds, if it set one. */
  readonly deadlineAt: number | undefined;
}

export const plainCall: CallOptions = { capacity: "auto", deadlineAt: undefined };

const capacityHeader = "x-sluice-capacity";
const timeoutHeader = "x-sluice-timeout-ms";
const longestTimeoutMs = 24 * 3_600_000;

/** The options in the headers of a request. Throws 400 for an invalid one. */
export function readOptions(headers: Pick<Headers, "get">, receivedAt: number): CallOptions {
  const capacity = headers.get(capacityHeader);
  const timeout = headers.get(timeoutHeader);
  if (capacity === null && timeout === null) return plainCall;
  const deadlineAt = timeout === null ? undefined : receivedAt + readTimeout(timeout);
  return { capacity: readCapacity(capacity), deadlineAt };
}

function readCapacity(written: string | null): CapacityMode {
  const mode = capacityModes.find((known) => known === (written ?? "auto"));
  if (mode !== undefined) return mode;
  throw invalidHeader(capacityHeader, `must be one of ${capacityModes.join(", ")}`);
}

function readTimeout(written: string): number {
  const timeoutMs = /^[0-9]{1,9}$/.test(written) ? Number(written) : 0;
  if (timeoutMs >= 1 && timeoutMs <= longestTimeoutMs) return timeoutMs;
  throw invalidHeader(timeoutHeader, `must be whole milliseconds from 1 to ${longestTimeoutMs}`);
}

function invalidHeader(name: string, mustBe: string): GatewayError {
  return new GatewayError("invalid_value", {
    message: `Invalid header '${name}': ${mustBe}.`,
    param: name,
  });
}

/** The HTTP request of a call, for the log. */
export interface RequestOrigin {
  readonly method: string;
  /** Path of the route. */
  readonly route: string;
  /** Undefined when the caller sent none. */
  readonly trace: RequestTrace | undefined;
  /** Undefined where no traces are sent. */
  readonly spans?: CallSpanIds | undefined;
  /** The request has become a call, whose end is logged instead. */
  becomesCall(): void;
  /** A limit in audit would have refused it. */
  wouldBeRefused(refusal: GatewayError): void;
}

export interface CallMemory {
  /** Keeps the request's body counted for what is sent once the answer has begun. */
  keep(): () => void;
  /** So many bytes more of its answer are unread, or fewer. */
  unread(bytes: number): void;
}

/** Memory of a call's answer, under the same limits as that of bodies. */
export interface AnswerMemory {
  /**
   * Takes the memory of the whole answer, at once or when there is room; a second call waits for the
   * same. Throws 503, or the reason of the request's signal.
   */
  reserve(bytes: number): void | Promise<void>;
  /** Gives back the rest. */
  shrinkTo(bytes: number): void;
  release(): void;
}

/** One request of a caller. */
export interface Call {
  /** Request id, also of the reservation and the ledger row. */
  readonly id: string;
  readonly caller: Caller;
  readonly environment: Environment;
  readonly snapshot: Snapshot;
  /** The dialect of its route. */
  readonly dialect: { readonly endpoints: ModelEndpoints };
  /** Ends when the caller disconnects, at its deadline, with its key, and at shutdown. */
  readonly signal: EndSource;
  /** Monotonic milliseconds. */
  readonly receivedAt: number;
  readonly options: CallOptions;
  /** Undefined for a call that did not come from a request. */
  readonly origin?: RequestOrigin | undefined;
  /** Request headers. */
  readonly headers: Pick<Headers, "get">;
  /** What the gateway has in memory for the call, as its edge counts it. */
  readonly memory?: CallMemory;
  /** Undefined: the memory of the answer is not limited. */
  readonly answerMemory?: AnswerMemory;
  /** Undefined: no hook follows this call. */
  readonly hooks?: RunningHooks;
  /** The request as counted on arrival; undefined: admission counts it. */
  readonly counted?: CountedRequest | undefined;
}

/**
 * Finds a model that the caller's environment has and that the endpoint can serve. Throws 400
 * `invalid_model`. The message may name the models that a key is limited to: its holder may know
 * them.
 */
export function resolveModel(
  call: Pick<Call, "environment" | "caller" | "dialect">,
  alias: string,
  kind: ModelKind,
): Model {
  const { endpoints } = call.dialect;
  const model = modelNamed(call.environment, alias);
  if (model === undefined) {
    const what = `The model \`${alias.slice(0, 100)}\` does not exist in this environment.`;
    const summary = `The request names a model that environment ${call.environment.name} lacks.`;
    throw invalidModel(what, "you", { endpoints, explanation: { rule: "model_unknown", summary } });
  }
  if (!mayUseModel(call.caller.key, model.alias)) {
    const what = `This API key may not use the model \`${alias}\`.`;
    const summary = `The key may not use model ${model.alias}; allowed_models of the key lists those it may.`;
    const explanation = { rule: "model_not_allowed", summary, model: model.alias } as const;
    throw invalidModel(what, "it", { endpoints, explanation });
  }
  if (model.kind !== kind) {
    const where = endpoints[model.kind];
    const what = `The model \`${alias}\` is not supported here; use ${where} for it.`;
    const summary = `Model ${model.alias} is of kind ${model.kind}, which this endpoint does not serve.`;
    const explanation = { rule: "model_kind", summary, model: model.alias } as const;
    throw invalidModel(what, "you", { endpoints, explanation });
  }
  return model;
}

interface ModelFault {
  readonly endpoints: ModelEndpoints;
  readonly explanation: RefusalExplanation;
}

function invalidModel(what: string, who: "you" | "it", fault: ModelFault): GatewayError {
  const { endpoints, explanation } = fault;
  return new GatewayError("invalid_model", {
    message: `${what} GET ${endpoints.list} lists the models ${who} can use.`,
    param: "model",
    explanation,
  });
}
