import { expect, test } from "bun:test";
import fc from "fast-check";
import { createNetworkList } from "../domain/network.ts";
import { clientAddress } from "./client-address.ts";

const proxies = createNetworkList(["10.0.0.0/8", "fd00::/8"]);

function addressOf(peer: string | undefined, forwardedFor: string | null): string {
  return clientAddress(peer, () => forwardedFor, proxies);
}

test.each<[string | undefined, string | null, string]>([
  // The peer is not trusted.
  ["203.0.113.9", null, "203.0.113.9"],
  ["203.0.113.9", "198.51.100.1", "203.0.113.9"],
  ["203.0.113.9", "10.0.0.1", "203.0.113.9"],
  [undefined, "198.51.100.1", "unknown"],
  // One proxy, which appends its caller to the header that it received.
  ["10.0.0.1", "203.0.113.9", "203.0.113.9"],
  ["10.0.0.1", "198.51.100.1, 203.0.113.9", "203.0.113.9"],
  ["10.0.0.1", "10.9.9.9,203.0.113.9", "203.0.113.9"],
  ["10.0.0.1", null, "10.0.0.1"],
  ["10.0.0.1", " , ,", "10.0.0.1"],
  // A chain of proxies.
  ["10.0.0.1", "198.51.100.1, 203.0.113.9, 10.0.0.2, 10.0.0.3", "203.0.113.9"],
  ["10.0.0.1", "10.0.0.4, 10.0.0.3", "10.0.0.4"],
  ["fd00::1", "2001:DB8:0::9, fd00:0::2", "2001:db8::9"],
  // Spellings of addresses.
  ["::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"],
  ["10.0.0.1", "::ffff:203.0.113.9", "203.0.113.9"],
  ["10.0.0.1", "::ffff:cb00:7109", "203.0.113.9"],
  ["10.0.0.1", "203.0.113.9:51234", "203.0.113.9"],
  ["10.0.0.1", "[2001:db8::9]:51234", "2001:db8::9"],
  ["10.0.0.1", "[2001:db8::9]", "2001:db8::9"],
  ["fe80::1%eth0", null, "fe80::1"],
  // A proxy that did not know its peer: the entries further left prove nothing.
  ["10.0.0.1", "203.0.113.9, unknown", "unknown"],
  ["10.0.0.1", "203.0.113.9, junk, 10.0.0.2", "unknown"],
  ["10.0.0.1", "203.0.113.9, 999.1.1.1", "unknown"],
  ["10.0.0.1", "203.0.113.9, 010.0.0.2", "unknown"],
])("from %s with %j it is %s", (peer, forwardedFor, expected) => {
  expect(addressOf(peer, forwardedFor)).toBe(expected);
});

test("the header of an untrusted peer is not read", () => {
  const read = (): string => {
    throw new Error("was read");
  };
  expect(clientAddress("203.0.113.9", read, proxies)).toBe("203.0.113.9");
  expect(clientAddress("10.0.0.1", () => null, createNetworkList([]))).toBe("10.0.0.1");
});

const proxy = fc.ipV4().map((address) => address.replace(/^\d+/, "10"));
const stranger = fc.ipV4().filter((address) => !address.startsWith("10."));

test("a caller cannot change its address with a header of its own", () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.string(), proxy, stranger), { maxLength: 5 }),
      stranger,
      fc.array(proxy, { maxLength: 3 }),
      (written, caller, chain) => {
        const header = [...written, caller, ...chain].join(", ");
        expect(addressOf("10.0.0.1", header)).toBe(caller);
      },
    ),
  );
});
