import ipaddr from "ipaddr.js";
import { isIP } from "node:net";
import type { ImageFetchSettings } from "../../domain/upstream-settings.ts";

/** The URL of an image and the checked addresses of its host. */
export interface ImageSource {
  readonly url: URL;
  /** Never empty. */
  readonly addresses: readonly string[];
}

export type ResolveHost = (hostname: string) => Promise<readonly string[]>;

/** Limit on the addresses of a host that are tried. */
const mostAddresses = 3;

/** Parses a URL from a caller or a redirect. Throws `ImageFailure`. */
export function parseImageUrl(text: string, settings: ImageFetchSettings, base?: URL): URL {
  const url = URL.parse(text, base?.href);
  if (url === null) throw new ImageFailure("its address is not a URL");
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw new ImageFailure("its address is neither http nor https");
  }
  if (url.username !== "" || url.password !== "") {
    throw new ImageFailure("its address contains credentials");
  }
  const isNamed = settings.allowedHosts.includes(nameOf(url));
  if (settings.allowedHosts.length > 0 && !isNamed) {
    throw new ImageFailure("its host is not one that images may come from");
  }
  // Other ports may belong to other services; allowed hosts are the operator's responsibility.
  if (url.port !== "" && !isNamed) throw new ImageFailure("its port is not allowed");
  return url;
}

/**
 * Resolves a host once and checks all its addresses. The connection then uses a checked address,
 * even if the name resolves differently later. Throws `ImageFailure`.
 */
export async function locateImage(
  url: URL,
  settings: ImageFetchSettings,
  resolveHost: ResolveHost,
): Promise<ImageSource> {
  const name = hostOf(url);
  const addresses = isIP(name) === 0 ? await resolved(name, resolveHost) : [name];
  const isAllowed = (address: string): boolean => {
    const reach = addressReach(address);
    return reach === "public" || (reach === "private" && settings.allowsPrivateAddresses);
  };
  // The same message for both, so that internal names are not revealed.
  if (addresses.length === 0 || !addresses.every(isAllowed)) {
    throw new ImageFailure("its host has no address that images may come from");
  }
  return { url, addresses: addresses.slice(0, mostAddresses) };
}

/** The host name without brackets of IPv6. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}

/** The host name without a trailing dot, as operators write it. */
function nameOf(url: URL): string {
  return url.hostname.replace(/\.$/, "");
}

async function resolved(name: string, resolveHost: ResolveHost): Promise<readonly string[]> {
  try {
    return await resolveHost(name);
  } catch {
    return [];
  }
}

/**
 * Whether an address is public, private or neither. `reserved` addresses never have images:
 * link-local ones with the metadata services of clouds, multicast, documentation, and tunnels that
 * hide another address.
 */
type AddressReach = "public" | "private" | "reserved";

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

/** Why an image could not be fetched, in words for the caller. */
export class ImageFailure extends Error {
  override readonly name = "ImageFailure";
}
