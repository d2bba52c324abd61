import ipaddr from "ipaddr.js";

/**
 * What tries are counted by: an address, or the 64 bits that name a network of IPv6, since whoever
 * has one of its addresses has all of them.
 */
export function addressGroup(address: string): string {
  if (!ipaddr.IPv6.isValid(address)) return address;
  const network = ipaddr.IPv6.parse(address).parts.slice(0, 4);
  return `${network.map((part) => part.toString(16)).join(":")}::/64`;
}
