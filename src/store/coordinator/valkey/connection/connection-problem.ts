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
  | "other";

export interface ConnectionProblem {
  readonly kind: ProblemKind;
  /** For logs: no password. */
  readonly text: string;
}

const kinds: Readonly<Record<string, ProblemKind>> = {
  WRONGPASS: "password",
  NOAUTH: "password",
  NOPERM: "rights",
};

/** A problem in the server's own words, such as `WRONGPASS invalid username-password pair`. */
export function problemOfReply(text: string): ConnectionProblem {
  const [code = ""] = text.split(" ", 1);
  return { kind: kinds[code] ?? "other", text };
}
