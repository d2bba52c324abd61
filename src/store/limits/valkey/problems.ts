/** What keeps a connection from being made, or a command from being decided. */
export type ProblemKind =
  | "refused"
  | "unknown-host"
  | "silent"
  | "certificate"
  | "encryption"
  | "password"
  | "rights"
  | "replica"
  | "topology"
  | "database"
  | "other";

/** The server has not answered in time, cannot be reached, or cannot decide now. */
export class ValkeyUnavailable extends Error {
  override readonly name = "ValkeyUnavailable";
  readonly kind: ProblemKind;
  /** The answer that did not come in time; it may have taken effect. */
  readonly late: Promise<unknown> | undefined;

  constructor(text: string, kind: ProblemKind = "other", late?: Promise<unknown>) {
    super(text);
    this.kind = kind;
    this.late = late;
    // Whoever does not wait for it any more need not handle its failure.
    late?.catch(() => undefined);
  }
}

export interface ConnectionProblem {
  /** `script`: the server works, and the request was wrong. */
  readonly kind: ProblemKind | "script";
  /** For logs: no password. */
  readonly text: string;
}

/** What an error of the client, or of a server, tells. */
export function problemOf(error: unknown): ConnectionProblem {
  const text = error instanceof Error ? error.message : String(error);
  if (error instanceof ValkeyUnavailable) return { kind: error.kind, text };
  // Of all servers of a cluster that were asked for the others.
  if (error instanceof Error && "lastNodeError" in error) return problemOf(error.lastNodeError);
  return (
    ofAddress(codeOf(error), text) ??
    ofReply(text) ?? { kind: "other", text: "the connection was closed" }
  );
}

function ofAddress(code: string, text: string): ConnectionProblem | undefined {
  if (code === "ECONNREFUSED") return { kind: "refused", text: "the connection was refused" };
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return { kind: "unknown-host", text: `its host was not found (${text})` };
  }
  if (code.startsWith("ERR_SSL") || /wrong version number/i.test(text)) {
    return { kind: "encryption", text: `TLS could not be agreed on: ${text}` };
  }
  if (/certificate|self.signed|altname/i.test(`${code} ${text}`)) {
    return { kind: "certificate", text: `its certificate is not accepted: ${text}` };
  }
  if (code === "ETIMEDOUT") return { kind: "silent", text: "no answer to the connection" };
  if (/cluster support disabled/.test(text)) {
    return { kind: "topology", text: "the server is no cluster" };
  }
  if (/unknown command .sentinel/i.test(text)) {
    return { kind: "topology", text: "the server is no Sentinel" };
  }
  if (/All sentinels are unreachable/.test(text)) {
    return { kind: "other", text: `no Sentinel names the primary: ${text}` };
  }
  return undefined;
}

/** A problem in the server's own words, such as `WRONGPASS invalid username-password pair`. */
function ofReply(reply: string): ConnectionProblem | undefined {
  const [, code = "", inScript] =
    /^([A-Z]{2,})\b(?:.*\b(NOPERM|READONLY|OOM)\b)?/s.exec(reply) ?? [];
  // Some servers repeat arguments, and all explain at length.
  const [text = ""] = reply.split(/, with args|\. |\n/, 1);
  switch (inScript ?? code) {
    case "":
      return undefined;
    case "WRONGPASS":
    case "NOAUTH":
      return { kind: "password", text };
    case "NOPERM":
      return { kind: "rights", text };
    case "READONLY":
      return { kind: "replica", text: "it is a replica" };
    case "ERR":
    case "WRONGTYPE":
    case "CROSSSLOT":
      return /unauthenticated|without any password/i.test(text)
        ? { kind: "password", text }
        : { kind: "script", text };
    default:
      return { kind: "other", text };
  }
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : "";
  return typeof code === "string" ? code : "";
}
