import type { Socket, TLSOptions } from "bun";
import { isIP } from "node:net";
import { checkServerIdentity } from "node:tls";
import type { Proxy } from "../../domain/upstream-settings.ts";
import type { Origin } from "./address.ts";
import { HeadBytes, ProtocolError, readHead } from "./answer/response-head.ts";
import { ClientError } from "./request-head.ts";

/** Asks a proxy to pass on the bytes of a connection (`CONNECT`; RFC 9110, section 9.3.6). */
export class Tunnel {
  readonly request: string;
  readonly #head = new HeadBytes();

  constructor({ hostname, port }: Origin, { authorization }: Proxy) {
    const host = `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
    const credential =
      authorization === undefined ? "" : `proxy-authorization: ${authorization}\r\n`;
    this.request = `CONNECT ${host} HTTP/1.1\r\nhost: ${host}\r\n${credential}\r\n`;
  }

  /** Reads the proxy's answer; true once the tunnel is open. Throws for a refusal. */
  push(bytes: Buffer): boolean {
    const taken = this.#head.take(bytes, 0);
    if (taken === undefined) return false;
    const { status } = readHead(taken.text);
    if (status < 200 || status > 299) throw new ClientError(`ProxyStatus${status}`, "connecting");
    // The server cannot have sent anything: TLS begins with the client.
    if (taken.restAt < bytes.length) throw new ProtocolError("the proxy sent more than its answer");
    return true;
  }
}

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

/** Why a certificate is not the server's. For addresses, not checked in a tunnel by the runtime. */
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
