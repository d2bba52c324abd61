import { describe, expect, test } from "bun:test";
import { createHostList, createNetworkList, isLoopback, isNetwork } from "./network.ts";

describe("a network", () => {
  for (const text of ["10.0.0.0/8", "10.1.2.3", "0.0.0.0/0", "2001:db8::/32", "::/0", "::1"]) {
    test(`may be written as ${text}`, () => {
      expect(isNetwork(text)).toBe(true);
    });
  }

  for (const text of [
    "",
    "10.0.0.0/",
    "10.0.0.0/33",
    "10.0.0.0/08",
    "10.0.0.0/8/8",
    "10.0.0/8",
    "010.0.0.1",
    "2001:db8::/129",
    "fe80::1%eth0",
    "example.com",
    "10.0.0.0/-1",
    "10.0.0.0/1e1",
  ]) {
    test(`may not be written as '${text}'`, () => {
      expect(isNetwork(text)).toBe(false);
      expect(createNetworkList([text]).has("10.0.0.1")).toBe(false);
    });
  }
});

describe("a list of networks", () => {
  test("has exactly the addresses of a block", () => {
    const list = createNetworkList(["192.168.4.0/22"]);
    expect(["192.168.4.0", "192.168.7.255"].map((each) => list.has(each))).toEqual([true, true]);
    expect(["192.168.3.255", "192.168.8.0"].map((each) => list.has(each))).toEqual([false, false]);
  });

  test("matches an IPv4 address that a socket reports as IPv6", () => {
    const list = createNetworkList(["10.0.0.0/8"]);
    expect(list.has("::ffff:10.9.8.7")).toBe(true);
    expect(list.has("::ffff:11.9.8.7")).toBe(false);
  });

  test("matches IPv6 addresses in any notation", () => {
    const list = createNetworkList(["2001:db8:0:1::/64"]);
    expect(list.has("2001:DB8::1:0:0:0:5")).toBe(true);
    expect(list.has("2001:db8:0:2::5")).toBe(false);
  });

  test("matches only addresses, and nothing when it is empty", () => {
    expect(createNetworkList(["0.0.0.0/0"]).has("localhost")).toBe(false);
    expect(createNetworkList([]).has("10.0.0.1")).toBe(false);
  });
});

test("a list matches names in any case, addresses in any notation, and networks", () => {
  const hosts = createHostList(["Admin.Example.com", "10.0.0.0/8", "[2001:DB8::1]", "fd00::/8"]);
  for (const host of ["admin.example.COM", "admin.example.com.", "10.1.2.3", "[2001:db8:0::1]"]) {
    expect([host, hosts.has(host)]).toEqual([host, true]);
  }
  expect(hosts.has("[fd00::7]")).toBe(true);
  for (const host of ["example.com", "x.admin.example.com", "11.1.2.3", "[2001:db8::2]", "", "*"]) {
    expect([host, hosts.has(host)]).toEqual([host, false]);
  }
  expect(createHostList([]).has("localhost")).toBe(false);
  expect(createHostList(["*"]).has("anything.example")).toBe(true);
});

test("the local machine has several names", () => {
  for (const host of ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"]) {
    expect([host, isLoopback(host)]).toEqual([host, true]);
  }
  for (const host of ["0.0.0.0", "::", "10.0.0.1", "localhost.example.com", "127.0.0.1.nip.io"]) {
    expect([host, isLoopback(host)]).toEqual([host, false]);
  }
});
