/** How the callers of a dialect send their API key, and how they are told to. */
export interface CredentialForm {
  /** What stands in the place of a key; empty when there is nothing. */
  read(headers: Headers): string;
  /** What a request must have, for operators. */
  readonly name: string;
  /** Where the key belongs, for callers: the end of a sentence. */
  readonly place: string;
  /** Headers of an answer that asks for a key. */
  readonly challenge: Readonly<Record<string, string>>;
}

/** `Authorization: Bearer KEY` */
export const bearer: CredentialForm = {
  read: (headers) => readBearer(headers.get("authorization")),
  name: "Authorization header with a Bearer key",
  place: "in the Authorization header (Authorization: Bearer YOUR_KEY)",
  challenge: { "www-authenticate": "Bearer" },
};

function readBearer(authorization: string | null): string {
  if (authorization === null) return "";
  const separator = authorization.indexOf(" ");
  if (separator !== 6 || authorization.slice(0, 6).toLowerCase() !== "bearer") return "";
  return authorization.slice(7).trim();
}
