import { expect, test } from "bun:test";
import { inspect } from "node:util";
import { Secret } from "./secret.ts";

test("a secret is redacted however it is printed, and only revealed on request", () => {
  const secret = new Secret("hunter2-hunter2");
  const ways = [
    String(secret),
    `${secret.toString()}`,
    JSON.stringify({ secret }),
    inspect(secret),
    inspect({ nested: { secret } }, { depth: 5, showHidden: true }),
    Bun.inspect(secret),
    Object.values(secret).join(),
  ];
  for (const way of ways) expect(way).not.toContain("hunter2");
  expect(secret.reveal()).toBe("hunter2-hunter2");
});
