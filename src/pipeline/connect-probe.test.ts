import { expect, test } from "bun:test";
import { openUnreachablePort } from "../../test/support/unreachable-port.ts";
import { canConnect } from "./connect-probe.ts";

const farOffMs = 60_000;

test("a host that takes connections can be connected to, by name and by address", async () => {
  const socket = { data: () => undefined };
  const listener = Bun.listen({ hostname: "localhost", port: 0, socket });
  try {
    expect(await canConnect(`http://localhost:${listener.port}/v1`, farOffMs)).toBe(true);
  } finally {
    listener.stop(true);
  }
});

test("a host that refuses is there: it may be finishing what it has", async () => {
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: () => undefined },
  });
  const { port } = listener;
  listener.stop(true);
  expect(await canConnect(`http://127.0.0.1:${port}/`, farOffMs)).toBe(true);
});

test("a host that does not answer cannot be connected to, once the time is over", async () => {
  await using unreachable = await openUnreachablePort();
  expect(await canConnect(`http://127.0.0.1:${unreachable.port}/`, 100)).toBe(false);
});
