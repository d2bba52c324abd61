import type { Proxies, Proxy } from "../../domain/upstream-settings.ts";

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
