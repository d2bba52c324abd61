import { expect, test } from "bun:test";
import { createHostList, isLoopback } from "./host-list.ts";

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
