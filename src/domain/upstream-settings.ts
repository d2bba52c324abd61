import type { Secret } from "./keys/secret.ts";

/** Time limits of one attempt. */
export interface Timeouts {
  readonly connectMs: number;
  /** From the request to the first byte of a streamed answer. Infinite for a whole one. */
  readonly firstByteMs: number;
  /** Between two chunks of the answer. */
  readonly idleMs: number;
  readonly totalMs: number;
}

/** How connections to an upstream are made and kept. */
export interface ConnectionSettings {
  /** Equal for equal settings. Only upstreams with the same id share connections. */
  readonly id: string;
  /** How long a connection may be idle, unless the server says less. */
  readonly idleMs: number;
  /** After this time a connection carries no further request. */
  readonly ageMs: number;
  /** Limit on idle connections to one host. */
  readonly mostIdle: number;
  readonly tls: ConnectionTls | undefined;
}

/** Texts in PEM format. */
export interface ConnectionTls {
  /** Replaces the default certificate authorities. */
  readonly authorities: string | undefined;
  readonly certificate: string | undefined;
  readonly key: Secret | undefined;
  /** Replaces the host of the URL. */
  readonly serverName: string | undefined;
}

/** Reads answers to the end after the caller has left, to get the usage that is billed anyway. */
export interface DrainSettings {
  readonly timeoutMs: number;
  /** Limit on drained answers of the upstream; further ones are aborted. */
  readonly limit: number;
}

/**
 * How a caller's names of its end users leave for an upstream: as pseudonyms of its account, as they
 * are, or not at all.
 */
export type EndUserForwarding = "pseudonym" | "as_sent" | "none";

/** How calls are stored with the end users that their callers name. */
export type StoredEndUsers = "off" | "pseudonym" | "clear";

/** How images are fetched by URL for upstreams that only accept their content. */
export interface ImageFetchSettings {
  readonly enabled: boolean;
  /** Limit on the size of one image. */
  readonly maxBytes: number;
  /** Time for one image, redirects included. */
  readonly timeoutMs: number;
  /** Limit on images of one request. */
  readonly maxImages: number;
  /** Lower case, without port: any port is allowed. Empty: any host. */
  readonly allowedHosts: readonly string[];
  /** Cloud metadata services are never reachable, whatever this says. */
  readonly allowsPrivateAddresses: boolean;
}

/** The forward proxies on the way to upstreams. */
export interface Proxies {
  readonly forHttp: Proxy | undefined;
  readonly forHttps: Proxy | undefined;
  /** Hosts that are reached directly, as in `NO_PROXY`, in lower case. */
  readonly except: readonly string[];
}

export interface Proxy {
  /** Without the brackets of an IPv6 address. */
  readonly hostname: string;
  readonly port: number;
  /** The value of `proxy-authorization`. */
  readonly authorization: string | undefined;
}

export const noProxies: Proxies = { forHttp: undefined, forHttps: undefined, except: [] };
