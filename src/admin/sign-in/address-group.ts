import { isIPv6 } from "node:net";

/**
 * What tries are counted by: an address, or the 64 bits that name a network of IPv6, since whoever
 * has one of its addresses has all of them.
 */
export function addressGroup(address: string): string {
  if (!isIPv6(address)) return address;
  const mapped = /^::ffff:([0-9.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = "", tail = ""] = address.replace(/%.*$/, "").split("::");
  const front = head.split(":").filter((group) => group !== "");
  const back = tail.split(":").filter((group) => group !== "");
  // An address in dotted form at the end stands for two groups.
  const length = front.length + back.length + (address.includes(".") ? 1 : 0);
  const zeros = address.includes("::") ? Array<string>(8 - length).fill("0") : [];
  const network = [...front, ...zeros, ...back].slice(0, 4);
  return network.map((group) => Number.parseInt(group, 16).toString(16)).join(":");
}
