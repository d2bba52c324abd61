import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { signWebhook } from "../../src/ledger/events/webhook-sender.ts";
import { readDocument } from "../support/documents.ts";
import { webhookSecret as secret } from "../support/webhook-receiver.ts";

const [, example = ""] = /```js\n([\s\S]*?)```/.exec(readDocument("docs/events.md")) ?? [];

type Verify = (headers: Headers, body: string, secret: string, nowMs?: number) => boolean;

function isVerify(value: unknown): value is Verify {
  return typeof value === "function";
}

test("the example in the document verifies what is sent, and nothing else", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-verify-"));
  const path = join(folder, "verify.mjs");
  writeFileSync(path, example);
  const { verify }: { verify: unknown } = await import(path);
  rmSync(folder, { recursive: true, force: true });
  if (!isVerify(verify)) throw new Error("the example exports no function");
  const body = `{"type":"usage.recorded","data":[]}`;
  const nowMs = 1_700_000_000_000;
  const headers = new Headers(signWebhook(body, secret, nowMs));
  expect(verify(headers, body, secret, nowMs)).toBe(true);
  expect(verify(headers, `${body} `, secret, nowMs)).toBe(false);
  expect(verify(headers, body, secret, nowMs + 301_000)).toBe(false);
  const other = `whsec_${Buffer.from("another key of 24 bytes, yes").toString("base64")}`;
  expect(verify(headers, body, other, nowMs)).toBe(false);
  headers.set("webhook-id", "msg_other");
  expect(verify(headers, body, secret, nowMs)).toBe(false);
});
