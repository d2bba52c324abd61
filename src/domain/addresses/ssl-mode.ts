/** The modes that mean `verify-full` here, in a URL of PostgreSQL; other programs verify less. */
export const verifiedSslModes = /(?<before>[?&]sslmode=)(?<mode>prefer|require|verify-ca)(?=&|#|$)/;

/** Such a mode of a URL; undefined if it has none, or asks for the meaning of other programs. */
export function verifiedSslMode(url: string): string | undefined {
  if (/[?&]uselibpqcompat=true(?=&|#|$)/.test(url)) return undefined;
  return verifiedSslModes.exec(url)?.groups?.["mode"];
}
