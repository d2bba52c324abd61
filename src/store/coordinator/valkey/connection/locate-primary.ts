import type { Clock } from "../../../../domain/clock.ts";
import type { HostAndPort, ValkeyAddress } from "../../../../domain/addresses/valkey-address.ts";
import { Deadlines } from "./deadlines.ts";
import { listOf } from "./list-of.ts";
import { connectTimeoutMs, newClient } from "./server-line.ts";
import type { ServerSettings } from "./server-settings.ts";
import { explain } from "./look-at-server.ts";
import { unavailable, ValkeyUnavailable } from "./valkey-errors.ts";

/**
 * Finds the server of an address: itself, the next one of a cluster each time, or the primary that
 * the first Sentinel to answer names.
 */
export function locatePrimary(
  { topology, hosts, service }: ValkeyAddress,
  settings: ServerSettings,
  clock: Clock,
): () => Promise<HostAndPort> {
  if (topology !== "sentinel") return inTurn(hosts);
  // Sentinels have users of their own, and no databases.
  const toSentinel = { ...settings, username: "", password: "", database: 0 };
  const deadlines = new Deadlines(clock, connectTimeoutMs / 2);
  return async () => {
    const problems: { readonly host: HostAndPort; readonly error: unknown }[] = [];
    for (const host of hosts) {
      const sentinel = newClient(host, toSentinel);
      try {
        const parameters = ["GET-MASTER-ADDR-BY-NAME", service];
        const asked = sentinel.connect().then(() => sentinel.send("SENTINEL", parameters));
        return readPrimary(await deadlines.within(asked, () => undefined), service);
      } catch (error) {
        problems.push({ host, error });
      } finally {
        sentinel.close();
      }
    }
    const found = await Promise.all(
      problems.map(({ host, error }) =>
        explain(error, { server: host, settings: toSentinel, clock }),
      ),
    );
    const told = found.map(({ text }, index) => {
      const { host = "", port = 0 } = problems[index]?.host ?? {};
      return `${host}:${port}: ${text}`;
    });
    const [kind = "other", ...others] = new Set(found.map((problem) => problem.kind));
    throw unavailable({
      kind: others.length === 0 ? kind : "other",
      text: `no Sentinel names the primary: ${told.join("; ")}`,
    });
  };
}

function inTurn(hosts: readonly HostAndPort[]): () => Promise<HostAndPort> {
  let turn = 0;
  return async () => {
    const host = hosts[turn++ % hosts.length];
    if (host === undefined) throw new ValkeyUnavailable("no server is named");
    return host;
  };
}

function readPrimary(reply: unknown, service: string): HostAndPort {
  const [host, port] = listOf(reply);
  if (typeof host !== "string" || typeof port !== "string") {
    throw new ValkeyUnavailable(`it knows no service ${service}`);
  }
  return { host, port: Number(port) };
}
