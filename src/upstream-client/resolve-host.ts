import { lookup } from "node:dns/promises";

/** Every address of a host name, as the system resolves it. Rejects when it has none. */
export async function resolveHost(hostname: string): Promise<readonly string[]> {
  const found = await lookup(hostname, { all: true, verbatim: true });
  return found.map(({ address }) => address);
}
