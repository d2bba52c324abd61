import { isIPv4, isIPv6 } from "node:net";

/**
 * Who can be reached at an address. `reserved` is what no image lies at: link-local addresses with
 * the metadata services of clouds, multicast, documentation, tunnels that hide another address.
 */
export type AddressReach = "public" | "private" | "reserved";

interface Block {
  readonly bits: bigint;
  readonly length: number;
  readonly reach: AddressReach;
}

/** IANA's special-purpose registry for IPv4, and addresses that clouds use for themselves. */
const blocks4: readonly Block[] = [
  block4("0.0.0.0/8", "reserved"),
  block4("10.0.0.0/8", "private"),
  // A cloud's metadata service within the shared address space.
  block4("100.100.100.200/32", "reserved"),
  block4("100.64.0.0/10", "private"),
  block4("127.0.0.0/8", "private"),
  // A cloud's host agent at an address that looks public.
  block4("168.63.129.16/32", "reserved"),
  block4("169.254.0.0/16", "reserved"),
  block4("172.16.0.0/12", "private"),
  block4("192.0.0.0/24", "reserved"),
  block4("192.0.2.0/24", "reserved"),
  block4("192.88.99.0/24", "reserved"),
  block4("192.168.0.0/16", "private"),
  block4("198.18.0.0/15", "reserved"),
  block4("198.51.100.0/24", "reserved"),
  block4("203.0.113.0/24", "reserved"),
  block4("224.0.0.0/3", "reserved"),
];

/** For IPv6 only 2000::/3 is given out, so everything else needs a reason to be reachable. */
const blocks6: readonly Block[] = [
  block6("::1", 128, "private"),
  // Metadata services of clouds within the unique local addresses.
  block6("fd00:ec2::", 32, "reserved"),
  block6("fd20:ce::254", 128, "reserved"),
  block6("fc00::", 7, "private"),
  // Teredo, ORCHID, benchmarks and other protocol assignments.
  block6("2001::", 23, "reserved"),
  block6("2001:db8::", 32, "reserved"),
  // 6to4 hides an IPv4 address.
  block6("2002::", 16, "reserved"),
  block6("3fff::", 20, "reserved"),
  block6("2000::", 3, "public"),
];

/** IPv4 in IPv6: mapped, and translated by NAT64 where a network has IPv6 alone. */
const carriers: readonly Block[] = [
  block6("::ffff:0:0", 96, "public"),
  block6("64:ff9b::", 96, "public"),
];

/** `address` as a resolver or `URL` writes it, without brackets; anything else is `reserved`. */
export function addressReach(address: string): AddressReach {
  if (isIPv4(address)) return reach4(bits4(address));
  if (!isIPv6(address) || address.includes("%")) return "reserved";
  const bits = bits6(address);
  if (carriers.some((block) => contains(block, bits, 128))) return reach4(bits & 0xffff_ffffn);
  return blocks6.find((block) => contains(block, bits, 128))?.reach ?? "reserved";
}

function reach4(bits: bigint): AddressReach {
  return blocks4.find((block) => contains(block, bits, 32))?.reach ?? "public";
}

function contains(block: Block, bits: bigint, width: number): boolean {
  const rest = BigInt(width - block.length);
  return block.bits >> rest === bits >> rest;
}

function block4(text: string, reach: AddressReach): Block {
  const [address = "", length] = text.split("/");
  return { bits: bits4(address), length: Number(length), reach };
}

function block6(address: string, length: number, reach: AddressReach): Block {
  return { bits: bits6(address), length, reach };
}

function bits4(address: string): bigint {
  return address.split(".").reduce((bits, part) => bits * 256n + BigInt(part), 0n);
}

/** Eight groups of 16 bits; `::` stands for as many zero groups as are missing. */
function bits6(address: string): bigint {
  const [head = "", tail] = address.split("::");
  const left = groupsOf(head);
  const right = groupsOf(tail ?? "");
  const missing = Array.from({ length: 8 - left.length - right.length }, () => 0n);
  return [...left, ...missing, ...right].reduce((bits, group) => bits * 65_536n + group, 0n);
}

/** The last group may be an IPv4 address, which is two groups. */
function groupsOf(text: string): readonly bigint[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => {
    if (!group.includes(".")) return [BigInt(`0x${group}`)];
    const bits = bits4(group);
    return [bits >> 16n, bits & 0xffffn];
  });
}
