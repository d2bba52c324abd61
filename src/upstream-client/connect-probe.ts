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
    const portNumber = Number(port) || (protocol === "https:" ? 443 : 80);
    // Of `node:net`, which can close a socket that is still connecting.
    const sockets: Socket[] = [];
    let isOver = false;
    const connectTo = (address: string): Promise<void> =>
      new Promise((resolve, reject) => {
        const socket = connect({ host: address, port: portNumber }, resolve);
        sockets.push(socket.on("error", reject));
      });
    const ask = async (): Promise<void> => {
      const addresses = isIP(host) === 0 ? await resolveHost(host) : [host];
      if (!isOver) await Promise.any(addresses.slice(0, mostAddresses).map(connectTo));
    };
    // An unresolvable host counts as answered: the attempt itself reports the error.
    const hasAnswered = await hasSettledWithin(ask(), timeoutMs, clock);
    isOver = true;
    for (const socket of sockets) socket.destroy();
    return hasAnswered;
  };
}

/** Resolves a host name to all its addresses with the system resolver. Rejects if it has none. */
export async function resolveHost(hostname: string): Promise<readonly string[]> {
  const found = await lookup(hostname, { all: true, verbatim: true });
  return found.map(({ address }) => address);
}
