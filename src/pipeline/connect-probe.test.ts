import { expect, test } from "bun:test";
import { readdirSync, readlinkSync } from "node:fs";
import { openUnreachablePort } from "../../test/support/unreachable-port.ts";
import { answersConnection } from "./connect-probe.ts";

const farOffMs = 60_000;

test("a host that takes connections answers, by name and by address", async () => {
  const socket = { data: () => undefined };
  const listener = Bun.listen({ hostname: "localhost", port: 0, socket });
  try {
    const { port } = listener;
    expect(await answersConnection(`http://localhost:${port}/v1`, farOffMs)).toBe(true);
    const address = listener.hostname.includes(":") ? `[${listener.hostname}]` : listener.hostname;
    expect(await answersConnection(`https://${address}:${port}`, farOffMs)).toBe(true);
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
  expect(await answersConnection(`http://127.0.0.1:${port}/`, farOffMs)).toBe(true);
});

test("a host that does not answer is given up when the time is over, and its socket closed", async () => {
  await using unreachable = await openUnreachablePort();
  const before = openSockets();
  const probes = Array.from({ length: 5 }, () =>
    answersConnection(`http://127.0.0.1:${unreachable.port}/`, 200),
  );
  expect(await Promise.all(probes)).toEqual([false, false, false, false, false]);
  expect(openSockets()).toBeLessThanOrEqual(before);
});

function openSockets(): number {
  const isSocket = (descriptor: string): boolean => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith("socket:");
    } catch {
      return false;
    }
  };
  return readdirSync("/proc/self/fd").filter(isSocket).length;
}
