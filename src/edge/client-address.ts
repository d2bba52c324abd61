import { isIP } from "node:net";
import type { NetworkList } from "../domain/network.ts";

/** Stands for an address that no trusted peer named; no network contains it. */
export const unknownAddress = "unknown";

/**
 * The address of a request's caller. Callers can write anything into `x-forwarded-for`, and trusted
 * proxies append to it, so it is read from the right: the first address that is not a trusted proxy
 * is the caller. The header of an untrusted peer is ignored.
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
    // The trusted proxy did not know its peer, so the entries further left prove nothing.
    if (address === undefined) return unknownAddress;
    if (!trustedProxies.has(address)) return address;
  }
  return address;
}

/** The form that network lists compare: without port, brackets and zone. */
function readAddress(text: string): string | undefined {
  const host = bracketed.exec(text)?.[1] ?? withPort.exec(text)?.[1] ?? text;
  const [address = ""] = host.split("%", 1);
  const version = isIP(address);
  if (version === 0) return undefined;
  return version === 4 ? address : unmapped(address);
}

const bracketed = /^\[([^\]]*)\](?::[0-9]{1,5})?$/;
const withPort = /^([0-9.]+):[0-9]{1,5}$/;

/** Turns an IPv4-mapped address, which dual-stack listeners report, into IPv4. */
function unmapped(address: string): string {
  // The URL parser writes every spelling of an IPv6 address in its canonical form.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const mapped = mappedPattern.exec(canonical);
  if (mapped === null) return canonical;
  const high = Number.parseInt(mapped[1] ?? "", 16);
  const low = Number.parseInt(mapped[2] ?? "", 16);
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

const mappedPattern = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/;
