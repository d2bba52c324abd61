import type { ImageFetchSettings } from "../../domain/upstream-settings.ts";
import { isIP } from "node:net";
import { ImageFailure } from "./image-failure.ts";
import { addressReach } from "./public-address.ts";

/** Where an image lies, and the checked addresses to connect to for it. */
export interface ImageSource {
  readonly url: URL;
  /** Never empty; each may be connected to. */
  readonly addresses: readonly string[];
}

export type ResolveHost = (hostname: string) => Promise<readonly string[]>;

/** Bounds the tries at a host whose addresses do not answer. */
const mostAddresses = 3;

/** Reads an address that a caller or a redirect gave. Throws `ImageFailure`. */
export function parseImageUrl(text: string, settings: ImageFetchSettings, base?: URL): URL {
  const url = URL.parse(text, base?.href);
  if (url === null) throw new ImageFailure("its address is not a URL");
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw new ImageFailure("its address is neither http nor https");
  }
  if (url.username !== "" || url.password !== "") {
    throw new ImageFailure("its address holds credentials");
  }
  const isNamed = settings.allowedHosts.includes(nameOf(url));
  if (settings.allowedHosts.length > 0 && !isNamed) {
    throw new ImageFailure("its host is not one that images may come from");
  }
  // Services that are no web servers listen elsewhere; the operator answers for hosts by name.
  if (url.port !== "" && !isNamed) throw new ImageFailure("its port is not allowed");
  return url;
}

/**
 * Resolves a host once and checks all of its answers: the connection then goes to an address that
 * was checked, whatever the name resolves to a moment later. Throws `ImageFailure`.
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
  // One text for both, so that nobody learns which names exist inside.
  if (addresses.length === 0 || !addresses.every(isAllowed)) {
    throw new ImageFailure("its host has no address that images may come from");
  }
  return { url, addresses: addresses.slice(0, mostAddresses) };
}

/** Without the brackets of IPv6. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}

/** As operators write it: a name with the root's dot is the same name. */
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
