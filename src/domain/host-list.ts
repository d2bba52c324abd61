import { createNetworkList, isNetwork } from "./network.ts";

/** A set of host names and addresses. */
export interface HostList {
  /** `host` as in a URL: without port, IPv6 with or without brackets. */
  has(host: string): boolean;
}

/** Takes names, addresses, networks such as `10.0.0.0/8`, or `*` for any host. */
export function createHostList(hosts: readonly string[]): HostList {
  const plain = hosts.map(plainHost);
  const names = new Set(plain);
  const networks = createNetworkList(plain.filter(isNetwork));
  return {
    has(host) {
      const asked = plainHost(host);
      return names.has("*") || names.has(asked) || networks.has(asked);
    },
  };
}

/** Whether a host is the local machine, without name resolution. */
export function isLoopback(host: string): boolean {
  return loopback.has(host);
}

export const loopbackHosts: readonly string[] = ["localhost", "127.0.0.0/8", "::1"];
const loopback = createHostList(loopbackHosts);

/** A trailing dot does not change the name. */
function plainHost(host: string): string {
  return host.toLowerCase().replace(/^\[|\]$|\.$/g, "");
}
