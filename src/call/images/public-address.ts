import ipaddr from "ipaddr.js";
import { isIP } from "node:net";

/**
 * Whether an address is public, private or neither. `reserved` addresses never have images:
 * link-local ones with the metadata services of clouds, multicast, documentation, and tunnels that
 * hide another address.
 */
export type AddressReach = "public" | "private" | "reserved";

/** Names that the library gives to IANA's special-purpose ranges. */
const privateRanges = new Set(["private", "loopback", "carrierGradeNat", "uniqueLocal"]);

/** Metadata services and host agents of clouds, at addresses that look private or public. */
const metadata = ["100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::/32", "fd20:ce::254/128"];
const ranges = {
  metadata: metadata.map((block) => ipaddr.parseCIDR(block)),
  /** An IPv4 address, as translated in networks that have only IPv6. */
  nat64: [ipaddr.parseCIDR("64:ff9b::/96")],
  /** The allocated part of IPv6. */
  assigned: [ipaddr.parseCIDR("2000::/3")],
};

/** `address` as a resolver or `URL` writes it, without brackets; anything else is `reserved`. */
export function addressReach(address: string): AddressReach {
  // The library would guess the meaning of `0x7f.1` and of `::10.0.0.1`, which is not IPv4.
  const isGuess = isIP(address) === 0 || address.includes("%") || /^::[0-9]+\./.test(address);
  return isGuess ? "reserved" : reachOf(ipaddr.process(address));
}

function reachOf(address: ipaddr.IPv4 | ipaddr.IPv6): AddressReach {
  const own = ipaddr.subnetMatch(address, ranges, "none");
  if (own === "nat64") return reachOf(new ipaddr.IPv4(address.toByteArray().slice(12)));
  const range = address.range();
  if (own === "metadata") return "reserved";
  if (privateRanges.has(range)) return "private";
  const isGivenOut = own === "assigned" || address.kind() === "ipv4";
  return range === "unicast" && isGivenOut ? "public" : "reserved";
}
