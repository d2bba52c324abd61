import { expect, test } from "bun:test";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { fetchTransport, hasArrived, type TransportResponse } from "./transport.ts";

/** Serves a head that declares `length` bytes and a body of as many. */
async function respond(length: number, sent: number, read: (got: TransportResponse) => unknown) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.on("data", () =>
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n${"x".repeat(sent)}`),
    );
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const end = new AbortController();
  try {
    const { port } = server.address() as AddressInfo;
    const request = { method: "GET", headers: {}, body: null, signal: end.signal };
    await read(await fetchTransport(`http://127.0.0.1:${port}/v1/chat/completions`, request));
  } finally {
    end.abort();
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

test.each([100, 626, 3_000])("a body of %d bytes that came with its head has arrived", (length) =>
  respond(length, length, async (response) => {
    expect(hasArrived(response, length)).toBe(true);
    expect((await response.bytes()).byteLength).toBe(length);
  }),
);

test.each([
  [100, 0],
  [100, 99],
  [3_000, 2_999],
  [1_000_000, 50_000],
])("a body of %d bytes of which %d came has not", (length, sent) =>
  respond(length, sent, (response) => {
    expect(hasArrived(response, length)).toBe(false);
  }),
);

test("a body of unknown length has not arrived", () =>
  respond(0, 0, (response) => {
    expect(hasArrived(response, Number.NaN)).toBe(false);
  }));
