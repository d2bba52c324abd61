import { connect, isIP, type Socket } from "node:net";
import { lookup } from "node:dns/promises";
import type { Clock } from "../domain/clock.ts";
import { hasSettledWithin } from "../domain/waiting/wait.ts";
import type { ConnectProbe } from "./host-probes.ts";

/** Addresses of one host that a probe tries at once; most hosts have fewer. */
const mostAddresses = 8;

interface ConnectProbeOptions {
  /** All addresses of a host name. */
  readonly resolveHost: (hostname: string) => Promise<readonly string[]>;
  readonly clock: Pick<Clock, "schedule">;
}

/**
 * Makes a probe that connects to the host by TCP. The host has answered when one address accepts
 * the connection or all refuse it: a server that is shutting down refuses new connections while it
 * finishes the open ones.
 */
export function connectProbe({ resolveHost, clock }: ConnectProbeOptions): ConnectProbe {
  return async (url, timeoutMs) => {
    const { hostname, port, protocol } = new URL(url);
    const host = hostname.replace(/^\[|\]$/g, "");
    const portNumber = port === "" ? defaultPort(protocol) : Number(port);
    using sockets = new ProbeSockets();
    const ask = async (): Promise<void> => {
      const addresses = isIP(host) === 0 ? await resolveHost(host) : [host];
      await sockets.connectAny(addresses.slice(0, mostAddresses), portNumber);
    };
    // An unresolvable host counts as answered: the attempt itself reports the error.
    return await hasSettledWithin(ask(), timeoutMs, clock);
  };
}

/** Uses `node:net` because it can close a socket that is still connecting. */
class ProbeSockets implements Disposable {
  readonly #sockets: Socket[] = [];
  #isOver = false;

  /** Resolves on the first connection; rejects when all addresses have refused. */
  async connectAny(addresses: readonly string[], port: number): Promise<void> {
    if (this.#isOver) return;
    await Promise.any(addresses.map((address) => this.#connect(address, port)));
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  #connect(host: string, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port }, resolve);
      this.#sockets.push(socket);
      socket.on("error", reject);
    });
  }
}

function defaultPort(protocol: string): number {
  return protocol === "https:" ? 443 : 80;
}

/** Resolves a host name to all its addresses with the system resolver. Rejects if it has none. */
export async function resolveHost(hostname: string): Promise<readonly string[]> {
  const found = await lookup(hostname, { all: true, verbatim: true });
  return found.map(({ address }) => address);
}
