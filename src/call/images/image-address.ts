import type { ImageFetchSettings } from "../../domain/upstream-settings.ts";
import { isIP } from "node:net";
import { ImageFailure } from "./image-failure.ts";
import { addressReach } from "./public-address.ts";

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
