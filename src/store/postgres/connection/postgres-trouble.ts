import { AlreadyExists, StillInUse, StorageUnavailable } from "../../errors.ts";

/** A failure of the database itself, not of a statement. */
export interface PostgresTrouble {
  readonly what: string;
  /** `wait`: the connection can be used on. `reconnect`: it must not. */
  readonly cure: "wait" | "reconnect";
  /** Whether reading may still work, so that only a change proves the end of the trouble. */
  readonly isOfChanges?: boolean;
}

/** Failures by class or code, https://www.postgresql.org/docs/current/errcodes-appendix.html. */
const troubles: ReadonlyMap<string, PostgresTrouble> = new Map([
  ["08", { what: "cannot be reached", cure: "reconnect" }],
  ["25006", { what: "is read-only", cure: "reconnect", isOfChanges: true }],
  ["25P02", { what: "rolled the transaction back", cure: "wait" }],
  ["25P03", { what: "ended an idle transaction", cure: "reconnect" }],
  ["28", { what: "refuses the user or the password", cure: "reconnect" }],
  ["3D", { what: "does not exist", cure: "reconnect" }],
  ["40", { what: "ended a transaction that conflicts with another", cure: "wait" }],
  ["53100", { what: "has no space left", cure: "reconnect", isOfChanges: true }],
  ["53", { what: "has no resources left", cure: "reconnect" }],
  ["55P03", { what: "is locked by another process", cure: "wait" }],
  ["57014", { what: "answers too slowly", cure: "wait" }],
  ["57", { what: "is stopping or starting", cure: "reconnect" }],
  ["58", { what: "cannot be read or written", cure: "reconnect" }],
  ["XX", { what: "is damaged", cure: "reconnect" }],
]);

/** The server's words for an address from which only encrypted connections are let in. */
const notEncrypted = /pg_hba\.conf.*(?:no encryption|SSL off)$/;
const refusesPlain: PostgresTrouble = {
  what: "accepts no connection without TLS from here, and its URL has no sslmode",
  cure: "reconnect",
};

/** The driver's words when the server answers that it has no TLS. */
const noTls = /server does not support SSL/;
const hasNoTls: PostgresTrouble = {
  what: "offers no TLS, which sslmode in its URL asks for",
  cure: "reconnect",
};

const unreachable: PostgresTrouble = { what: "cannot be reached", cure: "reconnect" };

/** Of an error of the driver; undefined for errors of a statement or its data. */
export function troubleOf(error: unknown): PostgresTrouble | undefined {
  const code = codeOf(error);
  if (code === undefined) {
    if (noTls.test(String(error))) return hasNoTls;
    return isOfConnection(error) ? unreachable : undefined;
  }
  if (code === "28000" && notEncrypted.test(String(error))) return refusesPlain;
  return troubles.get(code) ?? troubles.get(code.slice(0, 2));
}

/** Class 22 and 23: values that do not fit their columns, and violated constraints. */
export function isFaultOfData(error: unknown): boolean {
  return /^2[23]/.test(codeOf(error) ?? "");
}

/** Whether the server has no database of that name. */
export function isMissing(error: unknown): boolean {
  return error instanceof StorageUnavailable && codeOf(error.cause) === "3D000";
}

/** Whether the server lets only encrypted connections in. */
export function needsTls(error: unknown): boolean {
  return error instanceof StorageUnavailable && troubleOf(error.cause) === refusesPlain;
}

/** Whether the URL wants an encrypted connection, and the server offers none. */
export function lacksTls(error: unknown): boolean {
  return error instanceof StorageUnavailable && troubleOf(error.cause) === hasNoTls;
}

/** The error of a statement as callers handle it. */
export function meaningOf(error: unknown): unknown {
  const trouble = troubleOf(error);
  if (trouble !== undefined) {
    return new StorageUnavailable(`the database ${trouble.what}`, { cause: error });
  }
  const code = codeOf(error);
  if (code === "23505") return new AlreadyExists("the id or name is taken", { cause: error });
  if (code === "23503") return new StillInUse("others refer to it", { cause: error });
  return error;
}

/**
 * The driver throws plain errors for broken connections and time-outs, and the system's errors have
 * codes of their own. Others, such as a value that cannot be written, are faults of a statement.
 */
function isOfConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return "code" in error || Object.getPrototypeOf(error) === Error.prototype;
}

/** The code of an error that the server reported; the class is not used, as it loads the driver. */
function codeOf(error: unknown): string | undefined {
  const isReported = error instanceof Error && "severity" in error && "code" in error;
  return isReported && typeof error.code === "string" ? error.code : undefined;
}
