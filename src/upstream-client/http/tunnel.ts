import type { Proxy } from "../../domain/upstream-settings.ts";
import type { Origin } from "./address.ts";
import { ProtocolError } from "./answer/protocol-error.ts";
import { ClientError } from "./client-error.ts";
import { HeadBytes } from "./answer/head-bytes.ts";
import { readHead } from "./answer/response-head.ts";

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
