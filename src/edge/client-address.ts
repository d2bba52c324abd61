import { isIP } from "node:net";
import type { NetworkList } from "../domain/network.ts";

/** Of a caller whose address nobody trustworthy tells; no network contains it. */
export const unknownAddress = "unknown";

/**
 * The address of a request's caller. `x-forwarded-for` is the caller's own text but for the part
 * that trusted proxies have added at its end, so it is read from the right: the first address that
 * is no trusted proxy is the caller. Without a trusted peer the header is not looked at.
 */
export function clientAddress(
  peer: string | undefined,
  forwardedFor: () => string | null,
  trustedProxies: NetworkList,
): string {
  let address = peer === undefined ? undefined : readAddress(peer);
  if (address === undefined) return unknownAddress;
  if (!trustedProxies.has(address)) return address;
  const hops = (forwardedFor() ?? "").split(",");
  for (const hop of hops.toReversed()) {
    const text = hop.trim();
    if (text === "") continue;
    address = readAddress(text);
    // A trusted proxy says that it does not know: whatever stands further left is not its word.
    if (address === undefined) return unknownAddress;
    if (!trustedProxies.has(address)) return address;
  }
  return address;
}

/** An address in the form that network lists compare, without port, brackets and zone. */
function readAddress(text: string): string | undefined {
  const host = bracketed.exec(text)?.[1] ?? withPort.exec(text)?.[1] ?? text;
  const [address = ""] = host.split("%", 1);
  const version = isIP(address);
  if (version === 0) return undefined;
  return version === 4 ? address : unmapped(address);
}

const bracketed = /^\[([^\]]*)\](?::[0-9]{1,5})?$/;
const withPort = /^([0-9.]+):[0-9]{1,5}$/;

/** IPv4 as a listener of both versions sees it, `::ffff:10.0.0.1`, is IPv4. */
function unmapped(address: string): string {
  // The URL parser writes every spelling of an IPv6 address in the one canonical way.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const mapped = mappedPattern.exec(canonical);
  if (mapped === null) return canonical;
  const high = Number.parseInt(mapped[1] ?? "", 16);
  const low = Number.parseInt(mapped[2] ?? "", 16);
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

const mappedPattern = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/;
