import { expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { signWebhook } from "./webhook-sender.ts";

const secret = `whsec_${Buffer.from("a key of at least 24 bytes").toString("base64")}`;

test("the library of Standard Webhooks accepts the signature", () => {
  const body = JSON.stringify({ type: "usage.recorded", data: [{ id: "req_ä" }] });
  const headers = signWebhook(body, secret, Date.now());
  expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
  expect(() => new Webhook(secret).verify(`${body} `, headers)).toThrow();
});

test("a repeated message has the same id", () => {
  const one = signWebhook("{}", secret, 1_000);
  const other = signWebhook("{}", secret, 99_000);
  expect(other["webhook-id"]).toBe(one["webhook-id"]);
  expect(other["webhook-timestamp"]).not.toBe(one["webhook-timestamp"]);
  expect(signWebhook("[]", secret, 1_000)["webhook-id"]).not.toBe(one["webhook-id"]);
});
