import { lookup } from "node:dns/promises";

/** Resolves a host name to all its addresses with the system resolver. Rejects if it has none. */
export async function resolveHost(hostname: string): Promise<readonly string[]> {
  const found = await lookup(hostname, { all: true, verbatim: true });
  return found.map(({ address }) => address);
}
