import { expect, test } from "bun:test";
import { passwordProblem } from "./password-rules.ts";
import { Passwords } from "./passwords.ts";

test("a password matches its hash, which costs as much as the one for unknown users", async () => {
  const passwords = new Passwords();
  const hash = await passwords.hash("nine purple lamps hum");
  expect(hash).toStartWith("$argon2id$v=19$m=19456,t=2,p=1$");
  expect(await passwords.verify("nine purple lamps hum", hash)).toBe(true);
  expect(await passwords.verify("nine purple lamps hux", hash)).toBe(false);
  const source = await Bun.file(new URL("passwords.ts", import.meta.url)).text();
  expect(source).toContain(hash.slice(0, hash.lastIndexOf("$", hash.lastIndexOf("$") - 1) + 1));
});

test("a password is the same in every composition of its letters", async () => {
  const passwords = new Passwords();
  const hash = await passwords.hash("zw\u00f6lf gr\u00fcne Kessel");
  expect(await passwords.verify("zwo\u0308lf gru\u0308ne Kessel", hash)).toBe(true);
});

test("without a hash no password matches", async () => {
  const passwords = new Passwords();
  expect(await passwords.verify("", undefined)).toBe(false);
  expect(await passwords.verify("nine purple lamps hum", undefined)).toBe(false);
});

test("more than 66 at a time are refused, and all others get their turn", async () => {
  const passwords = new Passwords();
  const hash = await Bun.password.hash("x", { algorithm: "argon2id", memoryCost: 8, timeCost: 1 });
  const tries = Array.from({ length: 70 }, () => passwords.verify("x", hash));
  const ends = await Promise.allSettled(tries);
  expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(66);
  for (const end of ends.slice(66)) expect(end).toMatchObject({ reason: { status: 429 } });
  expect(await passwords.verify("x", hash)).toBe(true);
});

test("common passwords are refused", () => {
  const refused = [
    "short",
    "a".repeat(257),
    "aaaaaaaaaaaa",
    "abababababab",
    "123456789012",
    "abcdefghijklm",
    "987654321098",
    "Password1234",
    "P@ssw0rd2026!!",
    "passwordpassword",
    "Qwertyuiop123",
    "ada.lovelace@example.com",
    "ADA.LOVELACE",
  ];
  for (const password of refused) {
    expect(passwordProblem(password, "ada.lovelace@example.com")).toBeString();
  }
});

test("long passwords of any characters are accepted", () => {
  const taken = [
    "nine purple lamps hum",
    "l\u00e4ngerer Satz \u{1f511}",
    "x7".repeat(4) + "qm3v",
    "ab c".repeat(64),
  ];
  for (const password of taken) {
    expect(passwordProblem(password, "ada@example.com")).toBeUndefined();
  }
});
