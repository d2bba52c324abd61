import { type ConnectionProblem, type ProblemKind, problemOfReply } from "./connection-problem.ts";

/** The server has not answered in time, cannot be reached, or cannot decide now. */
export class ValkeyUnavailable extends Error {
  override readonly name = "ValkeyUnavailable";
  /** False: the server has certainly not received the command. */
  isSent = true;
  kind: ProblemKind = "other";
}

export function unavailable({ kind, text }: ConnectionProblem): ValkeyUnavailable {
  return Object.assign(new ValkeyUnavailable(text), { kind });
}

export function notSent(text: string, kind: ProblemKind = "other"): ValkeyUnavailable {
  return Object.assign(unavailable({ kind, text }), { isSent: false });
}

/** What an error tells of the server, without looking at it. */
export function problemOf(error: unknown): ConnectionProblem {
  if (error instanceof ValkeyUnavailable) return { kind: error.kind, text: error.message };
  const text = error instanceof Error ? error.message : String(error);
  return problemOfReply(text === "Connection closed" ? "the connection was closed" : text);
}

/** Whether an error only tells that there was no answer, so that a look may tell more. */
export function isVague(error: unknown): boolean {
  const { kind, text } = problemOf(error);
  return kind === "other" && !/^[A-Z]+ /.test(text);
}

/** Error replies after which the server is asked for again: it may have been replaced. */
const replacedCodes = ["READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN"];
/** Error replies of a server that works, but not for this caller or not now. */
const refusingCodes = ["OOM", "NOPERM", "NOAUTH", "WRONGPASS", "MISCONF", "NOREPLICAS", "BUSY"];
/** Error replies while a slot of a cluster moves, or after it has moved. */
const movingCodes = ["TRYAGAIN", "MOVED", "ASK"];

export function errorCode(error: unknown): string {
  return error instanceof Error ? (/^[A-Z]+(?= |$)/.exec(error.message)?.[0] ?? "") : "";
}

export function isReplaced(error: unknown): boolean {
  return replacedCodes.includes(errorCode(error));
}

/** Whether the slot of the keys is on its way to another server, or there. */
export function isMoving(error: unknown): error is Error {
  return error instanceof Error && movingCodes.includes(errorCode(error));
}

/** Whether this is the answer of a server to a wrong request, so an error of the program. */
export function isWrongRequest(error: unknown): boolean {
  if (!hasCode(error, "ERR_REDIS_SERVER_ERROR")) return false;
  return !isReplaced(error) && !refusingCodes.includes(errorCode(error)) && !isMoving(error);
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
