/** How the callers of a dialect send their API key, and how they are told to. */
export interface CredentialForm {
  /** The text sent as the key; empty when there is none. */
  read(headers: Headers): string;
  /** Name of the credential that a request must carry, for operators. */
  readonly name: string;
  /** The header of the key with an example, for callers. */
  readonly header: string;
  /** Headers of an answer that asks for a key. */
  readonly challenge: Readonly<Record<string, string>>;
}

/** `Authorization: Bearer KEY` */
export const bearer: CredentialForm = {
  read: (headers) => readBearer(headers.get("authorization")),
  name: "Authorization header with a Bearer key",
  header: "Authorization header (Authorization: Bearer YOUR_KEY)",
  challenge: { "www-authenticate": "Bearer" },
};

function readBearer(authorization: string | null): string {
  if (authorization === null) return "";
  const separator = authorization.indexOf(" ");
  if (separator !== 6 || authorization.slice(0, 6).toLowerCase() !== "bearer") return "";
  return authorization.slice(7).trim();
}
