import type { TLSOptions } from "bun";
import { isIP } from "node:net";
import type { Origin } from "./address.ts";

/**
 * TLS of connections to a server. The runtime checks its certificate against the name or address
 * that is connected to, and refuses it in the handshake.
 */
export function tlsOptions({ hostname, settings: { tls } }: Origin): TLSOptions {
  const name = tls?.serverName ?? hostname.replace(/\.$/, "");
  return {
    rejectUnauthorized: true,
    ALPNProtocols: "http/1.1",
    // An address is no name of a server (RFC 6066, section 3).
    ...(isIP(name) === 0 && { serverName: name }),
    ...(tls?.authorities !== undefined && { ca: tls.authorities }),
    ...(tls?.certificate !== undefined && { cert: tls.certificate }),
    ...(tls?.key !== undefined && { key: tls.key.reveal() }),
  };
}
