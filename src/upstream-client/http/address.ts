import type { TransportRequest } from "../transport.ts";
import type { ConnectionSettings, Proxies, Proxy } from "../../domain/upstream-settings.ts";

/** Where requests to one server go, and how. */
export interface Origin {
  /** Differs wherever a connection cannot be shared. */
  readonly key: string;
  /** Without the brackets of an IPv6 address. */
  readonly hostname: string;
  readonly port: number;
  readonly isSecure: boolean;
  /** Undefined: connections are made directly. */
  readonly proxy: Proxy | undefined;
  readonly settings: ConnectionSettings;
}

/** A URL as requests need it. */
export interface Address {
  readonly origin: Origin;
  /** The value of the `host` header. */
  readonly host: string;
  /** The target of the request line. */
  readonly target: string;
  /** The fields of its last request: most have the same ones. */
  written?: WrittenFields;
}

/** The lines of a head that do not depend on the body. */
interface WrittenFields extends Pick<TransportRequest, "method" | "headers"> {
  readonly text: string;
}

/** Upstreams have a few addresses for each of their models. */
const mostAddresses = 4_096;

/** Remembers the parts of URLs, which are the same for most requests. */
export class Addresses {
  readonly #proxies: Proxies;
  readonly #known = new Map<string, Map<string, Address>>();
  #count = 0;

  constructor(proxies: Proxies) {
    this.#proxies = proxies;
  }

  /** Throws a `TypeError` for a URL that is not an HTTP URL. */
  find(url: string, settings: ConnectionSettings): Address {
    const found = this.#known.get(settings.id)?.get(url);
    if (found !== undefined) return found;
    const address = parseAddress(url, settings, this.#proxies);
    if (this.#count >= mostAddresses) {
      this.#known.clear();
      this.#count = 0;
    }
    const known = this.#known.get(settings.id) ?? new Map<string, Address>();
    this.#known.set(settings.id, known.set(url, address));
    this.#count += 1;
    return address;
  }
}

function parseAddress(url: string, settings: ConnectionSettings, proxies: Proxies): Address {
  const { protocol, hostname, port, host, pathname, search, origin } = new URL(url);
  const isSecure = protocol === "https:";
  if (!isSecure && protocol !== "http:") throw new TypeError("the URL is not one of HTTP");
  const place = {
    hostname: hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? (isSecure ? 443 : 80) : Number(port),
    isSecure,
  };
  const proxy = proxyFor(place, proxies);
  const path = `${pathname}${search}`;
  return {
    origin: { ...place, key: `${settings.id} ${origin}`, proxy, settings },
    host,
    // A proxy needs the whole URL, unless it only passes on bytes (RFC 9112, section 3.2.2).
    target: proxy !== undefined && !isSecure ? `${origin}${path}` : path,
  };
}

interface Place {
  readonly hostname: string;
  readonly port: number;
  readonly isSecure: boolean;
}

/** The proxy on the way to a server. */
export function proxyFor(place: Place, proxies: Proxies): Proxy | undefined {
  const proxy = place.isSecure ? proxies.forHttps : proxies.forHttp;
  if (proxy === undefined || isOwn(place) || isExcepted(place, proxies.except)) return undefined;
  return proxy;
}

/** This machine is never reached through a proxy. */
function isOwn({ hostname }: Place): boolean {
  return hostname === "localhost" || hostname === "::1" || /^127(\.\d+){3}$/.test(hostname);
}

/**
 * As curl and most other programs do: `*` is every host, a name stands for itself and all names
 * below it, with or without a leading dot, and a port may follow.
 */
function isExcepted({ hostname, port }: Place, except: readonly string[]): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, "");
  return except.some((entry) => {
    if (entry === "*") return true;
    const [, name = entry, ownPort] = /^(.*[^:]):(\d+)$/.exec(entry) ?? [];
    if (ownPort !== undefined && Number(ownPort) !== port) return false;
    const bare = name.replace(/^\[|\]$/g, "").replace(/^\*?\.|\.$/g, "");
    return bare !== "" && (host === bare || host.endsWith(`.${bare}`));
  });
}
