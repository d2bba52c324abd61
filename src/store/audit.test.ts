import { expect, test } from "bun:test";
import { auditDigest, type AuditEntry, canonicalJson, firstDigest } from "./audit.ts";

const entry: AuditEntry = {
  at: 1_767_225_600_000,
  actor: { kind: "session", id: "user_a", name: "ada@example.com" },
  address: "192.0.2.7",
  requestId: undefined,
  action: "key.rotate",
  subject: { type: "key", id: "key_a" },
  accountId: "acct_a",
  before: undefined,
  after: { overlap_seconds: 60, ended: ["aaaaaaaa"] },
};

test("the digest is SHA-256 of a documented text", () => {
  const text =
    `["${firstDigest}",1,{"accountId":"acct_a","action":"key.rotate",` +
    '"actor":{"id":"user_a","kind":"session","name":"ada@example.com"},"address":"192.0.2.7",' +
    '"after":{"ended":["aaaaaaaa"],"overlap_seconds":60},"at":1767225600000,' +
    '"subject":{"id":"key_a","type":"key"}}]';
  const expected = new Bun.CryptoHasher("sha256").update(text).digest("hex");
  expect(auditDigest(entry, 1, firstDigest)).toBe(expected);
});

test("the order of fields does not matter", () => {
  const { at, ...rest } = entry;
  const reordered = { ...rest, after: { ended: ["aaaaaaaa"], overlap_seconds: 60 }, at };
  expect(auditDigest(reordered, 1, firstDigest)).toBe(auditDigest(entry, 1, firstDigest));
});

test("every field, the position and the previous digest change the digest", () => {
  const changes: readonly Partial<AuditEntry>[] = [
    { at: 1 },
    { actor: { ...entry.actor, kind: "token" } },
    { actor: { ...entry.actor, id: undefined } },
    { actor: { ...entry.actor, name: "eve@example.com" } },
    { address: undefined },
    { requestId: "req_1" },
    { action: "key.update" },
    { subject: { type: "key", id: "key_b" } },
    { subject: { type: "user", id: "key_a" } },
    { accountId: undefined },
    { before: {} },
    { after: undefined },
    { after: { overlap_seconds: "60", ended: ["aaaaaaaa"] } },
  ];
  const digests = changes.map((change) => auditDigest({ ...entry, ...change }, 1, firstDigest));
  digests.push(auditDigest(entry, 1, firstDigest));
  digests.push(auditDigest(entry, 2, firstDigest));
  digests.push(auditDigest(entry, 1, "f".repeat(64)));
  expect(new Set(digests).size).toBe(changes.length + 3);
});

test("the record of an entry has the same digest as the entry", () => {
  const digest = auditDigest(entry, 7, firstDigest);
  const record = { ...entry, sequence: 7, previousDigest: firstDigest, digest };
  expect(auditDigest(record, 7, firstDigest)).toBe(digest);
});

test("data has the same canonical text after a round trip", () => {
  const value = { b: [1.5, -0, "\ud800", null, true], a: { "\u{1f511}": "" }, c: undefined };
  const text = canonicalJson(value);
  expect(text).toBe('{"a":{"\u{1f511}":""},"b":[1.5,0,"\\ud800",null,true]}');
  expect(canonicalJson(JSON.parse(text))).toBe(text);
});
