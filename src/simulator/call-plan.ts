import type { Clock } from "../domain/clock.ts";
import type { BedrockService } from "./bedrock/bedrock-service.ts";
import type { Fault } from "./faults/fault-mode.ts";
import type { FaultChooser } from "./faults/fault-chooser.ts";
import type { Reply } from "./frame.ts";
import type { OpenCall } from "./open-call.ts";

/** The reply to a call and its fault. */
export interface Plan {
  readonly reply: Reply;
  readonly fault: Fault;
}

/** What both wires need to plan a call. */
export interface PlanParts {
  readonly clock: Clock;
  readonly faults: FaultChooser;
  /** Keys for OpenAI's wire. Undefined: any. */
  readonly apiKeys: ReadonlySet<string> | undefined;
  /** For models whose names do not contain one. Undefined: no limit. */
  readonly contextWindow: number | undefined;
  readonly bedrock: BedrockService;
}

export interface IncomingCall {
  readonly request: Request;
  readonly call: OpenCall;
}
