import { describe, expect, test } from "bun:test";
import { createNetworkList, isNetwork } from "./network.ts";

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
