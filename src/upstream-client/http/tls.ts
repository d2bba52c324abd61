import type { Socket, TLSOptions } from "bun";
import { isIP } from "node:net";
import { checkServerIdentity } from "node:tls";
import type { Origin } from "./address.ts";

/**
 * TLS of connections to a server. The runtime checks its certificate against the server name, or
 * else the host that is connected to, and refuses it in the handshake.
 */
export function tlsOptions(origin: Origin): TLSOptions {
  const { tls } = origin.settings;
  const name = serverName(origin);
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

/**
 * Why a certificate is not that of the server, if it is not. For addresses, which the runtime does
 * not check in a tunnel.
 */
export function identityError(
  origin: Origin,
  socket: Pick<Socket, "getPeerCertificate">,
): Error | undefined {
  const name = serverName(origin);
  return isIP(name) === 0 ? undefined : checkServerIdentity(name, socket.getPeerCertificate());
}

function serverName({ hostname, settings: { tls } }: Origin): string {
  return tls?.serverName ?? hostname.replace(/\.$/, "");
}
