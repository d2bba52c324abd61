import ipaddr from "ipaddr.js";

/** An IPv4 address, or the /64 network of an IPv6 address, which is usually one customer's. */
export function addressGroup(address: string): string {
  if (!ipaddr.IPv6.isValid(address)) return address;
  const network = ipaddr.IPv6.parse(address).parts.slice(0, 4);
  return `${network.map((part) => part.toString(16)).join(":")}::/64`;
}
