import { isIPv6 } from "node:net";

/**
 * What tries are counted by: an address, or the 64 bits that name a network of IPv6, since whoever
 * has one of its addresses has all of them.
 */
export function addressGroup(address: string): string {
  if (!isIPv6(address)) return address;
  // The form that `edge/client-address` writes: groups of hexadecimal digits, once `::`.
  const [head = "", tail] = address.split("::");
  const front = head.split(":").filter((group) => group !== "");
  const back = tail === undefined ? [] : tail.split(":").filter((group) => group !== "");
  const zeros = Array<string>(Math.max(0, 8 - front.length - back.length)).fill("0");
  return `${[...front, ...zeros, ...back].slice(0, 4).join(":")}::/64`;
}
