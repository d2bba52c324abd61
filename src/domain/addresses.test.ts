import { expect, test } from "bun:test";
import { nameOfValkey, parseValkeyUrl } from "./addresses.ts";

test("an address of one server has user, password, database and TLS", () => {
  expect(parseValkeyUrl("rediss://limits:p%40ss@cache.example.com:6390/3")).toEqual({
    topology: "single",
    hosts: [{ host: "cache.example.com", port: 6390 }],
    service: "",
    isTls: true,
    username: "limits",
    password: "p@ss",
    database: 3,
  });
  expect(parseValkeyUrl("valkey://[::1]")?.hosts).toEqual([{ host: "[::1]", port: 6379 }]);
});

test("Sentinels and clusters are named by several servers", () => {
  const sentinels = parseValkeyUrl("valkey+sentinel://:secret@a,b:26380/main/2");
  expect(sentinels).toMatchObject({ topology: "sentinel", service: "main", database: 2 });
  expect(sentinels?.hosts).toEqual([
    { host: "a", port: 26_379 },
    { host: "b", port: 26_380 },
  ]);
  expect(sentinels?.password).toBe("secret");
  const cluster = parseValkeyUrl("valkeys+cluster://a:1,b:2");
  expect(cluster).toMatchObject({ topology: "cluster", isTls: true });
});

test.each([
  "valkey://",
  "valkey://a,b",
  "valkey://a:0",
  "valkey://a/x",
  "valkey+sentinel://a",
  "valkey+cluster://a/1",
  "http://a",
  "valkey://a:1?x=1",
])("%p is no address", (url) => {
  expect(parseValkeyUrl(url)).toBeUndefined();
});

test("messages name the servers without the password", () => {
  expect(nameOfValkey("valkeys://user:secret@host:1/2")).toBe("valkeys://host:1/2");
});
