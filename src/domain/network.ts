import { BlockList, isIP } from "node:net";

/** A set of networks. */
export interface NetworkList {
  /** False for a text that is not an address. */
  has(address: string): boolean;
}

/** Whether a text is a CIDR block such as `10.0.0.0/8` or `2001:db8::/32`, or a single address. */
export function isNetwork(text: string): boolean {
  return splitNetwork(text) !== undefined;
}

/** Ignores texts that `isNetwork` does not accept. */
export function createNetworkList(networks: readonly string[]): NetworkList {
  const list = new BlockList();
  for (const network of networks) {
    const parts = splitNetwork(network);
    if (parts !== undefined) list.addSubnet(parts.address, parts.prefixLength, parts.family);
  }
  return {
    has(address) {
      const version = isIP(address);
      return version !== 0 && list.check(address, version === 4 ? "ipv4" : "ipv6");
    },
  };
}

interface NetworkParts {
  readonly address: string;
  readonly prefixLength: number;
  readonly family: "ipv4" | "ipv6";
}

function splitNetwork(text: string): NetworkParts | undefined {
  const [address = "", length, ...more] = text.split("/");
  const version = isIP(address);
  // A zone is only meaningful on one machine.
  if (version === 0 || more.length > 0 || address.includes("%")) return undefined;
  const longest = version === 4 ? 32 : 128;
  const family = version === 4 ? "ipv4" : "ipv6";
  if (length === undefined) return { address, prefixLength: longest, family };
  if (!/^(?:0|[1-9][0-9]{0,2})$/.test(length) || Number(length) > longest) return undefined;
  return { address, prefixLength: Number(length), family };
}

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

/** The address of a listener. */
export function addressUrl({ hostname, port }: { hostname: string; port: number }): string {
  return `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
}

/** A trailing dot does not change the name. */
function plainHost(host: string): string {
  return host.toLowerCase().replace(/^\[|\]$|\.$/g, "");
}
