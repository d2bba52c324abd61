import type { EndSignal } from "../domain/waiting/end-signal.ts";
import { errorCode } from "../domain/errors/error-code.ts";
import type { UpstreamFailureKind } from "../domain/errors/failure-kind.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import { whyEnded } from "../domain/waiting/why-ended.ts";
import { ProtocolError } from "./http/answer/protocol-error.ts";
import { ClientError } from "./http/client-error.ts";
import type { Watchdog } from "./watchdog.ts";

export interface BrokenAttempt {
  readonly watchdog: Pick<Watchdog, "failure">;
  readonly callerSignal: EndSignal;
  /** Whether the answer had begun. */
  readonly hasBegun?: boolean;
}

/** Tells a disconnected caller, a passed deadline and a network failure apart. */
export function explain(
  error: unknown,
  { watchdog, callerSignal, hasBegun = false }: BrokenAttempt,
): UpstreamFailure | GatewayError {
  // A refusal whose body did not come is still one.
  const isRefused = error instanceof UpstreamFailure && error.details.status !== undefined;
  if (isRefused && !callerSignal.aborted) return error;
  if (watchdog.failure !== undefined) return watchdog.failure;
  if (callerSignal.aborted) return whyEnded(callerSignal);
  if (error instanceof UpstreamFailure || error instanceof GatewayError) return error;
  const kind = hasBegun ? "broken-answer" : kindBeforeAnswer(error);
  return new UpstreamFailure({ kind, message: messageOf(error) }, { cause: error });
}

function messageOf(error: unknown): string {
  if (error instanceof ProtocolError) return error.message;
  return `network error ${errorCode(error) ?? "unknown"}`;
}

/** A connection that broke may have carried the request; one that never opened did not. */
function kindBeforeAnswer(error: unknown): UpstreamFailureKind {
  if (error instanceof ProtocolError) return "broken-answer";
  if (!(error instanceof ClientError)) return "connect-failed";
  switch (error.stage) {
    case "connecting":
      return "connect-failed";
    case "unanswered":
      return "connection-lost";
    case "answering":
      return "broken-answer";
  }
}
