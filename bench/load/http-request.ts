import type { Destination } from "../stand/stand.ts";
import type { LoadRequest } from "./requests.ts";

/** A complete HTTP request as bytes of the wire. */
export function requestBytes({ path, body }: LoadRequest, destination: Destination): Buffer {
  const headers = Object.entries(destination.headers).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${destination.port}\r\n` +
      `${headers.join("")}content-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** A socket whose writes may be taken in part. */
interface Output {
  write(bytes: Buffer): number;
}

/** Writes requests that may be larger than the buffers of the system. */
export class RequestSender {
  #unsent: Buffer = Buffer.alloc(0);

  send(bytes: Buffer, output: Output): void {
    const taken = Math.max(0, output.write(bytes));
    this.#unsent = bytes.subarray(taken);
  }

  drained(output: Output): void {
    if (this.#unsent.length > 0) this.send(this.#unsent, output);
  }
}
