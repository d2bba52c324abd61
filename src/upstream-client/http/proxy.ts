/** The forward proxies of the environment. */
export interface Proxies {
  readonly forHttp: Proxy | undefined;
  readonly forHttps: Proxy | undefined;
  /** Hosts that are reached directly, as in `NO_PROXY`. */
  readonly except: readonly string[];
}

export interface Proxy {
  readonly hostname: string;
  readonly port: number;
  /** The value of `proxy-authorization`. */
  readonly authorization: string | undefined;
}

export const noProxies: Proxies = { forHttp: undefined, forHttps: undefined, except: [] };

interface Place {
  readonly hostname: string;
  readonly port: number;
  readonly isSecure: boolean;
}

/** The proxy on the way to a server. */
export function proxyFor(place: Place, proxies: Proxies): Proxy | undefined {
  const proxy = place.isSecure ? proxies.forHttps : proxies.forHttp;
  if (proxy === undefined || isExcepted(place, proxies.except)) return undefined;
  return proxy;
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
